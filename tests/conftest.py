"""Settings that all tests share, and the counts that a session ends with."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings

# The same examples in every run, no files left behind, and no clock: the machine may be busy.
settings.register_profile("nerprobe", derandomize=True, database=None, deadline=None, max_examples=60)
settings.load_profile("nerprobe")

COUNTED = {"hostile": "bad inputs tried", "hub_fault": "hub faults tried"}
"""Markers whose tests are counted; a test that tries several inputs says so: ``hostile(5)``."""
_TRIED = pytest.StashKey[dict[str, Counter[str]]]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remember what each test tries; reports do not know markers from names."""
    tried: dict[str, Counter[str]] = {}
    for item in items:
        marks = {name: mark for name in COUNTED if (mark := item.get_closest_marker(name)) is not None}
        tried[item.nodeid] = Counter({name: int((mark.args or (1,))[0]) for name, mark in marks.items()})
    config.stash[_TRIED] = tried


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print how much was tried in tests that passed, and how much in those that failed."""
    tried = config.stash.get(_TRIED, {})
    passed, failed = (
        sum((tried.get(report.nodeid, Counter()) for report in terminalreporter.getreports(outcome)), Counter())
        for outcome in ("passed", "failed")
    )
    for name, words in COUNTED.items():
        if passed[name] or failed[name]:
            fault = f", {failed[name]} of them with a fault" if failed[name] else ""
            terminalreporter.write_line(f"{words}: {passed[name] + failed[name]}{fault}")
