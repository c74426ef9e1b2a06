"""Each fault of a hub, for a data set's file, a model's file list and its weights: how it ends, and what it leaves.

The real client of the hub, against a server on 127.0.0.1. A fault that stays ends in one clear line after a bounded
number of tries, leaves nothing that passes as complete, and is got over as soon as the hub is well again.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hub_client import FAST, OTHER_REV, REV, TOKEN, Client
from loopback_hub import LoopbackHub

pytestmark = pytest.mark.hub_fault

PLACES = ("data", "list", "weights")
WEIGHTS = b"weights" * 5000
FILES = {"config.json": b'{"model_type": "bert"}', "tokenizer.json": b"{}", "model.safetensors": WEIGHTS}
SECRET = {"X-Error-Message": f"not with {TOKEN}"}


@dataclass(frozen=True)
class Fault:
    """What a hub does to one path, always, and how that ends at each place it can happen to."""

    order: Callable[[LoopbackHub, str], None]
    error: str
    says: str
    tries: int = 1
    places: tuple[str, ...] = PLACES
    other: dict[str, str] = field(default_factory=dict)
    """Another error class at some place."""


def status(code: int, **headers: str) -> Callable[[LoopbackHub, str], None]:
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda hub, path: hub.fail_next(path, status=code, times=None, headers=told | SECRET)


def circle(hub: LoopbackHub, path: str) -> None:
    hub.fail_next(path, status=302, times=None, headers={"Location": path})


def page(hub: LoopbackHub, path: str) -> None:
    hub.fail_next(path, status=200, times=None, headers={"Content-Type": "text/html"}, body=b"<html>Log in</html>")


def nested(hub: LoopbackHub, path: str) -> None:
    hub.fail_next(path, status=200, times=None, body=b"[" * 100_000)


def named_by(etag: str) -> Callable[[LoopbackHub, str], None]:
    return lambda hub, path: hub.lie(path, {"ETag": f'"{etag}"', "X-Linked-Etag": f'"{etag}"'})


TRIES = FAST["attempts"]
FILE = ("data", "weights")
CUT_LIST = {"list": "HubOfflineError"}
"""An answer that is not whole is none: only the cache could serve."""
FAULTS = {
    "cut": Fault(
        lambda hub, path: hub.cut_next(path, after=100, times=None), "HubError", "(2 tries)", TRIES, other=CUT_LIST
    ),
    "reset": Fault(
        lambda hub, path: hub.cut_next(path, after=100, times=None, reset=True),
        "HubError",
        "(2 tries)",
        TRIES,
        other=CUT_LIST,
    ),
    "nothing sent": Fault(
        lambda hub, path: hub.cut_next(path, after=0, times=None), "HubError", "(2 tries)", TRIES, other=CUT_LIST
    ),
    "hangs": Fault(lambda hub, path: hub.hang(path), "HubOfflineError", "cannot be reached (2 tries)", TRIES),
    "hangs in the body": Fault(
        lambda hub, path: hub.hang(path, in_body=True), "HubError", "(2 tries)", TRIES, other=CUT_LIST
    ),
    "500": Fault(status(500), "HubError", "status 500", TRIES),
    "429": Fault(status(429), "HubError", "status 429", TRIES),
    "429 for an hour": Fault(status(429, Retry_After="3600"), "HubError", "asks to wait 3600 s", TRIES),
    "429 for ever": Fault(status(429, Retry_After="9" * 400), "HubError", "status 429", TRIES),
    "418": Fault(status(418), "HubError", "status 418"),
    "401": Fault(status(401), "HubAccessError", "HF_TOKEN"),
    "403": Fault(status(403), "HubAccessError", "HF_TOKEN"),
    "gated": Fault(status(403, X_Error_Code="GatedRepo"), "HubAccessError", "ask for access on its page"),
    "gated without token": Fault(status(401, X_Error_Code="GatedRepo"), "HubAccessError", "HF_TOKEN"),
    "disabled": Fault(status(403, X_Error_Message="Access to this resource is disabled."), "HubAccessError", "403"),
    "no such revision": Fault(status(404, X_Error_Code="RevisionNotFound"), "HubMissingError", "no such revision"),
    "no such repository": Fault(status(404, X_Error_Code="RepoNotFound"), "HubMissingError", "no such repository"),
    "no such file": Fault(status(404, X_Error_Code="EntryNotFound"), "HubMissingError", "no such file", places=FILE),
    "bare 404": Fault(status(404), "HubMissingError", "no such repository, revision or file"),
    "redirects in a circle": Fault(circle, "HubError", "", 21 * TRIES),
    "a page to log in": Fault(page, "HubError", ""),
    "endless JSON": Fault(nested, "HubError", "", TRIES, places=("list",)),
    "wrong bytes": Fault(lambda hub, path: hub.corrupt(path), "HashMismatchError", "wrong bytes too", 2, places=FILE),
    "more bytes than announced": Fault(
        lambda hub, path: hub.flood(path), "HubError", "more bytes come than were announced", TRIES, places=FILE
    ),
    "another revision": Fault(
        lambda hub, path: hub.lie(path, {"X-Repo-Commit": OTHER_REV}), "HubError", "another revision", places=FILE
    ),
    "a revision that climbs": Fault(
        lambda hub, path: hub.lie(path, {"X-Repo-Commit": "../../../../evil"}), "HubError", "", places=FILE
    ),
    "a hash that climbs": Fault(named_by("../../../../evil"), "HubError", "ETag that is a path", places=FILE),
    "a hash that is a path": Fault(named_by("/tmp/nerprobe-evil"), "HubError", "ETag that is a path", places=FILE),
}
LEAVING = {"cut", "reset", "hangs in the body", "500", "wrong bytes", "more bytes than announced", "a hash that climbs"}
"""Faults that may leave something behind, or none at all: tried again when the hub is well."""
CASES = [(name, place) for name, fault in FAULTS.items() for place in fault.places]
LATER = [case for case in CASES if case[0] in LEAVING]
Case = tuple[str, str]


def repo(name: str, place: str) -> str:
    return f"org/{place}-{''.join(char if char.isalnum() else '-' for char in name)}"


def asked(name: str, place: str) -> str:
    """The path that a fault is ordered for."""
    own = repo(name, place)
    return {
        "data": f"/datasets/{own}/resolve/{REV}/file.txt",
        "list": f"/api/models/{own}/revision/{REV}",
        "weights": f"/{own}/resolve/{REV}/model.safetensors",
    }[place]


def call(name: str, place: str) -> tuple[str, dict[str, Any]]:
    if place == "data":
        own = {"repo": repo(name, place), "repo_type": "dataset", "revision": REV, "filename": "file.txt"}
        return "hub_file", own
    return "hub_encoder_folder", {"repo": repo(name, place), "revision": REV}


@dataclass
class Tried:
    """What became of each case: while the fault was on, and after; and files that pass as complete meanwhile."""

    answers: dict[Case, dict[str, Any]]
    later: dict[Case, dict[str, Any]]
    asked: dict[Case, int]
    complete: list[str]
    flooded: int
    stderr: str
    root: Path


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Tried:
    root = tmp_path_factory.mktemp("faults")

    def call_all(clients: list[Client], cases: list[Case], **env: str) -> dict[Case, dict[str, Any]]:
        """Three processes, a cache each: most of the time is spent waiting."""
        own = [[case for case in cases if case[1] == place] for place in PLACES]
        with ThreadPoolExecutor() as pool:
            jobs = [
                pool.submit(client.calls, *[call(*case) for case in part], **env)
                for client, part in zip(clients, own, strict=True)
            ]
            return {
                case: answer
                for part, job in zip(own, jobs, strict=True)
                for case, answer in zip(part, job.result(), strict=True)
            }

    with LoopbackHub() as hub:
        clients = [Client(hub, root / "a" / "b" / place) for place in PLACES]
        for name, place in CASES:
            if place == "data":
                hub.add_repo(repo(name, place), "dataset", REV, {"file.txt": WEIGHTS})
            else:
                hub.add_repo(repo(name, place), "model", REV, FILES)
            FAULTS[name].order(hub, asked(name, place))
        answers = call_all(clients, CASES, HF_TOKEN=TOKEN)
        paths = [path.partition("?")[0] for _, path in hub.log]
        kept = (root / "a" / "b").glob("*/hub/*/snapshots/*/*")
        complete = [path.parts[-4] for path in kept if path.stat().st_size == len(WEIGHTS)]
        hub.mend()
        return Tried(
            answers=answers,
            asked={case: paths.count(asked(*case)) for case in CASES},
            complete=complete,
            flooded=hub.flooded,
            stderr="".join(client.stderr for client in clients),
            later=call_all(clients, LATER),
            root=root,
        )


@pytest.mark.parametrize(("name", "place"), CASES, ids=[f"{name}, {place}" for name, place in CASES])
def test_a_fault_that_stays_ends_in_one_clear_line(tried: Tried, name: str, place: str) -> None:
    fault, answer = FAULTS[name], tried.answers[name, place]
    assert answer["error"] == fault.other.get(place, fault.error), answer
    assert fault.says in answer["text"]
    assert repo(name, place) in answer["text"]
    assert REV in answer["text"]
    assert "HF_ENDPOINT" in answer["text"]
    assert "\n" not in answer["text"]
    assert tried.asked[name, place] <= 2 * fault.tries  # a HEAD goes before each GET of a file
    assert answer["seconds"] < 20


@pytest.mark.hub_fault(0)
@pytest.mark.parametrize(("name", "place"), LATER, ids=[f"{name}, {place}" for name, place in LATER])
def test_once_the_hub_is_well_the_same_call_succeeds(tried: Tried, name: str, place: str) -> None:
    path = Path(tried.later[name, place]["value"])
    assert (path if place == "data" else path / "model.safetensors").read_bytes() == WEIGHTS


@pytest.mark.hub_fault(0)
def test_nothing_passes_as_complete_while_a_fault_is_on(tried: Tried) -> None:
    # A file of another revision is whole, and lies under that revision's name.
    assert {name for name in tried.complete if "another-revision" not in name} == set()


@pytest.mark.hub_fault(0)
def test_a_flood_is_left_soon(tried: Tried) -> None:
    assert tried.flooded < 150_000_000


@pytest.mark.hub_fault(0)
def test_nothing_is_written_outside_the_cache(tried: Tried) -> None:
    assert list(tried.root.rglob("*evil*")) == []
    assert not Path("/tmp/nerprobe-evil").exists()
    assert sorted(path.name for path in (tried.root / "a" / "b").iterdir()) == list(PLACES)


@pytest.mark.hub_fault(0)
def test_no_fault_tells_the_token(tried: Tried) -> None:
    assert TOKEN not in tried.stderr + "".join(answer["text"] for answer in tried.answers.values())


# --- a full disk --------------------------------------------------------------------------------------

LIMIT = "ulimit -f 20"
"""Files of at most 10 to 20 kB: the write itself fails, as on a full disk."""
SMALL_DISK = 'mkdir -p "$HF_HOME" && mount -t tmpfs -o size=24k none "$HF_HOME"'


def unshared() -> bool:
    done = subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.hub_fault(2)
@pytest.mark.parametrize("place", ["data", "weights"])
def test_a_write_that_fails_ends_clearly_and_goes_on_later(tmp_path: Path, place: str) -> None:
    with LoopbackHub() as hub:
        hub.add_repo(repo("full", "data"), "dataset", REV, {"file.txt": WEIGHTS})
        hub.add_repo(repo("full", "weights"), "model", REV, FILES)
        limited, free = Client(hub, tmp_path / "home", LIMIT), Client(hub, tmp_path / "home")
        (refused,) = limited.calls(call("full", place))
        assert refused["error"] == "HubError"
        assert "it cannot be written into the cache" in refused["text"]
        assert "File too large" in refused["text"]
        assert "free space" in refused["text"]
        (later,) = free.calls(call("full", place))
    path = Path(later["value"])
    assert (path if place == "data" else path / "model.safetensors").read_bytes() == WEIGHTS


@pytest.mark.skipif(not unshared(), reason="no small disk can be mounted here")
@pytest.mark.hub_fault(2)
def test_a_full_disk_ends_clearly(tmp_path: Path) -> None:
    with LoopbackHub() as hub:
        hub.add_repo(repo("full", "data"), "dataset", REV, {"file.txt": WEIGHTS})
        hub.add_repo(repo("full", "weights"), "model", REV, FILES)
        client = Client(hub, tmp_path / "home", SMALL_DISK)
        client.before = ["unshare", "-rm", *client.before]
        answers = client.calls(call("full", "data"), call("full", "weights"))
    for answer in answers:
        assert answer["error"] == "HubError", answer
        assert "No space left on device" in answer["text"]
        assert "HF_HOME" in answer["text"]
