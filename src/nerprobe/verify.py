"""``nerprobe verify``: every artefact against its seal, its record or its name; what is damaged can be removed.

A JSON artefact carries a seal of its own content. A data file is named, with its SHA-256, by the JSON file that
was written with it. A block of the vector store is named after its bytes.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from nerprobe.array_files import whole_arrays
from nerprobe.errors import ArtefactError
from nerprobe.files import SCHEMA, is_abandoned, read_json, sha256_file

DATA = (".parquet", ".safetensors")
"""Suffixes of files whose hash a record must tell, beside those of a board."""
MADE_FROM = {"metrics": "scored from", "exploratory": "made with"}
"""Folders of records that tell of predictions which are another record's."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One damaged artefact.

    Attributes:
        path: The file.
        what: What is wrong with it.
        remove: What has to go so that it is made again; empty where removing does not help.
    """

    path: Path
    what: str
    remove: tuple[Path, ...]


@dataclass(kw_only=True)
class Report:
    """What a check found.

    Attributes:
        checked: Files looked at.
        faults: Damaged ones.
        litter: What killed jobs left unfinished: no damage, but of no use.
    """

    checked: int = 0
    faults: list[Fault] = field(default_factory=list)
    litter: list[Path] = field(default_factory=list)

    def blame(self, path: Path, what: str, *remove: Path) -> None:
        """Add a damaged file that goes, with what goes with it."""
        self.faults.append(Fault(path=path, what=what, remove=(path, *remove)))


def _records(paths: Sequence[Path], report: Report) -> dict[Path, dict[str, Any]]:
    """Read JSON artefacts, those that are whole."""
    found = {}
    for path in paths:
        report.checked += 1
        try:
            found[path] = read_json(path)
        except ArtefactError as error:
            what = f"{error.what}; got {error.got}" if error.got else error.what
            if isinstance(error.__cause__, OSError):  # not damaged: it may not be read
                report.faults.append(Fault(path=path, what=what, remove=()))
            else:
                report.blame(path, what)
    return found


def named_files(path: Path, record: Mapping[str, Any]) -> dict[Path, str]:
    """Return the data files that a record of a run tells of, with the SHA-256 of each."""
    run, stem = path.parent.parent, path.name.removesuffix(".json")
    places = {
        "corpus_sha256": path.with_suffix(".parquet"),
        "predictions_sha256": run / "predictions" / f"{stem}.parquet",
        "head_sha256": run / "heads" / f"{stem}.safetensors",
    }
    if path.parent.name == "embeddings":
        places["sha256"] = path.with_suffix(".parquet")
    found = {place: str(record[name]) for name, place in places.items() if name in record}
    if path.parent.name in MADE_FROM:
        found = {}
    if path.name in ("leaderboard.json", "learning_curve.json"):
        found |= {path.parent / name: str(digest) for name, digest in record.get("files", {}).items()}
    return found


def _foreign(path: Path, record: Mapping[str, Any], folder: Path) -> str:
    """Return what says that a record belongs elsewhere; empty if nothing does."""
    stem = path.name.removesuffix(".json")
    expected = {"task": folder.parent.name, "run": folder.name}
    if path.parent != folder:
        expected["model"] = stem
    if path.parent.name == "embeddings":
        expected["model"], _, expected["key"] = stem.rpartition(".")
    wrong = [name for name, value in expected.items() if record.get(name, value) != value]
    return f"this file is of another {wrong[0]}: {str(record[wrong[0]])[:80]}" if wrong else ""


def check_run(folder: Path, report: Report) -> None:
    """Check one run folder, ``results/<task>/<run>``."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    records = _records([path for path in files if path.suffix == ".json"], report)
    for path, record in list(records.items()):
        if what := _foreign(path, record, folder):
            report.blame(path, what)
            del records[path]
    hashes = {path: sha256_file(path) for path in files if path.suffix != ".json"}
    told: dict[Path, tuple[str, Path]] = {}
    for path, record in records.items():
        told |= {named: (digest, path) for named, digest in named_files(path, record).items()}
    report.checked += len(hashes)
    for path, found in hashes.items():
        if path in told:
            if found != told[path][0]:
                report.blame(path, f"this file differs from its record in {told[path][1].relative_to(folder)}")
        elif path.suffix in DATA or path.name.startswith(("leaderboard.", "learning_curve.")):
            report.blame(path, "no whole record tells what this file should hold")
    _check_links(folder, records, hashes, report)


