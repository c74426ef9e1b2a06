"""Settings that all tests share, and the counts that a session ends with."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from told import LINES

# The same examples in every run, no files left behind, and no clock: the machine may be busy.
settings.register_profile("nerprobe", derandomize=True, database=None, deadline=None, max_examples=60)
settings.load_profile("nerprobe")

COUNTED = {"hostile": "bad inputs tried", "hub_fault": "hub faults tried"}
"""Markers whose tests are counted; a test that tries several inputs says so: ``hostile(5)``."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let each report carry what its test tries; it knows no markers, and may come from another process."""
    for item in items:
        marks = [mark for name in COUNTED if (mark := item.get_closest_marker(name)) is not None]
        item.user_properties += [(mark.name, int((mark.args or (1,))[0])) for mark in marks]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the lines of a process that tests ran in to the one that reports (pytest-xdist)."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["told"] = LINES


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the lines of a process that tests ran in."""
    LINES.extend(getattr(node, "workeroutput", {}).get("told", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how much was tried in tests that passed, and how much in those that failed."""
    tried: dict[str, Counter[str]] = {"passed": Counter(), "failed": Counter()}
    for outcome, counts in tried.items():
        for report in terminalreporter.getreports(outcome):
            for name, number in report.user_properties:
                counts[name] += int(number) if name in COUNTED else 0
    for name, words in COUNTED.items():
        passed, failed = tried["passed"][name], tried["failed"][name]
        if passed or failed:
            fault = f", {failed} of them with a fault" if failed else ""
            terminalreporter.write_line(f"{words}: {passed + failed}{fault}")
    for line in LINES:
        terminalreporter.write_line(line)
