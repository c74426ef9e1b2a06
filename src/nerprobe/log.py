"""Logging into the job's log file, and progress bars where a terminal is there."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from nerprobe.redact import ScrubFormatter

logger = logging.getLogger("nerprobe")


@contextmanager
def logging_to(path: Path | None) -> Iterator[None]:
    """Log to a file, and warnings to standard error as well, while the block runs."""
    logger.setLevel(logging.INFO)
    screen = logging.StreamHandler(sys.stderr)
    screen.setLevel(logging.WARNING)
    handlers: list[logging.Handler] = [screen]
    lost = ""
    if path is not None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handlers.append(logging.FileHandler(path, mode="w", encoding="utf-8"))
        except OSError as error:
            lost = error.strerror or str(error)
    logging.raiseExceptions = False  # a full disk must not turn each line of the log into a traceback
    writers = (logger, logging.getLogger("py.warnings"))
    for handler in handlers:
        handler.setFormatter(ScrubFormatter("%(asctime)s %(levelname)s %(message)s"))
        for writer in writers:
            writer.addHandler(handler)
    logging.captureWarnings(True)
    if lost:
        logger.warning("no log is written: %s: %s", path, lost)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        for handler in handlers:
            for writer in writers:
                writer.removeHandler(handler)
            with suppress(OSError):
                handler.close()


class Bar:
    """A progress bar on standard error; silent where that is no terminal."""

    def __init__(self, progress: Progress, label: str, total: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task(label, total=total)

    def advance(self, amount: int = 1) -> None:
        """Move the bar on."""
        self._progress.advance(self._task, amount)


@contextmanager
def progress_bar(label: str, total: int | None) -> Iterator[Bar]:
    """Show a progress bar while the block runs, if standard error is a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        yield Bar(progress, label, total)
