"""Embed jobs of the real pipeline on leased devices. They are CPUs under two names: no machine here has several GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers import Place

from nerprobe.lease import lease

pytestmark = pytest.mark.workflow


@dataclass(frozen=True, kw_only=True)
class LeasingPlace(Place):
    """A place with two devices to share."""

    leases: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "NERPROBE_DEVICES": "cpu:0,cpu:1", "NERPROBE_LEASES": str(self.leases)}


def test_jobs_take_the_device_that_is_free_and_controls_take_none(
    base: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = LeasingPlace(typed=base.typed, folder=base.typed / "leases", home=base.home, leases=tmp_path / "leases")
    monkeypatch.setenv("NERPROBE_LEASES", str(place.leases))
    config = place.config("./alpha", "./beta", baselines="random-bert")
    with lease(["cpu:0"]):  # someone else's job
        ran = place.run(*config, flags=["--resources", "gpu=2", "--set-threads", "embed=1"])
    assert ran.code == 0, ran.out
    said = {}
    for log in (base.typed / "leases" / "logs").rglob("embed/*.log"):
        text = log.read_text(encoding="utf-8")
        said[log.name.partition(".")[0]] = [device for device in ("cpu:0", "cpu:1") if f"INFO device {device}" in text]
    assert said == {"alpha": ["cpu:1"], "beta": ["cpu:1"], "random-bert": []}
