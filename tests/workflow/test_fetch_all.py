"""Fetch where there is a network, compute where there is none."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers import Place, Ran
from loopback_hub import LoopbackHub

pytestmark = pytest.mark.workflow

REPO, COMMIT = "some-lab/tiny", "0123456789abcdef0123456789abcdef01234567"
MODEL = "some-lab--tiny--01234567"
CONFIG = [
    "tasks=[sample]",
    f"models=[{REPO}@{COMMIT}]",
    "baselines=[random-bert]",
    "subset={seed: 1, test: 20, train: 60}",
]
NOWHERE = "http://127.0.0.1:9"


@dataclass(frozen=True, kw_only=True)
class HubPlace(Place):
    """A place with a hub, or with one that cannot be reached."""

    hub: str = NOWHERE
    offline: str = "0"

    @property
    def environment(self) -> dict[str, str]:
        times = {"HF_HUB_DOWNLOAD_TIMEOUT": "5", "HF_HUB_ETAG_TIMEOUT": "5", "HF_HUB_DISABLE_XET": "1"}
        own = {"HF_ENDPOINT": self.hub, "HF_HOME": str(self.typed / "hf"), "HF_HUB_OFFLINE": self.offline}
        return {**super().environment, **times, **own}


@pytest.fixture(scope="module")
def here(base: Place) -> HubPlace:
    return HubPlace(typed=base.typed, folder=base.typed / "fetched first", home=base.home)


@pytest.fixture(scope="module")
def fetched(here: HubPlace) -> Ran:
    with LoopbackHub() as hub:
        files = {path.name: path.read_bytes() for path in (here.typed / "alpha").iterdir()}
        hub.add_repo(REPO, "model", COMMIT, files)
        return here.at(str(here.folder), hub=hub.url).run(*CONFIG, flags=["fetch_all"])


def test_only_what_needs_a_network_is_done(here: HubPlace, fetched: Ran) -> None:
    assert fetched.code == 0, fetched.out
    done = [job for job in fetched.jobs if job[0] != "fetch_all"]
    assert done == [("corpus", ""), ("fetch_encoder", "random-bert"), ("fetch_encoder", MODEL)]
    left = {path.name for path in (here.folder or here.typed).rglob("results/*/*/*")}
    assert left == {"corpus.parquet", "corpus.json"}


def test_the_rest_needs_none(here: HubPlace, fetched: Ran) -> None:
    ran = here.at(str(here.folder), offline="1").run(*CONFIG)
    assert ran.code == 0, ran.out
    rules = {rule for rule, _ in ran.jobs}
    assert rules >= {"subset", "embed", "probe", "score", "leaderboard"}
    assert not rules & {"corpus", "fetch_encoder"}
    assert (here.run_folder(task="sample") / "metrics" / f"{MODEL}.json").exists()


def test_fetching_twice_does_nothing(here: HubPlace, fetched: Ran) -> None:
    assert here.run(*CONFIG, flags=["fetch_all"]).nothing


def test_what_was_not_fetched_ends_at_once_where_there_is_no_network(here: HubPlace, tmp_path: Path) -> None:
    lonely = here.at("never fetched", offline="1")
    environment = {**lonely.environment, "HF_HOME": str(tmp_path), "NERPROBE_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        lonely.command(CONFIG, ["fetch_all"]), cwd=lonely.typed, env=environment, capture_output=True, text=True,
        timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert f"{REPO}" in done.stdout + done.stderr
    assert "HF_HUB_OFFLINE" in done.stdout + done.stderr
