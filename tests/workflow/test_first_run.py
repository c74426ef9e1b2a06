"""The first run in a working folder: every artefact of the contract, and its numbers by plain loops."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import (
    MODELS,
    SHARED,
    TYPES,
    WIDTH,
    Place,
    Ran,
    jobs_of,
    plain_counts,
    plain_intervals,
    plain_mentions,
    plain_metrics,
    read,
    rows_of,
    tags_of,
)
from safetensors import safe_open

from nerprobe.files import sha256_file

pytestmark = pytest.mark.workflow

CARD = {
    "f1": "entity_f1_probe",
    "precision": "entity_precision_probe",
    "recall": "entity_recall_probe",
    "macro_f1": "entity_macro_f1_probe",
}


@pytest.fixture(scope="module")
def metrics(board: Path) -> dict[str, Any]:
    return {model: read(board / "metrics" / f"{model}.json") for model in MODELS}


def test_first_run_takes_one_job_a_stage_and_encoder(full: Ran, board: Path) -> None:
    expected = jobs_of("alpha", "char-ngrams", "random-bert", fetched=["alpha", "random-bert"], lookup=True)
    assert full.jobs == sorted([*expected, *SHARED])


def test_run_label_and_boards(board: Path, full: Ran) -> None:
    assert re.fullmatch(r"test20-train60-[0-9a-f]{8}", board.name)
    for suffix in ("csv", "md", "json", "html"):
        assert (board / f"leaderboard.{suffix}").stat().st_size > 200
    assert str(board / "leaderboard.html") in full.out


def test_corpus_fields(board: Path, base: Place) -> None:
    schema = pq.read_schema(board / "corpus.parquet")
    texts, numbers = pa.list_(pa.string()), pa.list_(pa.int32())
    expected = {"item_id": pa.string(), "pool": pa.string(), "text": pa.string(), "words": texts}
    expected |= {"starts": numbers, "ends": numbers, "tags": texts}
    assert dict(zip(schema.names, schema.types, strict=True)) == expected
    rows = pq.read_table(board / "corpus.parquet").to_pylist()
    assert [row["pool"] for row in rows].count("test") == 30
    assert [row["pool"] for row in rows].count("train") == 80
    for row in rows:
        assert row["item_id"].startswith("profner-")
        assert len(row["words"]) == len(row["starts"]) == len(row["ends"]) == len(row["tags"])
        spans = zip(row["starts"], row["ends"], strict=True)
        assert [row["text"][start:end] for start, end in spans] == row["words"]
        assert {tag[2:] for tag in row["tags"] if tag != "O"} <= set(TYPES)
    info = read(board / "corpus.json")
    files = {name: base.typed / "data" / "profner" / name for name in ("BIO/valid_spacy.txt", "BIO/train_spacy.txt")}
    assert info["source"] == "path"
    assert info["revision"] is None
    assert info["sha256"] == {name: sha256_file(path) for name, path in files.items()}
    assert info["counts"]["test"]["items"] == 30
    golds = [mention for row in rows if row["pool"] == "test" for mention in plain_mentions(row["tags"])]
    assert info["counts"]["test"]["mentions"] == {kind: sum(m[0] == kind for m in golds) for kind in TYPES}


def test_subset_fields(board: Path) -> None:
    import hashlib

    subset = read(board / "subset.json")
    assert {"id", "seed", "rule", "counts", "items"} <= set(subset)
    rows = {row["item_id"]: row for row in pq.read_table(board / "corpus.parquet").to_pylist()}
    for pool, size in (("test", 20), ("train", 60)):
        ids = [item_id for item_id, row in rows.items() if row["pool"] == pool]
        ranked = sorted(ids, key=lambda item_id: hashlib.sha256(f"1|{item_id}".encode()).hexdigest())
        assert subset["items"][pool] == ranked[:size]
        chosen = [rows[item_id] for item_id in ranked[:size]]
        found = [plain_mentions(row["tags"]) for row in chosen]
        assert subset["counts"][pool] == {
            "items": size,
            "words": sum(len(row["words"]) for row in chosen),
            "items_with_mentions": sum(bool(mentions) for mentions in found),
            "mentions": {kind: sum(m[0] == kind for item in found for m in item) for kind in TYPES},
        }


def test_embeddings_hold_a_row_a_word_in_corpus_order(board: Path) -> None:
    subset = read(board / "subset.json")["items"]
    rows = {row["item_id"]: row for row in pq.read_table(board / "corpus.parquet").to_pylist()}
    chosen = {*subset["test"], *subset["train"]}
    wanted = [(item_id, word) for item_id in rows if item_id in chosen for word in range(len(rows[item_id]["words"]))]
    for model, width in (("alpha", WIDTH), ("random-bert", 128), ("char-ngrams", 3072)):
        (path,) = (board / "embeddings").glob(f"{model}.*.parquet")
        assert re.fullmatch(rf"{re.escape(model)}\.[0-9a-f]{{12}}\.parquet", path.name)
        table = pq.read_table(path)
        vector = table.schema.field("vector").type
        assert table.column_names == ["item_id", "word", "vector", "n_subwords"]
        assert table.schema.field("word").type == pa.int32()
        assert pa.types.is_fixed_size_list(vector)
        assert vector.list_size == width
        assert vector.value_type == pa.float32()
        found = list(zip(table["item_id"].to_pylist(), table["word"].to_pylist(), strict=True))
        assert found == wanted
        manifest = read(path.with_suffix(".json"))
        assert manifest["sha256"] == sha256_file(path)
        assert manifest["rows"] == len(wanted)
        assert manifest["seconds"] > 0
        assert manifest["peak_mib"] > 1
        assert manifest["health"]["items_embedded"] == 80


def test_long_items_are_windowed_and_no_word_is_lost(board: Path) -> None:
    (path,) = (board / "embeddings").glob("alpha.*.parquet")
    health = read(path.with_suffix(".json"))["health"]
    counts = pq.read_table(path)["n_subwords"].to_pylist()
    assert health["items_windowed"] >= 1
    assert health["words_without_subwords"] == counts.count(0)
    assert health["words"] == len(counts)


def test_heads_are_safetensors_and_json(board: Path) -> None:
    for model in MODELS:
        fit = read(board / "heads" / f"{model}.json")
        assert {"classes", "C", "tol", "iterations", "converged"} <= set(fit)
        with safe_open(str(board / "heads" / f"{model}.safetensors"), framework="np") as head:
            shapes = {name: head.get_tensor(name).shape for name in head.keys()}  # noqa: SIM118
        if model == "train-lookup":
            continue
        width = {"alpha": WIDTH, "random-bert": 128, "char-ngrams": 3072}[model]
        assert (fit["C"], fit["tol"], fit["max_iter"]) == (1.0, 1e-6, 1000)
        assert shapes == {"weights": (len(fit["classes"]), width), "bias": (len(fit["classes"]),)}
        assert fit["converged"] is True
        assert fit["iterations"] >= 1


def test_metrics_fields_and_equal_gold(metrics: dict[str, Any], board: Path) -> None:
    golds = set()
    for model, found in metrics.items():
        assert (found["task"], found["model"], found["run"]) == ("profner", model, board.name)
        assert set(found["dataset"]) >= {"repo", "revision", "sha256"}
        assert found["encoder"]["baseline"] is (model != "alpha")
        assert set(found["probe"]) >= {"C", "max_iter", "tol", "iterations", "converged"}
        assert found["versions"]["scikit-learn"]
        (evaluation,) = found["evaluations"]
        assert (evaluation["protocol"], evaluation["regime"], evaluation["test_pool"]) == ("probe", "train", "test")
        assert set(evaluation["metrics"]) == set(CARD.values())
        assert set(evaluation["per_type"]) == set(TYPES)
        for counts in evaluation["per_type"].values():
            assert set(counts) == {"precision", "recall", "f1", "tp", "predicted", "gold"}
        assert [item["item_id"] for item in evaluation["per_item"]] == read(board / "subset.json")["items"]["test"]
        golds.add(tuple(item["gold"] for item in evaluation["per_item"]))
    assert len(golds) == 1


def test_counts_by_a_plain_loop(metrics: dict[str, Any], board: Path) -> None:
    corpus = {row["item_id"]: row["tags"] for row in pq.read_table(board / "corpus.parquet").to_pylist()}
    for model, found in metrics.items():
        evaluation = found["evaluations"][0]
        tags = tags_of(board / "predictions" / f"{model}.parquet")
        items = []
        for item in evaluation["per_item"]:
            gold, predicted = tags[item["item_id"]]
            assert gold == corpus[item["item_id"]]
            counts = plain_counts(gold, predicted)
            items.append(counts)
            for kind in TYPES:
                assert [item["per_type"][kind][name] for name in ("tp", "predicted", "gold")] == counts[kind]
            assert [item[name] for name in ("tp", "predicted", "gold")] == [
                sum(counts[kind][part] for kind in TYPES) for part in range(3)
            ]
        for name, value in plain_metrics(items).items():
            assert evaluation["metrics"][CARD[name]] == pytest.approx(value, abs=1e-12)
    assert metrics["alpha"]["evaluations"][0]["counts"]["tp"] > 0, "a corpus without any hit proves little"


def test_counts_by_seqeval(metrics: dict[str, Any], board: Path) -> None:
    from seqeval.metrics import (  # type: ignore[import-untyped]
        f1_score,
        precision_score,
        recall_score,
    )

    for model, found in metrics.items():
        tags = tags_of(board / "predictions" / f"{model}.parquet").values()
        gold, predicted = [pair[0] for pair in tags], [pair[1] for pair in tags]
        values = found["evaluations"][0]["metrics"]
        assert values["entity_f1_probe"] == pytest.approx(f1_score(gold, predicted, zero_division=0), abs=1e-12)
        assert values["entity_precision_probe"] == pytest.approx(
            precision_score(gold, predicted, zero_division=0), abs=1e-12
        )
        assert values["entity_recall_probe"] == pytest.approx(recall_score(gold, predicted, zero_division=0), abs=1e-12)


def test_board_rows_and_intervals_by_a_plain_loop(metrics: dict[str, Any], board: Path) -> None:
    rows = rows_of(board)
    assert sorted(row["model"] for row in rows) == sorted(MODELS)
    assert [float(row["f1"]) for row in rows] == sorted((float(row["f1"]) for row in rows), reverse=True)
    for row in rows:
        assert row["status"] == "ok"
        assert int(row["rank"]) == 1 + sum(float(other["f1"]) > float(row["f1"]) for other in rows)
        evaluation = metrics[row["model"]]["evaluations"][0]
        tags = tags_of(board / "predictions" / f"{row['model']}.parquet")
        items = [plain_counts(*tags[item_id]) for item_id in read(board / "subset.json")["items"]["test"]]
        bounds = plain_intervals(items, seed=1, resamples=1000, level=0.95)
        for name, (low, high) in bounds.items():
            assert float(row[name]) == pytest.approx(evaluation["metrics"][CARD[name]], abs=1e-12)
            assert float(row[f"{name}_ci_low"]) == pytest.approx(low, abs=1e-12)
            assert float(row[f"{name}_ci_high"]) == pytest.approx(high, abs=1e-12)


def test_board_json_carries_the_same_rows_and_their_commands(board: Path) -> None:
    rows = {row["model"]: row for row in read(board / "leaderboard.json")["rows"]}
    for row in rows_of(board):
        assert rows[row["model"]]["f1"] == float(row["f1"])
        assert rows[row["model"]]["command"].startswith("snakemake ")


def test_logs_lie_where_the_rules_say(place: Place, board: Path) -> None:
    logs = (place.folder or place.typed) / "logs"
    assert (logs / "fetch_encoder" / "alpha.log").is_file()
    for stage in ("probe", "score"):
        assert (logs / "profner" / board.name / stage / "alpha.log").is_file()
