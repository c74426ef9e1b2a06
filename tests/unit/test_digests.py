"""Names met before: as a plain set tells, however many there are."""

from __future__ import annotations

import random

import pytest

import nerprobe.digests
from nerprobe.digests import RECENT, Seen, digest


@pytest.mark.parametrize("recent", [0, 1, 7, RECENT])
def test_seen_tells_what_a_set_tells(monkeypatch: pytest.MonkeyPatch, recent: int) -> None:
    monkeypatch.setattr(nerprobe.digests, "RECENT", recent)
    rng = random.Random(1)
    names = [str(rng.randrange(9000)) for _ in range(20_000)]
    seen, known = Seen(), set[str]()
    for name in names:
        assert seen.again(name) is (name in known)
        known.add(name)
    assert len(known) > RECENT  # so that at least once they were sorted in


def test_a_digest_is_64_bits_also_of_half_characters() -> None:
    assert 0 <= digest("a") < 2**64
    assert digest("\ud800") != digest("\ud801")
