"""A SLURM for the session, and the work folders that snakemake is called in with the profile for it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator

import pytest
from cluster_place import ENCODERS, SETTINGS, ClusterPlace, edited_profile
from helpers import corpus_text, write_corpus, write_encoder
from told import LINES
from toy_slurm import PACKAGES, ToySlurm, missing


@pytest.fixture(scope="session")
def slurm() -> Iterator[ToySlurm]:
    lacking = missing()
    reason = f"SLURM is not installed ({', '.join(lacking)}): apt-get install {PACKAGES}" if lacking else ""
    if importlib.util.find_spec("snakemake_executor_plugin_slurm") is None:
        reason = "the plugin for SLURM is not installed: make slurm"
    elif not lacking and os.getuid() != 0:
        reason = "the toy SLURM runs as root only"
    if reason:
        if os.environ.get("NERPROBE_CLUSTER") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    with ToySlurm() as toy:
        yield toy
        LINES.append(f"SLURM jobs run: {len(toy.jobs())}")


@pytest.fixture(scope="session")
def cluster(slurm: ToySlurm, tmp_path_factory: pytest.TempPathFactory) -> ClusterPlace:
    """A folder with the corpus and the encoders, and the edited profile."""
    typed = tmp_path_factory.mktemp("cluster") / "typed in ñ"
    typed.mkdir()
    write_corpus(typed / "data")
    texts = [line.split(" ")[0] for line in corpus_text(80, seed=2, first_id=5000).split("\n") if line]
    for seed, name in enumerate(ENCODERS):
        write_encoder(typed / name, texts=texts, seed=seed)
    write_encoder(typed / "cut", texts=texts, seed=99)
    os.truncate(typed / "cut" / "model.safetensors", 3000)
    home = typed.parent / "home"
    home.mkdir()
    profile = edited_profile(typed.parent / "profiles" / "slurm", **SETTINGS)
    return ClusterPlace(typed=typed, folder=typed / "work", home=home, slurm=slurm, profile=profile)
