"""A work folder whose jobs go to the toy SLURM, and the profile as its user would edit it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from helpers import PROJECT, Place
from toy_slurm import ToySlurm

ENCODERS = ("alpha", "beta", "gamma", "delta", "cancelled", "hungry")
SETTINGS = {"GPU_MODEL": "h200", "EMBED_CPUS": 1, "EMBED_MB": 3000, "PROBE_MB": 1500, "RETRIES": 1}
"""What a user of the toy cluster edits in the profile."""


@dataclass(frozen=True, kw_only=True)
class ClusterPlace(Place):
    """A place whose jobs go to SLURM."""

    slurm: ToySlurm
    profile: Path

    @property
    def environment(self) -> dict[str, str]:
        known = super().environment
        return {**known, **self.slurm.environment, "PATH": f"{self.slurm.shims}:{known['PATH']}"}

    def command(self, config: Sequence[str], flags: Sequence[str]) -> list[str]:
        """Return the command as a user types it, with fewer seconds between two looks at the queue."""
        quick = ["--slurm-init-seconds-before-status-checks", "6", *flags]
        plain = super().command(config, ["--workflow-profile", str(self.profile), *quick])
        cores = plain.index("--cores")
        return plain[:cores] + plain[cores + 2 :]


def edited_profile(target: Path, **settings: object) -> Path:
    """Write a copy of profiles/slurm with some of the lines changed that users are told to edit."""
    text = (PROJECT / "profiles" / "slurm" / "config.yaml").read_text(encoding="utf-8")
    for name, value in settings.items():
        text, count = re.subn(rf"^  - {name} = [^#\n]*", f"  - {name} = {value!r}  ", text, flags=re.MULTILINE)
        assert count == 1, name
    target.mkdir(parents=True)
    (target / "config.yaml").write_text(text, encoding="utf-8")
    return target
