"""Where tasks come from: the starter file, a package, templates, local files, or a hub data set.

A source gives `Record`s and the module of the format they are in (own, humaneval, mbpp, ...). Such
a module has FIELDS, the fields that tell the format; USES, the fields it reads; and the functions name(record),
difficulty(record) and convert(record).
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

from stages.common.cli import UserError
from stages.common.config import Tasks
from stages.tasks import bigcodebench, files, humaneval, kodcode, livecodebench, mbpp, own
from stages.tasks.records import Record

STARTER = Path(__file__).resolve().parents[2] / "data" / "starter.jsonl"
MAX_UNUSABLE = 0.02  # share of a hub data set's rows that may be left out
GENERATED = 400  # generated tasks where no limit is set
# In the order in which a row's fields are tried.
FORMATS = {
    "humaneval": humaneval,
    "bigcodebench": bigcodebench,
    "livecodebench": livecodebench,
    "mbpp": mbpp,
    "kodcode": kodcode,
    "murphy": own,
}
# Short names of hub data sets: repository, and its configuration, or files where it has a loading script.
HUB = {
    "mbpp": ("google-research-datasets/mbpp", "full"),
    "kodcode": ("KodCode/KodCode-V1", None),
    "livecodebench": ("livecodebench/code_generation_lite", "*.jsonl"),
    "bigcodebench": ("bigcode/bigcodebench", None),
}


def detect(fields: Iterable[str], where: str) -> ModuleType:
    """The format of rows with these fields; UserError lists what each format needs."""
    fields = list(fields)
    for module in FORMATS.values():
        if all(field in fields for field in module.FIELDS):
            return module
    needs = "; ".join(f"{name}: {', '.join(module.FIELDS)}" for name, module in FORMATS.items())
    raise UserError(f"{where}: fields {', '.join(fields) or '(none)'} fit no known format ({needs})")


def _hub(source: str, settings: Tasks) -> tuple[ModuleType, Iterator[Record]]:
    """A hub data set, `owner/name` or `owner/name:configuration`, through the `datasets` package; rows one by one."""
    try:
        import datasets
    except ImportError as error:
        raise UserError(
            f"{source}: no such file. If it is a hub data set: pip install 'murphy-workflow[hub]', which brings the "
            f"datasets package ({error}); or give the path of a local JSON, JSON Lines or Parquet file (tasks.source)"
        ) from None

    repository, part = HUB[source] if source in HUB else (*source.split(":", 1), None)[:2]
    split = settings.hub_split
    try:
        if part and part.endswith(".jsonl"):
            data = datasets.load_dataset("json", data_files={split: f"hf://datasets/{repository}/{part}"}, split=split)
        else:
            data = datasets.load_dataset(repository, part, split=split)
    except Exception as error:  # offline, unknown name, split or configuration, no permission: many libraries' errors
        text = (str(error).strip() or "no message").split("\n")[0]
        raise UserError(
            f"hub data set {repository}, split {split}: {type(error).__name__}: {text}. Check the name, "
            "tasks.hub_split and the network, or download it and give the path of the local file (tasks.source)"
        ) from error
    where = f"{repository} ({split})"
    module = FORMATS.get(settings.format) or detect(data.column_names, where)
    if module.USES:  # columns that are not read may be gigabytes
        data = data.select_columns([column for column in data.column_names if column in module.USES])
    return module, (Record(f"{where}, row {number}", row) for number, row in enumerate(data, 1))


def converted(records: Sequence[Record], module: ModuleType, is_hub: bool) -> tuple[list[dict], list[str]]:
    """Rows of the TASKS table, and why rows of a hub data set were left out.

    A row that cannot become a task is a UserError where the file is the user's own. Nobody can mend a hub data set, so
    there such rows are left out, unless they are more than `MAX_UNUSABLE` of all: then the format is the wrong one.
    """
    tasks, left_out = [], []
    for record in records:
        try:
            tasks.append(module.convert(record))
        except UserError as error:
            left_out.append(str(error))
            if not is_hub or len(left_out) > MAX_UNUSABLE * len(records):
                raise
    return tasks, left_out


def records(settings: Tasks, seed: int) -> tuple[ModuleType, Iterable[Record], bool]:
    """The format and rows of `settings.source`, and whether it is on the hub; `seed` is for generated tasks only."""
    source = settings.source
    if source == "starter":
        if not STARTER.is_file():
            raise UserError(f"{STARTER}: no such file; the starter tasks lie in data/ of the project's repository")
        return own, files.read_file(STARTER), False
    if source == "humaneval":
        return humaneval, files.read_file(humaneval.packaged()), False
    if source == "generated":
        from stages.tasks.generated import generated_tasks

        rows = generated_tasks(seed, settings.limit or GENERATED)
        return own, [Record(f"generated task {number}", row) for number, row in enumerate(rows, 1)], False
    path = Path(source).expanduser()
    if path.exists():
        rows = files.read_path(path)
        return FORMATS.get(settings.format) or detect(rows[0].fields, rows[0].where), rows, False
    if source.endswith(files.SUFFIXES) or source.startswith(("/", ".", "~")):
        raise UserError(f"{path}: no such file (tasks.source)")
    return *_hub(source, settings), True
