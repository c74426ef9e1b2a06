"""Real runs with input that means harm and a hub that fails: what is run, written, told and shown.

Two runs: one on hostile files of the user, typed in a folder with a hostile name; one on a hub on loopback where
each of several encoders meets another fault. Tests of each fault by itself are in tests/unit.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import hostile_models
import pytest
import yaml
from helpers import PROJECT, Place, Ran, read, rows_of
from loopback_hub import LoopbackHub

pytestmark = pytest.mark.workflow

ESC = "\x1b[31m\x07\x9b\u202e"
NAME = "$(touch canary);`touch canary`'q\"  & ñ {model} %s"
SECRETS = ("hf_thisisasecret1234567890", "open-sesame-77", "another-secret-88")
SENT = base64.b64encode(b"me:open-sesame-77").decode()
"""What the client makes of a user and a password in the hub's address: they go before the token."""
TASK = {
    "title": f"Evil <script>alert(1)</script> {ESC}$(touch canary)",
    "language": "es",
    "licence": "cc0-1.0 {model}",
    "texts_shareable": True,
    "format": {"kind": "jsonl", "words": "tokens", "tags": "tags", "item": "id"},
    "text": "spaces",
    "item_prefix": "evil-",
    "types": [f"<b>{ESC}", "$(touch${IFS}canary)"],
    "ignored_types": [],
    "evaluations": [{"protocol": "probe", "regime": "train", "train_pool": "train", "test_pool": "test"}],
}
WORDS = ["<script>alert(1)</script>", ESC, "$(touch canary)", "`touch canary`", "\x00", "'; --", "a\nb", "{model}", "ñ"]


def rows(pool: str, items: int) -> str:
    """Return items of hostile words and ids; every third one holds a mention of each type."""
    lines = []
    for number in range(items):
        tags = ["O"] * len(WORDS)
        if number % 3 == 0:
            tags[0], tags[2] = f"B-{TASK['types'][0]}", f"B-{TASK['types'][1]}"
        words = [*WORDS[:-1], f"{WORDS[-1]}{number}"]
        lines.append(json.dumps({"tokens": words, "tags": tags, "id": f"{pool}{ESC}</td>;$(touch canary)/../{number}"}))
    return "\n".join(lines) + "\n"


