"""The configuration: what is refused and how, and that schema, flags and shipped files agree with the models."""

import argparse
import re
from pathlib import Path

import pytest
import yaml

from stages.common import check, config
from stages.common.cli import UserError, add_settings, flags_for, settings_from

ROOT = Path(__file__).parents[1]
CONFIGS = [ROOT / "config.yaml", *sorted((ROOT / "workflow/configs").glob("*.yaml"))]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"genrate": {}}, ["genrate: unknown key", "did you mean generate"]),
        ({"generate": {"gropu_size": 4}}, ["generate.gropu_size", "did you mean group_size"]),
        ({"update": {"lr": "1e-6"}}, ["update.lr", "1.0e-6"]),
        ({"generate": {"group_size": 1}}, ["group_size", "at least 2"]),
        ({"turns": 0}, ["turns", "greater than or equal to 1"]),
        ({"generate": {"top_p": 0.9}}, ["top_p", "is_correction"]),
        ({"generate": {"temperature": 0}}, ["temperature"]),
        ({"generate": {"max_tokens": 512, "max_model_len": 512}}, ["max_tokens", "max_model_len"]),
        ({"update": {"schedule": "cosine"}}, ["schedule_steps"]),
        ({"credit": {"prune": "intra", "intra_nodes": 9}}, ["intra_nodes", "group_size"]),
        ({"update": {"loss": "cispo"}}, ["cispo", "eps_high"]),
        ({"run": "../up"}, ["run"]),
        ({"credit": {"strategy": "max"}}, ["credit.strategy", "mars"]),
        ({"evaluate": {"benchmarks": {"heldout": {"source": "mbpp"}}}}, ["heldout", "only limit"]),
        ({"evaluate": {"benchmarks": {"lcb": {"sourse": "x"}}}}, ["benchmarks.lcb.sourse", "did you mean source"]),
        ({"evaluate": {"benchmarks": {"train": {}}}}, ["train", "another"]),
        ({"evaluate": {"benchmarks": {"lcb": {"released_from": "1.2.2025"}}}}, ["lcb.released_from"]),
    ],
)
def test_refused(raw, words):
    with pytest.raises(UserError) as error:
        check.check(raw)
    assert all(word in str(error.value) for word in words), error.value


def test_every_error_is_listed():
    with pytest.raises(UserError) as error:
        check.check({"turns": 0, "versions": 0, "x": 1})
    assert len(str(error.value).splitlines()) == 4


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_shipped_configs_hold(path):
    layers = [yaml.safe_load(file.read_text()) for file in (ROOT / "config.yaml", path)]
    assert check.check(check.merged(*layers)).run


def test_the_default_config_names_every_key():
    shipped = yaml.safe_load((ROOT / "config.yaml").read_text())
    assert shipped.keys() == config.Config.model_fields.keys()
    for name, section in shipped.items():
        if isinstance(section, dict):
            assert section.keys() == config.Config.model_fields[name].annotation.model_fields.keys(), name


@pytest.mark.parametrize("name", ["qwen3-1.7b", "qwen3-4b", "olmo-2-7b"])
def test_an_overlay_of_the_paper_names_every_key_or_says_why_not(name):
    text = (ROOT / f"workflow/configs/{name}.yaml").read_text()
    raw = yaml.safe_load(text)
    left_out = config.Config.model_fields.keys() - raw.keys()
    assert left_out == {"nano", "compare"} and all(f"# {key}: left out on purpose" in text for key in left_out)
    for key, section in raw.items():
        if isinstance(section, dict):
            assert section.keys() == config.Config.model_fields[key].annotation.model_fields.keys(), key
    assert raw["run"] == name and "H100 hours" in text and "assumed" in text


def test_the_benchmarks_of_the_docs_hold():
    (text,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/evaluate.md").read_text(), re.S)
    run = check.check(yaml.safe_load(text))
    assert run.evaluate.benchmarks["mbpp"].tasks("mbpp").source == "mbpp"
    assert run.evaluate.benchmarks["mine"].tasks("mine").source == "my-tasks.jsonl"


def test_the_schema_file_is_that_of_the_models():
    assert (ROOT / "workflow/schemas/config.schema.json").read_text() == check.schema()


@pytest.mark.parametrize("section", ["tasks", "generate", "execute", "credit", "update", "policy", "nano", "report"])
def test_flags_give_the_settings_back(section):
    settings = getattr(check.check({"execute": {"packages": ["numpy"]}, "update": {"eps_high": 0.28}}), section)
    parser = argparse.ArgumentParser()
    add_settings(parser, type(settings))
    assert settings_from(parser.parse_args(flags_for(settings)), type(settings)) == settings
    tracked, untracked = flags_for(settings, True), flags_for(settings, False)
    assert sorted(tracked + untracked) == sorted(flags_for(settings))


def test_a_wrong_flag_is_named():
    parser = argparse.ArgumentParser()
    add_settings(parser, config.Update)
    with pytest.raises(UserError, match="--lr"):
        settings_from(parser.parse_args(["--lr", "-1"]), config.Update)
