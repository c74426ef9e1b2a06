"""Damaged artefacts: ``nerprobe verify`` names each, no stage reads one, and the documented steps mend them all."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import Place
from makers import run_nerprobe
from safetensors.numpy import save

from nerprobe.embed import write_embeddings
from nerprobe.errors import ArtefactError
from nerprobe.files import read_json, write_json
from nerprobe.leaderboard import write_board
from nerprobe.plan import Plan, make_plan
from nerprobe.probe import write_probe
from nerprobe.score import write_metrics
from nerprobe.subset import write_subset
from nerprobe.verify import Report, verify

pytestmark = pytest.mark.workflow

MODELS = ("./alpha",)
BASELINES = "train-lookup,char-ngrams,random-bert"
RUN = "results/profner/test20-train60-*"
ARTEFACTS = {
    "corpus table": f"{RUN}/corpus.parquet",
    "corpus record": f"{RUN}/corpus.json",
    "subset": f"{RUN}/subset.json",
    "leakage": f"{RUN}/leakage.json",
    "vectors": f"{RUN}/embeddings/alpha.*.parquet",
    "manifest": f"{RUN}/embeddings/alpha.*.json",
    "predictions": f"{RUN}/predictions/alpha.parquet",
    "head": f"{RUN}/heads/alpha.safetensors",
    "head record": f"{RUN}/heads/alpha.json",
    "exploratory": f"{RUN}/exploratory/alpha.json",
    "metrics": f"{RUN}/metrics/alpha.json",
    "board as CSV": f"{RUN}/leaderboard.csv",
    "board as Markdown": f"{RUN}/leaderboard.md",
    "board as a page": f"{RUN}/leaderboard.html",
    "board": f"{RUN}/leaderboard.json",
    "encoder record": "resources/encoders/random-bert.json",
    "block of vectors": "resources/vectors/*/*.safetensors",
}
READ_BY = {
    "corpus table": ("subset", "embed", "probe", "score"),
    "corpus record": ("subset", "embed", "probe", "score", "leaderboard"),
    "subset": ("embed", "probe", "score", "leaderboard"),
    "leakage": ("leaderboard",),
    "vectors": ("probe",),
    "manifest": ("probe", "leaderboard"),
    "predictions": ("score",),
    "head record": ("score",),
    "exploratory": ("score",),
    "metrics": ("leaderboard",),
}


# --- damages ------------------------------------------------------------------------------------------


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _empty(path: Path) -> None:
    os.truncate(path, 0)


def _flip(path: Path) -> None:
    """Flip one bit, in a JSON file of a digit: it stays whole JSON of the right shape."""
    data = bytearray(path.read_bytes())
    places = [place for place, byte in enumerate(data) if path.suffix != ".json" or chr(byte).isdigit()]
    data[places[len(places) // 2]] ^= 1
    path.write_bytes(data)


def _foreign(path: Path) -> None:
    """Put a whole file of the same kind there that somebody else made."""
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"item_id": ["a"], "vector": [1.0]}), path)
    elif path.suffix == ".safetensors":
        path.write_bytes(save({}, metadata={"format": "pt"}))
    else:
        path.write_text('{"schema": 1, "items": {}, "source": {}, "rows": []}\n')


def _of_another_version(path: Path) -> None:
    """Write the same content as a later version might: whole, sealed, and of another schema."""
    write_json(path, read_json(path) | {"schema": 2})


DAMAGES: dict[str, Callable[[Path], None]] = {"cut": _cut, "empty": _empty, "flipped": _flip, "foreign": _foreign}


# --- one finished run, damaged again and again ----------------------------------------------------------


@dataclass(frozen=True)
class Finished:
    """A copy of the first run, and what is needed to call its stages."""

    place: Place
    plan: Plan

    @property
    def folder(self) -> Path:
        return self.place.folder or self.place.typed

    @property
    def run(self) -> Path:
        return self.place.run_folder()

    def find(self, artefact: str) -> Path:
        return sorted(self.folder.glob(ARTEFACTS[artefact]))[0]

    def stage(self, name: str) -> None:
        """Run a stage for the encoder alpha as its rule does; what it writes goes beside the run."""
        run, out = self.run, self.run.with_name("again")
        spec, alpha = self.plan.runs["profner"], self.plan.encoders["alpha"]
        table, info, subset = run / "corpus.parquet", run / "corpus.json", run / "subset.json"
        vectors = run / "embeddings" / f"alpha.{alpha.key}.parquet"
        manifest = vectors.with_suffix(".json")
        facts = run / "heads" / "alpha.json"
        if name == "subset":
            write_subset(
                spec.subset, corpus=table, corpus_info=info, output=out / "subset.json", leakage=out / "l.json"
            )
        elif name == "embed":
            store = self.folder / "resources" / "vectors" / alpha.key
            record = self.folder / "resources" / "encoders" / "alpha.json"
            made = {"output": out / "v.parquet", "manifest": out / "v.json"}
            inputs: dict[str, Any] = {"corpus": table, "subset": subset, "encoder": record, "store": store}
            write_embeddings(alpha.embed_spec, **inputs, device="cpu", budget=None, **made)
        elif name == "probe":
            made = {"predictions": out / "p.parquet", "head": out / "h.safetensors", "facts": out / "h.json"}
            made["exploratory"] = out / "e.json"
            inputs = {"corpus": table, "subset": subset, "vectors": vectors, "manifest": manifest}
            write_probe({**spec.probe, **alpha.probe_spec}, **inputs, **made, threads=1)
        elif name == "score":
            inputs = {"predictions": run / "predictions" / "alpha.parquet", "facts": facts, "subset": subset}
            inputs |= {"exploratory": run / "exploratory" / "alpha.json", "corpus": table, "corpus_info": info}
            write_metrics(run=run.name, **inputs, output=out / "m.json")
        else:
            board = self.plan.board
            write_board(run, requested=list(board["models"]), keys=board["models"], bootstrap=board["bootstrap"])


def copied(base: Place, place: Place, name: str) -> Place:
    """Copy the working folder of the first run."""
    there = base.at(name)
    shutil.copytree(place.folder or place.typed, there.folder or there.typed, symlinks=True)
    return there


@pytest.fixture(scope="module")
def finished(base: Place, place: Place, board: Path) -> Finished:
    config = {"models": list(MODELS), "baselines": BASELINES.split(","), "data_dir": "data", "tasks": ["profner"]}
    from nerprobe.config import read_config

    sizes = {"seed": 1, "test": 20, "train": 60}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NERPROBE_CACHE", str(base.home / "cache"))
        plan = make_plan({**read_config(None), **config, "subset": sizes}, base=base.typed)
    return Finished(place=copied(base, place, "damaged work"), plan=plan)


@pytest.fixture
def damaged(
    finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str, Callable[[Path], None]], Path]]:
    """Damage an artefact for one test."""
    kept: dict[Path, bytes] = {}
    monkeypatch.chdir(finished.folder)

    def damage(artefact: str, how: Callable[[Path], None]) -> Path:
        path = finished.find(artefact)
        kept[path] = path.read_bytes()
        how(path)
        assert path.read_bytes() != kept[path]
        return path.relative_to(finished.folder)

    yield damage
    for path, data in kept.items():
        path.write_bytes(data)
    shutil.rmtree(finished.run.with_name("again"), ignore_errors=True)


def named(report: Report) -> list[str]:
    return [str(fault.path) for fault in report.faults]


def test_a_finished_run_is_whole(finished: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(finished.folder)
    report = verify([])
    assert (named(report), report.litter) == ([], [])
    assert report.checked > 30


def test_a_touched_file_is_whole(finished: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(finished.folder)
    later = time.time() + 60
    for artefact in ARTEFACTS:
        os.utime(finished.find(artefact), (later, later))
    assert named(verify([])) == []


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("artefact", ARTEFACTS)
def test_verify_names_a_damaged_file(damaged: Callable[..., Path], artefact: str, how: str) -> None:
    path = damaged(artefact, DAMAGES[how])
    found = named(verify([]))
    assert str(path) in found
    # Beside it at most what hangs on it: a board, or a data file whose record cannot be read any more.
    hanging = {"corpus record": 1, "manifest": 1, "head record": 2, "metrics": 1, "predictions": 2, "board": 3}
    assert len(found) <= 1 + hanging.get(artefact, 0)


@pytest.mark.parametrize("artefact", [name for name, pattern in ARTEFACTS.items() if pattern.endswith(".json")])
def test_verify_names_a_record_of_another_version(damaged: Callable[..., Path], artefact: str) -> None:
    assert str(damaged(artefact, _of_another_version)) in named(verify([]))


@pytest.mark.parametrize("artefact", ["manifest", "predictions", "head", "head record", "exploratory", "metrics"])
def test_verify_names_a_whole_file_of_another_model(
    finished: Finished, damaged: Callable[..., Path], artefact: str
) -> None:
    path = finished.find(artefact)
    other = next(path.parent.glob(f"random-bert*{path.suffix}")).read_bytes()

    def swap(path: Path) -> None:
        path.write_bytes(other)

    assert str(damaged(artefact, swap)) in named(verify([]))


@pytest.mark.parametrize("how", [*DAMAGES, "version"])
@pytest.mark.parametrize(("artefact", "stage"), [(name, stage) for name in READ_BY for stage in READ_BY[name]])
def test_no_stage_reads_a_damaged_file(
    finished: Finished, damaged: Callable[..., Path], artefact: str, stage: str, how: str
) -> None:
    if how == "version" and not ARTEFACTS[artefact].endswith(".json"):
        pytest.skip("no field for a version")
    damaged(artefact, DAMAGES.get(how, _of_another_version))
    with pytest.raises(ArtefactError) as caught:
        finished.stage(stage)
    assert "nerprobe verify --remove" in str(caught.value)
    assert not finished.run.with_name("again").exists()


@pytest.mark.parametrize("stage", ["subset", "embed", "probe", "score"])
def test_stages_read_what_is_whole(finished: Finished, damaged: Callable[..., Path], stage: str) -> None:
    """Or the tests above could not fail."""
    finished.stage(stage)
    assert any(finished.run.with_name("again").iterdir())


# --- the whole way: damage, the next commands, and the same metrics ---------------------------------------


def metrics_of(place: Place) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (place.run_folder() / "metrics").iterdir()}


def verified(place: Place, *options: str) -> tuple[int, str]:
    done = run_nerprobe("verify", *options, cwd=place.folder or place.typed)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


def mended(place: Place, before: dict[str, bytes]) -> None:
    """Do what the messages say: nothing is removed by hand, and nothing that was damaged is ever scored."""
    config = place.config(*MODELS, baselines=BASELINES)
    ran = place.run(*config)
    assert "Traceback" not in ran.out
    left = place.run_folder() / "metrics"
    for path in left.iterdir() if left.exists() else []:
        with suppress(ArtefactError):
            read_json(path)
            assert path.read_bytes() == before[path.name]
    assert verified(place, "--remove")[0] == 1, "not without being asked"
    assert verified(place, "--remove", "--yes")[0] == 0
    ran = place.run(*config)
    assert ran.code == 0, ran.out
    assert metrics_of(place) == before
    assert verified(place) == (0, verified(place)[1])
    assert place.dry(*config).nothing


@pytest.mark.parametrize("how", ["cut", "flipped"])
def test_all_files_damaged_at_once_are_made_again(base: Place, place: Place, board: Path, how: str) -> None:
    there = copied(base, place, f"all {how}")
    before = metrics_of(there)
    folder = there.folder or there.typed
    paths = [path for pattern in ARTEFACTS.values() for path in sorted(folder.glob(pattern))]
    assert len(paths) >= len(ARTEFACTS)
    for path in paths:
        told = path.stat()
        DAMAGES[how](path)
        if how == "flipped":  # as a failing disk does: no time tells
            os.utime(path, ns=(told.st_atime_ns, told.st_mtime_ns))
    code, out = verified(there)
    assert code == 1
    for path in paths:
        assert f"{path.relative_to(folder)}: " in out
    mended(there, before)


@pytest.mark.parametrize("artefact", ["corpus record", "vectors", "predictions", "encoder record"])
def test_a_single_damaged_file_is_made_again(base: Place, place: Place, board: Path, artefact: str) -> None:
    there = copied(base, place, f"one {artefact}")
    before = metrics_of(there)
    DAMAGES["cut"](sorted((there.folder or there.typed).glob(ARTEFACTS[artefact]))[0])
    mended(there, before)
