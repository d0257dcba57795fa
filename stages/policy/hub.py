"""A model by its hub id, ``organisation/name`` or ``organisation/name@revision``, as a local folder.

Configuration and tokenizer come first and are checked, so that a model that cannot be used is refused before its
weights are fetched. Files go to Hugging Face's own cache (``HF_HOME``) and are fetched once; with ``HF_HUB_OFFLINE=1``
only that cache is read.
"""

import re
from pathlib import Path

from stages.common.cli import UserError
from stages.policy import checkpoint

_ID = re.compile(r"^[\w][\w.-]*/[\w][\w.-]*(@[\w./-]+)?$")
SMALL = ["*.json", "*.jinja", "*.model", "*.txt", "LICENSE*"]


def is_hub_id(name: str) -> bool:
    """Whether `name` has the form of a hub id."""
    return bool(_ID.match(name))


def _fetch(name: str, patterns: list[str]) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    repo, _, revision = name.partition("@")
    start = f"policy.init: {name} is no folder here, and as a hub id"
    try:
        return Path(snapshot_download(repo, revision=revision or None, allow_patterns=patterns))
    except GatedRepoError as error:
        raise UserError(f"{start} it is gated; accept its licence on its page and run `hf auth login`") from error
    except RepositoryNotFoundError as error:
        raise UserError(f"{start} it is unknown (or private: run `hf auth login`); check the spelling") from error
    except RevisionNotFoundError as error:
        raise UserError(f"{start} it has no revision {revision}") from error
    except HFValidationError as error:
        raise UserError(f"{start} it is malformed: {error}") from error
    except (LocalEntryNotFoundError, OfflineModeIsEnabled, OSError) as error:
        raise UserError(
            f"{start} it cannot be fetched: no network, or HF_HUB_OFFLINE is set, and the cache does not hold it. "
            f"Give a local folder, or run `hf download {repo}` where there is a network and copy the cache"
        ) from error


def fetch(name: str) -> tuple[Path, str]:
    """Folder of the model `name` in the cache, and the commit it is at; UserError where it cannot be had."""
    folder = _fetch(name, SMALL)
    checkpoint.check_small_files(folder)
    checkpoint.check_loads(folder)
    # The index names the weights wanted; without one it is the single file.
    index = folder / checkpoint.INDEX
    files = sorted(set(checkpoint.read_json(index)["weight_map"].values())) if index.is_file() else []
    folder = _fetch(name, [*SMALL, *(files or [checkpoint.SINGLE])])
    return folder, folder.name
