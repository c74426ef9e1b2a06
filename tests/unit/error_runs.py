"""Maker of a whole run folder from hand-written texts, gold and predicted tags, for the tests of what shows errors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from boards import BOOTSTRAP, EVALUATION, RUN, metrics_of, run_folder
from makers import TYPES, make_item

from nerprobe.files import sha256_file, write_json
from nerprobe.items import Item, corpus_table, count_pool
from nerprobe.leaderboard import write_board
from nerprobe.probe import prediction_table
from nerprobe.score import evaluate

P, S = TYPES
Tags = Mapping[str, str]
"""Tags of each item in short: P- and S- for the two types."""

TRAIN = [("r1", "soy enfermera", "O B-P"), ("r2", "en paro", "B-S I-S")]
TEXTS = {
    "t1": "La Enfermera y el guardia civil",
    "t2": "nada que decir",
    "t3": "estoy en paro hoy",
    "t4": "</script><script>alert(1)</script> \x1b[31m médico",
    "t5": "ni médico ni juez",
}
GOLD = {
    "t1": "O B-P O O B-P I-P",
    "t2": "O O O",
    "t3": "O B-S I-S O",
    "t4": "O O B-P",
    "t5": "O O O O",
}
FIRST = {"t1": "O O O O O B-P", "t3": "O B-P I-P O", "t5": "O O O B-P"}
"""By hand: t1 misses Enfermera (seen) and has a wrong boundary; t3 a wrong type; t5 invents juez; t4 is right."""
SECOND = {"t1": "O B-P O O O O", "t3": "O O B-P O", "t4": "B-P O O"}
"""By hand: t1 misses guardia civil; t3 has boundary and type wrong; t4 misses médico and invents the markup."""


def tags(short: str) -> list[str]:
    return short.replace("-P", f"-{P}").replace("-S", f"-{S}").split()


def items_of(texts: Mapping[str, str], gold: Tags) -> list[Item]:
    return [make_item(text.split(" "), tags(gold[name]), item_id=name) for name, text in texts.items()]


def full_run(
    root: Path,
    models: Mapping[str, Tags],
    *,
    texts: Mapping[str, str] = TEXTS,
    gold: Tags = GOLD,
    baselines: Sequence[str] = (),
    **corpus: Any,
) -> Path:
    """Write corpus, subset, predictions, metrics and board; a model is right where its tags are not given."""
    root.mkdir(parents=True, exist_ok=True)
    test = items_of(texts, gold)
    train = [make_item(text.split(" "), tags(tag), item_id=name, pool="train") for name, text, tag in TRAIN]
    pools = {"test": test, "train": train}
    counts = {name: count_pool([item.tags for item in items], TYPES) for name, items in pools.items()}
    about = {"texts_shareable": True, "counts": counts, "files": {"test": "test.txt"}, "title": "Tiny <b>&"}
    table = root / "corpus.parquet"
    pq.write_table(corpus_table([*test, *train], []), table)
    folder = run_folder(root, corpus_sha256=sha256_file(table), **about | corpus)
    table.rename(folder / "corpus.parquet")
    ids = {name: [item.item_id for item in items] for name, items in pools.items()}
    write_json(folder / "subset.json", {"id": "00ff", "seed": 7, "rule": "r", "counts": counts, "items": ids})
    (folder / "predictions").mkdir()
    for model, predicted in models.items():
        said = [tags(predicted.get(item.item_id, gold[item.item_id])) for item in test]
        flat = [tag for item in said for tag in item]
        table = prediction_table(test, (flat, [1.0] * len(flat)))
        pq.write_table(table, folder / "predictions" / f"{model}.parquet")
        rows = [(item.item_id, item.tags, found) for item, found in zip(test, said, strict=True)]
        metrics = metrics_of(model, subset={"id": "00ff", "seed": 7, "counts": counts})
        metrics["evaluations"] = [{**EVALUATION, **evaluate(rows, TYPES)}]
        metrics["encoder"]["baseline"] = model in baselines
        write_json(folder / "metrics" / f"{model}.json", metrics)
    write_board(folder, requested=list(models), bootstrap=BOOTSTRAP)
    assert folder.name == RUN
    return folder


def page_json(html: str) -> Any:
    """Return the data of errors.html."""
    text = html.partition('<script type="application/json" id="data">')[2].partition("</script>")[0]
    return json.loads(text)
