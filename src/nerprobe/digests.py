"""Names in 8 bytes each, where a large corpus has many: two of a million names meet with a chance of 3e-8."""

from __future__ import annotations

from hashlib import blake2b


def digest(name: str) -> int:
    """Return 64 bits that stand for a name."""
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


class Seen:
    """Names met before."""

    def __init__(self) -> None:
        self._digests: set[int] = set()

    def again(self, name: str) -> bool:
        """Say whether a name was met before, and remember it."""
        before = len(self._digests)
        self._digests.add(digest(name))
        return len(self._digests) == before
