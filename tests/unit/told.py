"""Lines that tests want to see at the end of a session, such as how much was run."""

from __future__ import annotations

LINES: list[str] = []
