"""The stage from its command line: a local folder, bad names, hub ids; nothing half-written."""

import json

import pytest

from stages.common.cli import UserError
from stages.common.policy import read_manifest
from stages.policy import hub
from stages.policy.__main__ import main
from tests.test_policy_checkpoint import make_folder


@pytest.fixture
def model(tmp_path):
    return make_folder(tmp_path / "model")


def test_local_folder_becomes_version_0(model, tmp_path):
    (model / "optimizer.pt").write_bytes(b"x")
    out = tmp_path / "run" / "version=0"
    out.mkdir(parents=True)  # the workflow makes the folder of a declared output
    timings = tmp_path / "t.json"
    assert main(["--init", str(model), "--out", str(out), "--timings", str(timings)]) == 0
    manifest = read_manifest(out, verify=True)
    assert (manifest.version, manifest.parent) == (0, None)
    assert set(manifest.files) == {p.name for p in model.iterdir()} - {"optimizer.pt"}
    assert [p["phase"] for p in json.loads(timings.read_text())] == ["check", "copy"]
    # The user's folder may be written to later without changing the policy.
    (model / "model.safetensors").write_bytes(b"other")
    assert read_manifest(out, verify=True) == manifest


def test_same_folder_same_hash(model, tmp_path):
    for name in ("a", "b"):
        main(["--init", str(model), "--out", str(tmp_path / name)])
    assert read_manifest(tmp_path / "a") == read_manifest(tmp_path / "b")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("smollm2", "did you mean smollm2-135m"),
        ("Nan0", "did you mean nano"),
        ("qwerty", "no folder and no known name"),
        ("./no/such/folder", "no folder and no known name"),
    ],
)
def test_unknown_name_names_the_nearest(tmp_path, name, message):
    with pytest.raises(UserError, match=message):
        main(["--init", name, "--out", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


def test_a_folder_cannot_become_itself(model):
    with pytest.raises(UserError, match="to be written itself"):
        main(["--init", str(model), "--out", str(model)])
    assert (model / "model.safetensors").stat().st_size > 1000


def test_broken_folder_leaves_what_stood_there(model, tmp_path):
    out = tmp_path / "out"
    main(["--init", str(model), "--out", str(out)])
    (model / "config.json").unlink()
    with pytest.raises(UserError, match=r"config\.json"):
        main(["--init", str(model), "--out", str(out)])
    read_manifest(out, verify=True)
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_hub_id_offline_says_what_to_do(tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    with pytest.raises(UserError, match="hf download some-org/some-model"):
        main(["--init", "some-org/some-model", "--out", str(tmp_path / "out")])


@pytest.mark.parametrize(
    ("name", "is_id"),
    [
        ("Qwen/Qwen3-1.7B", True),
        ("Qwen/Qwen3-1.7B@main", True),
        ("Qwen/Qwen3-1.7B@refs/pr/3", True),
        ("Qwen3", False),
        ("./a", False),
        ("/a/b", False),
        ("a/b/c", False),
        ("a/", False),
    ],
)
def test_form_of_a_hub_id(name, is_id):
    assert hub.is_hub_id(name) is is_id


def test_hub_model_comes_through_the_cache(model, tmp_path, monkeypatch):
    """A hub cache laid out as huggingface_hub keeps it (blobs, snapshots of links), read without a network."""
    from huggingface_hub import constants

    commit = "0123456789abcdef0123456789abcdef01234567"
    repo = tmp_path / "cache" / "models--org--tiny"
    snapshot = repo / "snapshots" / commit
    for folder in (repo / "blobs", repo / "refs", snapshot):
        folder.mkdir(parents=True)
    (repo / "refs" / "main").write_text(commit)
    for path in model.iterdir():
        path.rename(repo / "blobs" / path.name)
        (snapshot / path.name).symlink_to(f"../../blobs/{path.name}")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    out = tmp_path / "out"
    main(["--init", "org/tiny", "--out", str(out)])
    manifest = read_manifest(out, verify=True)
    assert manifest.made_by["commit"] == commit
    assert "model.safetensors" in manifest.files
    assert not any(path.is_symlink() for path in out.iterdir())
