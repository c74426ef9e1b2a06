"""Files: what is written is whole or not there, damage is noticed, and a disk that fails ends in a clear error."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from makers import PROFNER, ROOT, corpus_spec, run_nerprobe

from nerprobe.errors import ArtefactError, StorageError
from nerprobe.files import atomic_path, canonical_json, read_json, temporaries, write_json, write_text

RECORD = {"schema": 1, "name": "é", "list": [1, 2.5, None, True], "nested": {"b": 1, "a": "x"}}


# --- seals ----------------------------------------------------------------------------------------------


def test_what_is_written_is_read_back_without_its_seal(tmp_path: Path) -> None:
    write_json(tmp_path / "a" / "r.json", RECORD)
    assert read_json(tmp_path / "a" / "r.json") == RECORD


def test_the_seal_is_the_hash_of_the_canonical_rest(tmp_path: Path) -> None:
    write_json(tmp_path / "r.json", {"b": [1], "a": "é"})
    digest = hashlib.sha256(b'{"a":"\\u00e9","b":[1]}').hexdigest()
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["seal"] == digest


def test_other_spaces_and_order_are_no_damage(tmp_path: Path) -> None:
    write_json(tmp_path / "r.json", RECORD)
    value = json.loads((tmp_path / "r.json").read_text())
    (tmp_path / "r.json").write_text(json.dumps(dict(reversed(value.items()))))
    assert read_json(tmp_path / "r.json") == RECORD


def test_every_flipped_bit_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    write_json(path, RECORD)
    whole = path.read_bytes()
    noticed = 0
    for place in range(len(whole)):
        for bit in range(8):
            data = bytearray(whole)
            data[place] ^= 1 << bit
            path.write_bytes(data)
            try:
                assert read_json(path) == RECORD
            except ArtefactError:
                noticed += 1
    assert noticed > 7 * len(whole)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "damaged"),
        ('{"schema": 1, "na', "damaged"),
        ("[" * 100_000, "damaged"),
        ('{"seal": "0", "n": NaN}', "damaged"),
        ("\udcff", "damaged"),
        ("[1]", "no seal"),
        ("7", "no seal"),
        ('{"schema": 1}', "no seal"),
        ('{"schema": 1, "seal": null}', "differs from its seal"),
    ],
)
def test_foreign_and_damaged_files_say_what_to_do(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ArtefactError, match=told) as caught:
        read_json(path)
    assert str(path) in str(caught.value)
    assert "run nerprobe verify --remove, then the same snakemake command again" in str(caught.value)


def test_another_schema_is_refused(tmp_path: Path) -> None:
    write_json(tmp_path / "r.json", {"schema": 2})
    with pytest.raises(ArtefactError, match="of another version; expected schema 1; got 2"):
        read_json(tmp_path / "r.json")


@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
            lambda inner: st.lists(inner, max_size=3),
        ),
    )
)
def test_any_record_survives_the_way_through_its_file(
    tmp_path_factory: pytest.TempPathFactory, record: dict[str, Any]
) -> None:
    if {"seal", "schema"} & set(record) or any("\ud800" <= letter <= "\udfff" for letter in canonical_json(record)):
        return
    path = tmp_path_factory.mktemp("r") / "r.json"
    write_json(path, record)
    assert read_json(path) == record


# --- temporary files --------------------------------------------------------------------------------------


def test_a_killed_writer_leaves_a_file_that_the_next_one_removes(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom nerprobe.files import atomic_path\n"
        "with atomic_path(Path(sys.argv[1])) as temporary:\n"
        "    temporary.write_text('half')\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = tmp_path / "r.txt"
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", script, str(path)], env=environment(), check=False)
        assert done.returncode == -signal.SIGKILL
        assert not path.exists()
        assert len(temporaries(tmp_path)) == 1
    write_text(path, "whole")
    assert [file.name for file in tmp_path.iterdir()] == ["r.txt"]


def test_a_writer_at_work_keeps_its_file(tmp_path: Path) -> None:
    path = tmp_path / "r.txt"
    with atomic_path(path) as slow:
        slow.write_text("slow")
        write_text(path, "quick")
        assert path.read_text() == "quick"
        assert slow.exists()
    assert path.read_text() == "slow"
    assert temporaries(tmp_path) == []


def test_a_writer_does_not_touch_those_of_other_files(tmp_path: Path) -> None:
    other = tmp_path / ".r.txt.parquet.abcd_efg.tmp"
    other.write_text("of r.txt.parquet")
    mine = tmp_path / ".[r].txt.abcd_efg.tmp"
    mine.write_text("of [r].txt")
    write_text(tmp_path / "r", "x")
    write_text(tmp_path / "[r].txt", "x")
    assert other.exists()
    assert not mine.exists()


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src")}


# --- disks ------------------------------------------------------------------------------------------------

WORDS = (hashlib.sha256(str(number).encode()).hexdigest() for number in range(3000))  # they do not compress
TWEETS = "".join(f"{word} {number} 0 64 O\n\n" for number, word in enumerate(WORDS)).encode()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of 64 KiB; mounting needs root."""
    point = tmp_path / "disk"
    point.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(point)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    yield point
    subprocess.run(["umount", "--lazy", str(point)], check=True)


def corpus_job(tmp_path: Path, place: Path) -> list[str]:
    spec = corpus_spec(tmp_path / "source", {"test": TWEETS, "train": b"a t1 0 1 O\n"}, format=PROFNER)
    options = ["--spec", canonical_json(spec), "--table", str(place / "corpus.parquet")]
    return ["corpus", *options, "--info", str(place / "corpus.json"), "--log", str(place / "log" / "corpus.log")]


def one_clear_line(done: subprocess.CompletedProcess[str], place: Path, reason: str) -> None:
    assert done.returncode == 1
    assert "Traceback" not in done.stderr + done.stdout
    (line,) = [line for line in done.stderr.splitlines() if " ERROR " in line]
    assert f"{place}/corpus.parquet: this cannot be written; got {reason}; " in line
    assert not (place / "corpus.parquet").exists()
    assert not (place / "corpus.json").exists()
    assert temporaries(place) == []


def test_a_disk_that_fills_up_ends_in_one_clear_line(tmp_path: Path, disk: Path) -> None:
    done = run_nerprobe(*corpus_job(tmp_path, disk), cwd=tmp_path)
    one_clear_line(done, disk, "No space left on device")
    assert "free some space" in done.stderr


def test_a_disk_that_was_full_ends_in_one_clear_line(tmp_path: Path, disk: Path) -> None:
    (disk / "filler").write_bytes(b"\0" * 65536)
    done = run_nerprobe(*corpus_job(tmp_path, disk), cwd=tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "No space left on device" in done.stderr


def test_a_read_only_disk_ends_in_one_clear_line(tmp_path: Path, disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    done = run_nerprobe(*corpus_job(tmp_path, disk), cwd=tmp_path)
    one_clear_line(done, disk, "Read-only file system")
    assert "no log is written" in done.stderr
    assert "make its folder writable" in done.stderr


def test_a_limit_on_file_sizes_is_told_like_a_full_disk(tmp_path: Path) -> None:
    """No root needed: the kernel refuses to write more."""
    kept = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, kept[1]))
    try:
        with pytest.raises(StorageError, match=r"r\.txt: this cannot be written; got File too large; free some space"):
            write_text(tmp_path / "r.txt", "x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, kept)
        signal.signal(signal.SIGXFSZ, old)
    assert list(tmp_path.iterdir()) == []
