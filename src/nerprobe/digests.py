"""Names in 8 bytes each, where a large corpus has many: two of a million names meet with a chance of 3e-8."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

RECENT = 4096
"""Names from which those met last are sorted in with the others."""


def digest(name: str) -> int:
    """Return 64 bits that stand for a name."""
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


class Seen:
    """Names met before: most in a sorted array, those met last in a set, which takes ten times as much a name."""

    def __init__(self) -> None:
        self._sorted = np.zeros(0, np.uint64)
        self._recent: set[int] = set()

    def again(self, name: str) -> bool:
        """Say whether a name was met before, and remember it."""
        own = digest(name)
        place = int(np.searchsorted(self._sorted, np.uint64(own)))
        if own in self._recent or (place < len(self._sorted) and int(self._sorted[place]) == own):
            return True
        self._recent.add(own)
        if len(self._recent) > max(RECENT, len(self._sorted) // 8):
            self._sorted = np.union1d(self._sorted, np.fromiter(self._recent, np.uint64))
            self._recent.clear()
        return False