def project_with(folder: Path, **sources: dict[str, object]) -> Path:
    """Copy the project and add tasks with other sources; the files of each pool are named the same."""
    for part in ("Snakefile", "workflow", "config", "profiles", "envs", "src"):
        if (PROJECT / part).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "models.lock.yaml")
            shutil.copytree(PROJECT / part, folder / part, symlinks=True, ignore=ignored)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(PROJECT / part, folder / part)
    for name, source in sources.items():
        pools = {pool: {"role": pool, "file": f"{pool}.jsonl"} for pool in ("test", "train")}
        text = yaml.safe_dump(TASK | {"source": source, "pools": pools})
        (folder / "config" / "tasks" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


def acts(text: str) -> set[str]:
    """Return the characters that could act in a terminal; Snakemake itself colours nothing here."""
    return {char for char in text if unicodedata.category(char) in ("Cc", "Cf") and char not in "\n\t"}


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def untold(place: Place, ran: Ran) -> list[str]:
    """Return where a secret was told: on the screen, or in any file of working folder and home."""
    places = {"the screen": ran.out.encode()} | files_below(place.folder or place.typed) | files_below(place.home)
    return [name for name, data in places.items() if any(secret.encode() in data for secret in (*SECRETS, SENT))]


# --- hostile files -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def evil(base: Place, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A working folder, data folder and encoder folders with hostile names, in a place of their own."""
    root = tmp_path_factory.mktemp("evil")
    typed = root / NAME
    data = typed / f"data {NAME}" / "evil"
    data.mkdir(parents=True)
    for pool, items in (("test", 12), ("train", 30)):
        (data / f"{pool}.jsonl").write_text(rows(pool, items), encoding="utf-8")
    good = base.typed / "alpha"
    canary = typed / "canary"
    shutil.copytree(good, typed / f"good {NAME}")
    hostile_models.spoil(good, typed / "code", hostile_models.own_code, canary)
    hostile_models.spoil(good, typed / "pickle", hostile_models.pickled, canary)
    hostile_models.pickles_beside(typed / f"good {NAME}", canary)
    for name in ("sitecustomize.py", "usercustomize.py", "yaml.py", "conftest.py"):
        (typed / name).write_text(f"import os; os.mknod({str(canary)!r})\n")
    for name in ("home", "tmp"):
        (root / name).mkdir()
    project = project_with(root / "project", evil={"kind": "hub", "repo": "org/evil", "revision": "a" * 40})
    variables = {
        "TMPDIR": str(root / "tmp"),
        "HF_TOKEN": SECRETS[0],
        "HF_ENDPOINT": f"http://me:{SECRETS[1]}@127.0.0.1:9",
        "HTTPS_PROXY": f"http://me:{SECRETS[2]}@127.0.0.1:9",
    }
    return Place(
        typed=typed, folder=typed / "work;$(touch canary)", home=root / "home", project=project, variables=variables
    )


def quoted(text: str) -> str:
    """Return a text as one entry of a YAML list."""
    return json.dumps(text, ensure_ascii=False)


@pytest.fixture(scope="module")
def ran(evil: Place) -> Ran:
    models = ", ".join(quoted(f"./{name}") for name in (f"good {NAME}", "code", "pickle"))
    config = [f"models=[{models}]", "baselines=[train-lookup]", "tasks=[evil]"]
    config += [f"data_dir=data {NAME}", "subset={seed: 1, test: 9, train: 24}"]
    before = {path.name for path in evil.typed.iterdir()}
    ran = evil.run(*config, flags=["--verbose", "--printshellcmds"])
    assert {path.name for path in evil.typed.iterdir()} == before | {evil.folder.name if evil.folder else ""}
    return ran


@pytest.mark.hostile(3)
def test_each_encoder_ends_as_it_should(evil: Place, ran: Ran) -> None:
    assert ran.code != 0, ran.out
    found = {row["model"]: (row["status"], row["reason"]) for row in rows_of(evil.run_folder("test9-train24-", "evil"))}
    good = next(name for name in found if name.startswith("good"))
    assert {name for name, (status, _) in found.items() if status == "ok"} == {good, "train-lookup"}, ran.out
    assert "code of its own; that code is not run" in found["code"][1]
    assert "nothing in it was run" in found["pickle"][1]
    # With --verbose Snakemake shows tracebacks of its own; the jobs have none.
    logs = {path.name: path.read_text(encoding="utf-8") for path in (evil.folder or evil.typed).glob("logs/**/*.log")}
    assert [name for name, text in logs.items() if "Traceback" in text] == []


@pytest.mark.hostile(8)
def test_nothing_was_run(evil: Place, ran: Ran) -> None:
    root = evil.typed.parent
    assert [path for path in root.rglob("*") if path.name == "canary"] == []
    assert not (PROJECT / "canary").exists()


def test_files_lie_where_they_may(evil: Place, ran: Ran) -> None:
    root, work = evil.typed.parent, evil.folder or evil.typed
    assert {path.name for path in work.iterdir()} <= {"results", "logs", "resources", ".snakemake"}
    assert {path.name for path in root.iterdir()} == {NAME, "home", "tmp", "project"}
    # Caches of Snakemake and of this project; nothing else in the home folder, no temporary file left.
    assert {path.name for path in evil.home.iterdir()} <= {".cache", "cache"}
    assert [path for path in (root / "tmp").rglob("*") if path.is_file()] == []
    assert [name for name in files_below(work / "results") if not re.fullmatch(r"[A-Za-z0-9._/-]+", name)] == []


def test_no_secret_is_told_even_verbosely(evil: Place, ran: Ran) -> None:
    assert untold(evil, ran) == []


@pytest.mark.hostile(4)
def test_title_types_and_ids_act_nowhere(evil: Place, ran: Ran) -> None:
    board = evil.run_folder("test9-train24-", "evil")
    assert "Evil <script>" in ran.out  # the board is in the output
    assert acts(ran.out) == set()
    page = (board / "leaderboard.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "&lt;b&gt;\\u001b" in page  # a type's name, as text
    assert "<b>\\u001b" not in page
    errors = (board / "errors.html").read_text(encoding="utf-8")
    assert "alert(1)" in errors
    assert "<script>alert(1)" not in errors
    texts = [page, errors, *((board / f"leaderboard.{kind}").read_text(encoding="utf-8") for kind in ("md", "csv"))]
    texts += [path.read_text(encoding="utf-8") for path in (evil.folder or evil.typed).glob("logs/**/*.log")]
    assert [acts(text) for text in texts if acts(text)] == []


def test_words_and_ids_are_kept_as_they_are(evil: Place, ran: Ran) -> None:
    import pyarrow.parquet as pq

    items = pq.read_table(evil.run_folder("test9-train24-", "evil") / "corpus.parquet").to_pylist()
    assert len(items) == 42
    assert items[0]["words"] == [*WORDS[:-1], "ñ0"]
    assert items[0]["item_id"] == f"evil-test{ESC}</td>;$(touch canary)/../0"


# --- a hub that fails --------------------------------------------------------------------------------

REVISION = "0123456789abcdef0123456789abcdef01234567"
SERVED = ("good", "cut", "gated", "wrong", "down", "gone")
SAYS = {
    "cut": "the download failed (4 tries)",
    "gated": "HF_TOKEN",
    "wrong": "the bytes are not those",
    "down": "status 500 of the hub",
    "gone": "no such revision",
}


def slug(name: str) -> str:
    return f"org--{name}--{REVISION[:8]}"


@pytest.fixture(scope="module")
def hub(base: Place) -> Iterator[LoopbackHub]:
    files = {path.name: path.read_bytes() for path in (base.typed / "alpha").iterdir()}
    with LoopbackHub() as server:
        for name in SERVED:
            server.add_repo(f"org/{name}", "model", REVISION if name != "gone" else "f" * 40, files)
        corpus = {f"{pool}.jsonl": rows(pool, items).encode() for pool, items in (("test", 12), ("train", 30))}
        server.add_repo("org/evil", "dataset", REVISION, corpus)
        yield server


@pytest.fixture(scope="module")
def online(base: Place, hub: LoopbackHub, tmp_path_factory: pytest.TempPathFactory) -> Place:
    root = tmp_path_factory.mktemp("online")
    (root / "home").mkdir()
    project = project_with(root / "project", served={"kind": "hub", "repo": "org/evil", "revision": REVISION})
    variables = {
        "HF_HUB_OFFLINE": "0",
        "HF_ENDPOINT": hub.url.replace("://", f"://me:{SECRETS[1]}@"),
        "HF_TOKEN": SECRETS[0],
        "HF_HUB_DOWNLOAD_TIMEOUT": "5",
        "HF_HUB_ETAG_TIMEOUT": "5",
        "NO_PROXY": "127.0.0.1",
    }
    return Place(typed=root, folder=root / "work", home=root / "home", project=project, variables=variables)


def served(*names: str) -> list[str]:
    models = ", ".join(f"org/{name}@{REVISION}" for name in names)
    return [f"models=[{models}]", "baselines=[train-lookup]", "tasks=[served]", "subset={seed: 1, test: 9, train: 24}"]


@pytest.fixture(scope="module")
def stopped(online: Place, hub: LoopbackHub) -> Ran:
    """The data set cannot be had: one of its files is always cut."""
    hub.cut_next("/datasets/org/evil/resolve", after=50, times=None)
    ran = online.run(*served("good"), flags=["--until", "corpus"])
    hub.mend()
    return ran


@pytest.mark.hub_fault
def test_without_its_data_a_run_ends_with_the_ways_out(online: Place, stopped: Ran) -> None:
    assert stopped.code != 0
    assert [job[0] for job in stopped.jobs] == ["corpus"]
    said = " ".join(stopped.out.split())
    for part in ("test.jsonl of the dataset org/evil", REVISION, "(4 tries)", "HF_ENDPOINT", "data_dir"):
        assert part in said
    assert "Traceback" not in said
    assert untold(online, stopped) == []


@pytest.fixture(scope="module")
def faulty(online: Place, hub: LoopbackHub, stopped: Ran) -> Ran:
    """Six encoders, five of which meet a fault of the hub that stays."""
    hub.cut_next("/org/cut/resolve", after=50, times=None)
    hub.fail_next(
        "/org/gated/resolve",
        status=403,
        times=None,
        headers={"X-Error-Code": "GatedRepo", "X-Error-Message": f"not with {SECRETS[0]}"},
    )
    hub.corrupt("/org/wrong/resolve")
    hub.fail_next("/org/down", status=500, times=None)
    ran = online.run(*served(*SERVED), flags=["--verbose"])
    hub.mend()
    return ran


@pytest.mark.hub_fault(5)
def test_the_other_encoders_finish_and_each_failed_row_says_why(online: Place, faulty: Ran) -> None:
    assert faulty.code != 0
    found = {row["model"]: row for row in rows_of(online.run_folder("test9-train24-", "served"))}
    assert {name for name, row in found.items() if row["status"] == "ok"} == {slug("good"), "train-lookup"}, faulty.out
    for name, words in SAYS.items():
        assert words in found[slug(name)]["reason"]
        assert f"org/{name}" in found[slug(name)]["reason"]
        assert f"{slug(name)} failed" in faulty.out


@pytest.mark.hub_fault(0)
def test_failures_tell_no_secret_and_leave_nothing_half(online: Place, faulty: Ran, hub: LoopbackHub) -> None:
    assert untold(online, faulty) == []
    assert any(SENT in token for token in hub.tokens)
    records = {path.stem for path in (online.typed / "work" / "resources" / "encoders").glob("*.json")}
    assert records == {slug("good")}


@pytest.mark.hub_fault(0)
def test_when_the_hub_is_well_the_same_command_finishes(online: Place, faulty: Ran) -> None:
    names = ("good", "cut")
    ran = online.run(*served(*names))
    assert ran.code == 0, ran.out
    assert sorted(model for rule, model in ran.jobs if rule == "embed") == sorted(map(slug, names[1:]))
    board = online.run_folder("test9-train24-", "served")
    assert {row["status"] for row in rows_of(board)} == {"ok"}
    record = read(online.typed / "work" / "resources" / "encoders" / f"{slug('cut')}.json")
    for file in record["files"]:
        assert hashlib.sha256((Path(record["folder"]) / file["name"]).read_bytes()).hexdigest() == file["sha256"]
