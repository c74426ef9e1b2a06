"""``nerprobe doctor``: whether an encoder can be used, and what it would take, before any long job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from nerprobe.checkup import (
    Finding,
    Setup,
    code_finding,
    encoder_finding,
    limit_finding,
    short,
    token_findings,
    weights_finding,
)
from nerprobe.checkup_numbers import number_findings
from nerprobe.config import PROJECT, closest, load_lock, load_registry, load_task, read_config, validate
from nerprobe.encoders import Encoder, resolve
from nerprobe.errors import AlignmentError, ConfigError, NerprobeError
from nerprobe.estimate import MIB, Workload, workload_of
from nerprobe.fetch import fetch_encoder
from nerprobe.hard_texts import hard_items
from nerprobe.plan import make_run
from nerprobe.redact import scrub, visible
from nerprobe.render import wide_console

__all__ = ["Finding", "Setup", "diagnose", "examine", "report"]

STYLES = {"ok": "green", "warning": "yellow", "fault": "bold red"}


def examine(setup: Setup, workloads: Sequence[Workload] = ()) -> list[Finding]:
    """Examine one encoder.

    Args:
        setup: The encoder and how it would be used.
        workloads: What to estimate time and memory for.

    Returns:
        One finding a check; checks that need an earlier one to succeed are left out where it did not.
    """
    findings = [weights_finding(setup.files), code_finding(setup.folder, trusted=setup.trusted)]
    try:
        encoder = setup.load(setup.settings["dtype"])
    except NerprobeError as error:
        return [*findings, Finding("load", "fault", str(error))]
    except (RuntimeError, AssertionError) as error:  # too little device memory, or no such device
        todo = "use another embed.device or embed.dtype"
        return [*findings, Finding("load", "fault", f"cannot be put on device {setup.device}: {short(error)}; {todo}")]
    findings += [encoder_finding(encoder), limit_finding(encoder, setup.settings)]
    if findings[-1].status == "fault":
        return findings
    try:
        findings += token_findings(encoder, hard_items())
    except AlignmentError as error:
        return [*findings, Finding("offsets", "fault", f"{error}; words cannot be aligned, choose another encoder")]
    return findings + number_findings(setup, encoder, workloads)


def diagnose(reference: str, *, configfile: Path | None, data_dir: Path | None, base: Path) -> list[Finding]:
    """Fetch an encoder if needed and examine it for the configured tasks.

    Args:
        reference: As in ``models`` of the configuration.
        configfile: Configuration on top of the default one, or None.
        data_dir: As in the configuration, or None.
        base: Folder that relative paths start from and ``results/`` lies in.

    Raises:
        NerprobeError: If the reference means nothing, or the configuration is wrong.
    """
    # Made absolute first: a folder that is called "none" would be read as no folder.
    config = _configuration(configfile, None if data_dir is None else (base / data_dir).resolve())
    encoder = resolve(
        reference,
        registry=load_registry(PROJECT / "config" / "models.yaml"),
        lock=load_lock(PROJECT / "config" / "models.lock.yaml"),
        embed=config["embed"],
        base=base,
    )
    if not encoder.fetched:
        return [Finding("source", "ok", "a built-in control: nothing to fetch or load, always usable")]
    try:
        record: Mapping[str, Any] = fetch_encoder(source=encoder.source)
    except NerprobeError as error:
        return [Finding("source", "fault", str(error))]
    setup = Setup(
        folder=Path(record["folder"]),
        files=record["files"],
        source=encoder.source,
        settings=encoder.settings,
        device=config["embed"]["device"],
        batch_tokens=config["embed"]["batch_tokens"],
    )
    workloads, unknown = _workloads(config, base)
    return [source_finding(encoder, record), *examine(setup, workloads), *unknown]


def _configuration(configfile: Path | None, data_dir: Path | None) -> dict[str, Any]:
    """Return the default configuration with a file's values on top, checked."""
    merged = read_config(configfile, **({} if data_dir is None else {"data_dir": str(data_dir)}))
    checked: dict[str, Any] = validate({"data_dir": None, **merged}, schema="config", where="config")
    return checked


def _workloads(config: Mapping[str, Any], base: Path) -> tuple[list[Workload], list[Finding]]:
    """Return how much text each configured task has, and a warning for each that cannot be told."""
    known, unknown = [], []
    for name in config["tasks"]:
        path = PROJECT / "config" / "tasks" / f"{name}.yaml"
        try:
            if not path.is_file():
                names = [file.stem for file in path.parent.glob("*.yaml")]
                raise ConfigError("no task file of this name", where="config: tasks", todo=closest(name, names))
            workload = workload_of(make_run(load_task(path), config, base=base), base=base)
        except NerprobeError as error:
            unknown.append(Finding(f"task {name}", "warning", f"not estimated: {error}"))
            continue
        if workload is None:
            text = "not estimated: its pools are taken whole and no corpus.parquet is there yet"
            unknown.append(Finding(f"task {name}", "warning", text))
        else:
            known.append(workload)
    return known, unknown


def source_finding(encoder: Encoder, record: Mapping[str, Any]) -> Finding:
    """Say where an encoder comes from and how its revision is pinned."""
    source = encoder.source
    place = {
        "hub": f"hub, {source.get('repo')} at revision {encoder.revision}",
        "wheel": f"wheel, weights {encoder.revision[:16]}…",
        "folder": f"folder {source.get('path')}, content {encoder.revision[:16]}…",
        "random": "made on the spot from a fixed seed",
    }[encoder.kind]
    total = sum(file["size"] for file in record["files"]) / MIB
    return Finding("source", "ok", f"{place}; {len(record['files'])} files, {total:,.1f} MiB; key {encoder.key}")


def report(reference: str, findings: Sequence[Finding]) -> bool:
    """Print findings: a table on a terminal, else one plain line each.

    Returns:
        Whether the encoder is usable: no finding is a fault.
    """
    console = wide_console()
    lines = [(finding.status, visible(finding.name), visible(scrub(finding.text))) for finding in findings]
    if console.is_terminal:
        table = Table(box=None, pad_edge=False, show_header=False)
        for status, name, text in lines:
            table.add_row(Text(status, style=STYLES[status]), Text(name), Text(text))
        console.print(table)
    else:
        for status, name, text in lines:
            print(f"{status:<8} {name:<12} {text}")
    faults, warnings = (sum(finding.status == kind for finding in findings) for kind in ("fault", "warning"))
    verdict = f"not usable: {faults} of {len(findings)} checks failed" if faults else "usable"
    some = f", {warnings} warning{'s' if warnings > 1 else ''}" if warnings else ""
    print(f"{visible(reference)}: {verdict}{some}")
    return not faults