def _check_links(
    folder: Path, records: Mapping[Path, Mapping[str, Any]], hashes: Mapping[Path, str], report: Report
) -> None:
    """Check that what was made from other files was made from those that are here."""
    subset = records.get(folder / "subset.json", {}).get("id")
    for path, record in records.items():
        of = record.get("subset")
        of = of.get("id") if isinstance(of, dict) else of
        if subset is not None and of not in (None, subset):
            report.blame(path, f"this file is of another subset: {of}")
        elif path.parent.name in MADE_FROM:
            predictions = folder / "predictions" / f"{path.stem}.parquet"
            told = record.get("predictions_sha256")
            if hashes.get(predictions, told) != told:
                how = MADE_FROM[path.parent.name]
                report.blame(path, f"not {how} the {predictions.relative_to(folder)} that is here")
    board = records.get(folder / "leaderboard.json")
    if board is not None:
        here = {path.name: sha256_file(path) for path in (folder / "metrics").glob("*.json") if path.is_file()}
        other = [name for name, digest in board.get("metrics_sha256", {}).items() if here.get(name) != digest]
        if other:
            boards = [*sorted(folder.glob("leaderboard.*")), *sorted(folder.glob("plots/*.svg"))]
            report.blame(folder / "leaderboard.json", f"not made from the metrics/{other[0]} that is here", *boards)


def _check_encoders(root: Path, report: Report) -> None:
    """Check the records of fetched encoders and the files that they name, but not a user's own folders."""
    records = _records(sorted(root.glob("encoders/*.json")), report)
    _records(sorted(root.glob("encoders/failures/*.json")), report)
    for path, record in records.items():
        if record["source"]["kind"] == "folder":
            continue
        for file in record["files"]:
            own = Path(record["folder"]) / file["name"]
            if own.is_file():
                report.checked += 1
                if own.stat().st_size != file["size"] or sha256_file(own) != file["sha256"]:
                    what = "this file differs from its record; fetching it again mends it"
                    report.faults.append(Fault(path=own, what=f"{what} ({path})", remove=(path,)))


def whole_block(path: Path) -> bool:
    """Say whether a block of the vector store is unchanged and of this version."""
    try:
        with safe_open(str(path), framework="np") as opened:
            about = json.loads(opened.metadata()["nerprobe"])
        with path.open("rb") as handle:
            digest = hashlib.file_digest(handle, "sha256").hexdigest()
        return bool(about["schema"] == SCHEMA and digest[:16] == path.stem)
    except (SafetensorError, OSError, KeyError, TypeError, ValueError):
        return False


def check_resources(root: Path, report: Report) -> None:
    """Check ``resources/``: records of encoders, blocks of vectors, layers of sweeps."""
    _check_encoders(root, report)
    kinds: tuple[tuple[str, Callable[[Path], bool]], ...] = (
        ("vectors/*/*.safetensors", whole_block),
        ("sweeps/*/*/*.safetensors", whole_arrays),
    )
    for pattern, whole in kinds:
        for path in sorted(root.glob(pattern)):
            report.checked += 1
            if not whole(path):
                report.blame(path, "this file is damaged or of another version")
    for path in sorted(root.glob("sweeps/*/encoder.json")):
        report.checked += 1
        try:
            read_json(path)
        except ArtefactError as error:  # in which precision its layers are is not known any more
            report.blame(path, error.what, *sorted(path.parent.glob("layer-*")))


def verify(folders: Sequence[Path]) -> Report:
    """Check run folders, or all of ``results/`` and ``resources/`` if none is named.

    Raises:
        ArtefactError: If a named folder is no run folder.
    """
    report = Report()
    for folder in folders:
        if not any((folder / name).exists() for name in ("corpus.json", "corpus.parquet", "subset.json")):
            todo = "name a run folder: results/<task>/<run>"
            raise ArtefactError("nothing to check here", where=str(folder), todo=todo)
    here = sorted(path for path in Path("results").glob("*/*") if path.is_dir())
    for folder in [place.resolve() for place in folders] or here:
        check_run(folder, report)
    if not folders:
        check_resources(Path("resources"), report)
    for top in folders or (Path("results"), Path("resources")):
        report.litter += [path for path in sorted(top.rglob(".*.tmp")) if is_abandoned(path)]
    return report


def _agreed(yes: bool) -> bool:
    if yes:
        return True
    if not sys.stdin.isatty():
        todo = "say --yes to remove without being asked"
        raise ArtefactError("nothing was removed", where="nerprobe verify --remove", todo=todo)
    return input("Remove them? [y/N] ").strip().lower() in ("y", "yes")


def verify_artefacts(folders: Sequence[Path], *, remove: bool, yes: bool) -> bool:
    """Print what is damaged, and remove it if that is asked for.

    Returns:
        Whether nothing damaged is left.
    """
    report = verify(folders)
    for fault in report.faults:
        print(f"{fault.path}: {fault.what}")
    gone = sorted({path for fault in report.faults for path in fault.remove} | set(report.litter))
    if not report.faults:
        print(f"{report.checked} files checked: none is damaged.")
        if not (remove and gone):
            return True
    else:
        print(f"{report.checked} files checked: {len(report.faults)} damaged.")
    if not remove:
        print("To mend: nerprobe verify --remove takes them away, then the same snakemake command makes them again.")
        return False
    print("These go:" if gone else "Nothing to remove.", *(f"\n  {path}" for path in gone), sep="")
    if not _agreed(yes):
        print("Nothing was removed.")
        return not report.faults
    for path in gone:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    print("Removed. The same snakemake command as before makes again what is needed.")
    return all(fault.remove for fault in report.faults)
