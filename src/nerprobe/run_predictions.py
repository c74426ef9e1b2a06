"""What the models of one run predicted, read back for people to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nerprobe.config import closest
from nerprobe.errors import ArtefactError, UnknownModelError
from nerprobe.files import AGAIN, check_sha256, read_json
from nerprobe.items import Item, load_items
from nerprobe.mention_errors import folded
from nerprobe.score import tags_by_item
from nerprobe.spans import Mention, mentions
from nerprobe.subset import load_subset


@dataclass(frozen=True, kw_only=True)
class RunPredictions:
    """The test items of one run with gold and predicted mentions.

    Attributes:
        folder: ``results/<task>/<run>``.
        board: ``leaderboard.json``.
        corpus: ``corpus.json``.
        items: Test items in rank order.
        gold: Gold mentions of each of them.
        predicted: The same of each model, by name, in the board's order.
        seen: Case-folded words of every mention of the train items.
    """

    folder: Path
    board: Mapping[str, Any]
    corpus: Mapping[str, Any]
    items: Sequence[Item]
    gold: Sequence[Sequence[Mention]]
    predicted: Mapping[str, Sequence[Sequence[Mention]]]
    seen: frozenset[tuple[str, ...]]

    def row(self, model: str) -> Mapping[str, Any]:
        """Return a model's row of the board."""
        row: Mapping[str, Any] = next(row for row in self.board["rows"] if row["model"] == model)
        return row

    def is_seen(self, item: Item, mention: Mention) -> bool:
        """Say whether a mention's case-folded words were a mention in the train items."""
        return folded(item.words, mention) in self.seen


def load_board(file: Path) -> dict[str, Any]:
    """Read ``leaderboard.json``.

    Raises:
        ArtefactError: If it is something else.
    """
    board = read_json(file)
    if "rows" not in board:
        raise ArtefactError("this is no board", where=str(file), todo=AGAIN)
    return board


def find_runs(models: Sequence[str], boards: Sequence[Path], *, every: bool) -> list[Path]:
    """Return the run folders whose board has scores of all models: the newest, or all that were named.

    Args:
        models: Names on the board.
        boards: leaderboard.json files, oldest first.
        every: Whether each board that has them is meant.

    Raises:
        UnknownModelError: If there is none.
    """
    known: set[str] = set()
    found = []
    for file in boards:
        names = {row["model"] for row in load_board(file)["rows"] if row["status"] == "ok"}
        known |= names
        if set(models) <= names:
            found.append(file.parent)
    if not found:
        lost = next((model for model in models if model not in known), None)
        raise UnknownModelError(
            "no board has scores of this model" if len(models) == 1 or lost else "no board has scores of both",
            where=repr((lost or " and ".join(models))[:120]),
            todo=closest(lost[:120], sorted(known)) if lost and known else "nerprobe show lists the boards",
        )
    return found if every else found[-1:]


def load_predictions(folder: Path, models: Sequence[str] | None = None) -> RunPredictions:
    """Read the predictions of a run.

    Args:
        folder: ``results/<task>/<run>``.
        models: Names on its board; default: all that have scores and whose predictions are still there.

    Raises:
        ArtefactError: If a file is missing, damaged or of another state than the board.
    """
    board, corpus = load_board(folder / "leaderboard.json"), read_json(folder / "corpus.json")
    chosen, evaluation = load_subset(folder / "subset.json")["items"], corpus["evaluations"][0]
    test, train = chosen[evaluation["test_pool"]], chosen[evaluation["train_pool"]]
    known = load_items(folder / "corpus.parquet", [*test, *train])
    gold = [mentions(known[item_id].tags) for item_id in test]
    rows = [row for row in board["rows"] if row["status"] == "ok" and (models is None or row["model"] in models)]
    predicted = {}
    for row in rows:
        path = folder / "predictions" / f"{row['model']}.parquet"
        if models is None and not path.exists():
            continue  # a model off the list, whose row stands on its metrics alone
        head = folder / "heads" / f"{row['model']}.json"
        if path.exists() and head.exists():
            check_sha256(path, read_json(head).get("predictions_sha256"), record=head)
        found = [mentions(tags) for _, _, tags in tags_by_item(path, test)]
        predicted[row["model"]] = found
        counts = (
            sum(len(set(one) & set(other)) for one, other in zip(gold, found, strict=True)),
            sum(map(len, found)),
            sum(map(len, gold)),
        )
        if counts != (row["tp"], row["predicted"], row["gold"]):
            raise ArtefactError(
                "these predictions are not what the board was made from",
                where=str(path),
                expected=f"{row['tp']} right of {row['predicted']} predicted and {row['gold']} gold mentions",
                got="{} of {} and {}".format(*counts),
                todo="run snakemake again",
            )
    items = [known[item_id] for item_id in train]
    return RunPredictions(
        folder=folder,
        board=board,
        corpus=corpus,
        items=[known[item_id] for item_id in test],
        gold=gold,
        predicted=predicted,
        seen=frozenset(folded(item.words, mention) for item in items for mention in mentions(item.tags)),
    )
