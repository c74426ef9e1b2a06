"""What every stage command shares: its log file, and the record that a failed encoder leaves."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nerprobe.errors import NerprobeError, StorageError
from nerprobe.files import storage_error, write_json
from nerprobe.log import logger, logging_to
from nerprobe.redact import scrub, visible


@contextmanager
def stage(name: str, *, log: Path | None, failure: Path | None = None) -> Iterator[None]:
    """Run one stage: log to its file, end a user's mistake in one line, and keep the reason of a failure.

    Args:
        name: The stage.
        log: Its log file, or None.
        failure: ``failures/<model>.json`` of a stage that belongs to one encoder: written when it fails,
            removed when it succeeds.

    Raises:
        SystemExit: With code 1 if the stage failed.
    """
    with logging_to(log):
        try:
            yield
        except Exception as error:
            known = error if isinstance(error, NerprobeError) else None
            if isinstance(error, OSError):
                known = storage_error(error, error.filename or "")
            if known is not None:
                reason = scrub(str(known))
                logger.error("%s: %s", name, reason)
            else:
                # Not foreseen: the log gets the traceback, the board gets the first line.
                logger.exception("%s failed", name)
                reason = visible(scrub(f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"))
        else:
            if failure is not None:
                failure.unlink(missing_ok=True)
            return
        if failure is not None:
            try:
                # Scores of an earlier state of this encoder must not outlive the failure of the present one.
                (failure.parent.parent / "metrics" / failure.name).unlink(missing_ok=True)
                write_json(
                    failure,
                    {"schema": 1, "stage": name, "model": failure.name.removesuffix(".json"), "reason": reason},
                )
            except (OSError, StorageError) as error:  # the disk that this stage failed on, as a rule
                logger.info("%s: the reason is not kept for the board: %s", name, scrub(str(error)))
    sys.exit(1)
