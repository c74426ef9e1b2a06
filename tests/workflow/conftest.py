"""A corpus, encoders and a home folder that all workflow tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import Place, Ran, corpus_text, write_corpus, write_encoder


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Where commands are typed: a folder with a space, holding ./data, ./alpha and ./beta."""
    typed = tmp_path_factory.mktemp("workflow") / "typed in ñ"
    typed.mkdir()
    write_corpus(typed / "data")
    texts = [line.split(" ")[0] for line in corpus_text(80, seed=2, first_id=5000).split("\n") if line]
    for seed, name in enumerate(("alpha", "beta")):
        write_encoder(typed / name, texts=texts, seed=seed)
    return Place(typed=typed, folder=None, home=_made(typed.parent / "home"))


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def place(base: Place) -> Place:
    """The working folder of the first run, which then grows."""
    return base.at("growing work")


@pytest.fixture(scope="session")
def full(place: Place) -> Ran:
    """The first run: one encoder folder and all three baselines."""
    return place.run(*place.config("./alpha", baselines="train-lookup,char-ngrams,random-bert"))


@pytest.fixture(scope="session")
def board(place: Place, full: Ran) -> Path:
    """The run folder of the first run."""
    assert full.code == 0, full.out
    return place.run_folder()
