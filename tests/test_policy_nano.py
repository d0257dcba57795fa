"""The nano policy: it learns its lessons, repeats bit for bit, loads anywhere, and refuses shapes that cannot run."""

import json
import random

import pytest
import torch

from stages.common import tables
from stages.common.cli import UserError
from stages.common.config import Nano
from stages.common.policy import read_manifest
from stages.policy import nano
from stages.policy.__main__ import main
from stages.policy.lessons import Lesson, Teacher, teacher
from stages.policy.muon import Muon, orthogonal
from stages.policy.tokenizer import END, train
from stages.tasks.generated import generated_tasks

SMALL = ["--hidden", "64", "--layers", "2", "--heads", "2"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("tasks") / "tasks.parquet"
    tables.write(path, tables.TASKS, generated_tasks(0, 120))
    return path


@pytest.fixture(scope="module")
def made(table, tmp_path_factory):
    """The same policy twice."""
    folders = [tmp_path_factory.mktemp("nano") / name for name in ("a", "b")]
    for folder in folders:
        main(["--init", "nano", "--tasks", str(table), "--out", str(folder), "--seed", "7", "--steps", "24", *SMALL])
    return folders


def test_same_seed_gives_the_same_bytes(made, table, tmp_path):
    one, two = (read_manifest(folder, verify=True) for folder in made)
    assert one == two
    assert one.made_by["tasks"] == 120 and one.made_by["seed"] == 7
    main(["--init", "nano", "--tasks", str(table), "--out", str(tmp_path / "c"), "--seed", "8", "--steps", "1", *SMALL])
    assert read_manifest(tmp_path / "c").files["model.safetensors"] != one.files["model.safetensors"]


def test_loads_with_transformers(made):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, info = AutoModelForCausalLM.from_pretrained(made[0], output_loading_info=True)
    tokenizer = AutoTokenizer.from_pretrained(made[0])
    assert not any(info.values())
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert model.dtype == torch.float32
    assert sum(p.numel() for p in model.parameters()) == read_manifest(made[0]).made_by["parameters"]
    assert len(tokenizer) == model.config.vocab_size
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id != tokenizer.pad_token_id


def test_training_lowers_the_loss_and_adds_steps_up(table, tmp_path):
    timings = tmp_path / "t.json"
    command = ["--init", "nano", "--tasks", str(table), "--steps", "60", *SMALL, "--timings", str(timings)]
    main([*command, "--out", str(tmp_path / "long")])
    assert read_manifest(tmp_path / "long").made_by["last_loss"] < 1.6  # 6.6 = log(768) before anything is learned
    phases = {phase["phase"]: phase["count"] for phase in json.loads(timings.read_text())}
    assert phases["warm start"] == 60 and phases["tokenizer"] > 300


def test_later_half_has_second_turns():
    rows = generated_tasks(0, 60)
    lessons = teacher(rows, 0)
    tokenizer = train((row["prompt"] for row in rows), 400)
    seen = list(nano.batches(lessons, tokenizer, 40))
    assert [len(batch) for batch in seen] == [nano.BATCH] * 40
    mark = tokenizer.encode("<|start|>", add_special_tokens=False).ids[0]
    retries = [any(example.ids.count(mark) > 2 for example in batch) for batch in seen]
    assert not any(retries[:20])
    assert sum(retries[20:]) == round(20 * nano.RETRIES)


def test_loss_is_the_mean_over_reply_tokens_whatever_is_padded():
    rows = generated_tasks(0, 12)
    tokenizer = train((row["prompt"] for row in rows), 400)
    lessons = Teacher(rows, {}, random.Random(0))
    examples = [nano.encode(tokenizer, lessons.first()) for _ in range(4)]
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    shape = nano.config(Nano(hidden=64, layers=2, heads=2), 400)
    model = LlamaForCausalLM(LlamaConfig(**shape, attn_implementation="sdpa"))
    total = count = 0
    for example in examples:
        logits = model(input_ids=torch.tensor([example.ids])).logits[0].log_softmax(-1)
        for at in range(example.start, len(example.ids)):
            total -= logits[at - 1, example.ids[at]].item()
            count += 1
    assert nano.loss_of(model, examples).item() == pytest.approx(total / count, rel=1e-5)


def test_a_lesson_is_encoded_in_two_parts_with_an_end():
    tokenizer = train(iter(["abc def"]), 300)
    example = nano.encode(tokenizer, Lesson([{"role": "user", "content": "abc"}], "def"))
    assert tokenizer.decode(example.ids[: example.start], skip_special_tokens=False).endswith("<|start|>assistant\n")
    assert tokenizer.decode(example.ids[example.start :], skip_special_tokens=False) == f"def{END}"


@pytest.mark.parametrize("flags", [["--hidden", "100"], ["--hidden", "96", "--heads", "4"]])
def test_shapes_that_vllm_cannot_run_are_refused(table, tmp_path, flags):
    with pytest.raises(UserError, match=r"nano\.hidden"):
        main(["--init", "nano", "--tasks", str(table), "--out", str(tmp_path / "out"), *flags])
    assert list(tmp_path.iterdir()) == []


def test_nano_without_tasks_says_so(tmp_path):
    with pytest.raises(UserError, match="--tasks"):
        main(["--init", "nano", "--out", str(tmp_path / "out")])


def test_muon_makes_updates_orthogonal():
    torch.manual_seed(0)
    values = torch.linalg.svdvals(orthogonal(torch.randn(3, 16, 40)))
    assert values.min() > 0.6 and values.max() < 1.3
    for shape in ((16, 40), (40, 16)):
        parameter = torch.nn.Parameter(torch.zeros(shape))
        parameter.grad = torch.randn(shape)
        Muon([parameter], lr=0.5).step()
        step = -parameter.detach() / (0.5 * max(1, shape[0] / shape[1]) ** 0.5)
        values = torch.linalg.svdvals(step)
        assert values.min() > 0.6 and values.max() < 1.3
        assert (step * parameter.grad).sum() > 0  # downhill
