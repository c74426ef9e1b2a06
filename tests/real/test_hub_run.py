"""The whole pipeline against a hub on loopback that serves the real corpus files and one encoder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from loopback_hub import LoopbackHub
from zoo import build

PROJECT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("NERPROBE_DATA_DIR") or PROJECT.parent / "shared" / "data") / "profner" / "BIO"
REPO, REVISION = "Biomedical-TeMU/ProfNER_corpus_NER", "de9bf1404880f4b7225e1cc0e9268192e57fefca"
MODEL, COMMIT = "some-lab/tiny-encoder", "0123456789abcdef0123456789abcdef01234567"
FILES = ("BIO/train_spacy.txt", "BIO/valid_spacy.txt")

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not DATA.is_dir(), reason="the real ProfNER files are not at hand (NERPROBE_DATA_DIR)"),
]


def snakemake(folder: Path, hub: str, *more: str, models: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snakemake", "-s", str(PROJECT / "Snakefile"), "--directory", str(folder)]
    command += ["--cores", "2", *more, "--config", f"models=[{models}]", "baselines=[train-lookup]"]
    command += ["subset={test: 20, train: 60}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "NERPROBE_"))}
    environment |= {"HF_ENDPOINT": hub, "HF_HOME": str(folder / "hf"), "HF_TOKEN": "hf_thisisasecret1234567890"}
    environment |= {"HF_HUB_DOWNLOAD_TIMEOUT": "5", "HF_HUB_ETAG_TIMEOUT": "5", "HF_HUB_DISABLE_XET": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return build("bert-cased", tmp_path_factory.mktemp("encoder"))


@contextmanager
def serving(encoder: Path) -> Iterator[LoopbackHub]:
    """Serve the corpus and an encoder."""
    with LoopbackHub() as hub:
        # Tens of thousands of other files stand in the real repository; none may be asked for.
        others = {f"subtask-2/brat/{n}.ann": b"x" for n in range(50)}
        hub.add_repo(REPO, "dataset", REVISION, {**{f: (DATA.parent / f).read_bytes() for f in FILES}, **others})
        hub.add_repo(MODEL, "model", COMMIT, {p.name: p.read_bytes() for p in encoder.iterdir()})
        yield hub


@pytest.fixture(scope="module")
def ran(tmp_path_factory, encoder):
    folder = tmp_path_factory.mktemp("hub")
    with serving(encoder) as hub:
        done = snakemake(folder, hub.url, models=f"{MODEL}@{COMMIT}")
        log = list(hub.log)
    return folder, done, log


def test_a_run_from_the_hub_succeeds(ran):
    _, done, _ = ran
    assert done.returncode == 0, done.stderr[-3000:]
    assert "some-lab--tiny-encoder--01234567" in done.stdout + done.stderr


def test_exactly_the_two_named_files_are_asked_for(ran):
    _, _, log = ran
    asked = {path.partition("?")[0] for _, path in log if "ProfNER" in path}
    assert asked == {f"/datasets/{REPO}/resolve/{REVISION}/{name}" for name in FILES}


def test_corpus_record_names_repository_and_revision(ran):
    folder, _, _ = ran
    [info] = folder.glob("results/profner/*/corpus.json")
    record = json.loads(info.read_text())
    assert (record["source"], record["repo"], record["revision"]) == ("hub", REPO, REVISION)
    assert sorted(record["sha256"]) == sorted(FILES)


def test_the_token_is_in_no_file_that_the_run_left(ran):
    folder, done, _ = ran
    assert "thisisasecret" not in done.stdout + done.stderr
    kept = [path for path in folder.rglob("*") if path.is_file() and "hf" not in path.relative_to(folder).parts[:1]]
    assert kept
    assert not [path for path in kept if b"thisisasecret" in path.read_bytes()]


def test_without_the_hub_the_cache_is_enough(ran):
    folder, _, _ = ran
    again = snakemake(folder, "http://127.0.0.1:9", "--forcerun", "corpus", models=f"{MODEL}@{COMMIT}")
    assert again.returncode == 0, again.stderr[-3000:]


def test_without_hub_and_cache_the_error_says_what_is_missing_and_the_ways_out(tmp_path):
    done = snakemake(tmp_path, "http://127.0.0.1:9", models=f"{MODEL}@{COMMIT}")
    assert done.returncode != 0
    said = " ".join((done.stdout + done.stderr).split())
    for part in (REPO, REVISION, "BIO/", "HF_ENDPOINT", "HF_HUB_OFFLINE", "data_dir"):
        assert part in said
    assert not list(tmp_path.glob("results/profner/*/corpus.*"))


def test_what_is_fetched_on_a_login_node_is_computed_without_a_network(tmp_path, encoder):
    with serving(encoder) as hub:
        fetched = snakemake(tmp_path, hub.url, "fetch_all", models=f"{MODEL}@{COMMIT}")
    assert fetched.returncode == 0, fetched.stderr[-3000:]
    assert not list(tmp_path.glob("results/profner/*/subset.json"))
    computed = snakemake(tmp_path, "http://127.0.0.1:9", models=f"{MODEL}@{COMMIT}")
    assert computed.returncode == 0, computed.stderr[-3000:]
    assert len(list(tmp_path.glob("results/profner/*/metrics/*.json"))) == 2
