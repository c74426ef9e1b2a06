"""The benchmark itself on the real corpus, with an encoder from the wheel: confirmed by a second computation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import plain_counts, plain_intervals, plain_metrics, read, rows_of, tags_of
from seqeval.metrics.sequence_labeling import get_entities

PROJECT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("NERPROBE_DATA_DIR") or PROJECT.parent / "shared" / "data").resolve()
MODELS = ("minilm-l6", "char-ngrams", "random-bert", "train-lookup")

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        not (DATA / "profner").is_dir(), reason="the real ProfNER files are not at hand (NERPROBE_DATA_DIR)"
    ),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """Run the README's command in a new folder; return its run folder."""
    folder = tmp_path_factory.mktemp("real")
    command = [sys.executable, "-m", "snakemake", "-s", str(PROJECT / "Snakefile"), "--directory", str(folder)]
    command += ["--cores", "2", "--config", f"data_dir={DATA}", f"models=[{','.join(MODELS)}]"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=1100, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    [found] = folder.glob("results/profner/test100-train500-*")
    return found


@pytest.fixture(scope="module", params=MODELS)
def scored(run, request):
    """One model's metrics and the plain counts of each test item."""
    tags = tags_of(run / "predictions" / f"{request.param}.parquet")
    order = read(run / "subset.json")["items"]["test"]
    return request.param, read(run / "metrics" / f"{request.param}.json"), [tags[item] for item in order]


def test_the_board_names_all_four_and_no_other(run):
    assert sorted(row["model"] for row in rows_of(run)) == sorted(MODELS)
    assert {row["status"] for row in rows_of(run)} == {"ok"}


def test_the_gold_is_the_card_s_for_every_model(scored):
    _, metrics, _ = scored
    [evaluation] = metrics["evaluations"]
    assert evaluation["counts"]["gold"] == 43
    assert {kind: part["gold"] for kind, part in evaluation["per_type"].items()} == {
        "PROFESION": 40,
        "SITUACION_LABORAL": 3,
    }
    assert sum(item["gold"] > 0 for item in evaluation["per_item"]) == 24


def test_counts_and_scores_equal_plain_loops(scored):
    _, metrics, items = scored
    [evaluation] = metrics["evaluations"]
    counts = [plain_counts(gold, predicted) for gold, predicted in items]
    for kind, part in evaluation["per_type"].items():
        assert [part["tp"], part["predicted"], part["gold"]] == [sum(c[kind][n] for c in counts) for n in range(3)]
    plain = plain_metrics(counts)
    assert evaluation["metrics"] == pytest.approx(
        {
            "entity_f1_probe": plain["f1"],
            "entity_precision_probe": plain["precision"],
            "entity_recall_probe": plain["recall"],
            "entity_macro_f1_probe": plain["macro_f1"],
        },
        abs=1e-15,
    )


def test_counts_equal_seqeval_in_its_default_mode(scored):
    _, metrics, items = scored
    gold = {(n, *mention) for n, (tags, _) in enumerate(items) for mention in get_entities(tags)}
    predicted = {(n, *mention) for n, (_, tags) in enumerate(items) for mention in get_entities(tags)}
    expected = {"tp": len(gold & predicted), "predicted": len(predicted), "gold": len(gold)}
    assert metrics["evaluations"][0]["counts"] == expected


def test_intervals_equal_a_plain_bootstrap_loop(run, scored):
    model, _, items = scored
    [row] = [row for row in rows_of(run) if row["model"] == model]
    bounds = plain_intervals([plain_counts(*item) for item in items], seed=20261006, resamples=1000, level=0.95)
    for name, (low, high) in bounds.items():
        assert float(row[f"{name}_ci_low"]) == pytest.approx(low, abs=1e-12)
        assert float(row[f"{name}_ci_high"]) == pytest.approx(high, abs=1e-12)


def test_a_word_list_stands_above_the_small_encoder_and_the_board_lets_people_see_it(run):
    rows = {row["model"]: row for row in rows_of(run)}
    assert 0.54 < float(rows["train-lookup"]["f1"]) < 0.56
    assert float(rows["train-lookup"]["f1"]) > float(rows["minilm-l6"]["f1"]) > float(rows["random-bert"]["f1"])
    assert rows["train-lookup"]["kind"] == "baseline"


def test_most_padding_is_avoided_and_words_without_sub_words_are_counted(run):
    [path] = (run / "embeddings").glob("minilm-l6.*.json")
    health = json.loads(path.read_text())["health"]
    assert health["padding"] <= 0.05
    assert health["words"] == 3563 + 17553
    assert health["words_without_subwords"] == 27
    assert health["offset_mismatches"] == 0
