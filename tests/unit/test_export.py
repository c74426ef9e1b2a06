"""``nerprobe export``: what the hub's own library reads back from the block."""

from __future__ import annotations

from pathlib import Path

import pytest
from error_runs import FIRST, full_run
from huggingface_hub import ModelCard, metadata_load
from huggingface_hub.repocard_data import model_index_to_eval_results
from makers import run_nerprobe

from nerprobe.errors import UnknownModelError
from nerprobe.export import export_model
from nerprobe.files import read_json

HUB = {"source": "hub", "repo": "org/corpus", "revision": "a" * 40}


def test_the_hub_reads_the_scores_back(tmp_path: Path) -> None:
    folder = full_run(tmp_path, {"m": FIRST, "lookup": {}}, baselines=["lookup"], **HUB)
    done = run_nerprobe("export", "m", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "README.md").write_text(done.stdout, encoding="utf-8")
    name, results = model_index_to_eval_results(metadata_load(tmp_path / "README.md")["model-index"])
    assert name == "name"  # of org/name
    # by hand: 1 right of 4 predicted and 4 gold; by type 1 of 4 and 3 (F1 2/7), 0 of 0 and 1
    expected = {"f1": 0.25, "precision": 0.25, "recall": 0.25, "macro_f1": 1 / 7}
    assert [result.metric_type for result in results] == [f"entity_{metric}_probe" for metric in expected]
    assert [result.metric_value for result in results] == pytest.approx(list(expected.values()))
    row = next(row for row in read_json(folder / "leaderboard.json")["rows"] if row["model"] == "m")
    for result, metric in zip(results, expected, strict=True):
        assert result.task_type == "token-classification"
        assert (result.dataset_type, result.dataset_split, result.dataset_revision) == ("org/corpus", "test", "a" * 40)
        assert result.dataset_name == "Tiny <b>&, all 5 items of test.txt"
        assert result.dataset_args["test_items"] == 5
        assert result.dataset_args["test_mentions"] == {"PROFESION": 3, "SITUACION_LABORAL": 1}
        assert result.dataset_args["test_file_sha256"] == "0" * 64
        assert result.metric_args["interval"] == [row[f"{metric}_ci_low"], row[f"{metric}_ci_high"]]
        assert result.metric_args["encoder_frozen"] is True
        assert (result.metric_args["dtype"], result.metric_args["C"]) == ("float32", 1.0)
        assert result.source_url is None


def test_the_text_says_what_the_numbers_are(tmp_path: Path) -> None:
    folder = full_run(tmp_path, {"m": FIRST, "lookup": {}}, baselines=["lookup"], **HUB)
    text = ModelCard(export_model(folder, "m")).text
    assert "frozen" in text
    assert "do not compare with scores of fine-tuned models" in text
    assert "Not below it without a pretrained encoder: lookup." in text
    assert "only 3 gold mentions of PROFESION" in text


def test_a_part_of_the_pool_is_called_so(tmp_path: Path) -> None:
    counts = {pool: {"items": 2000, "words": 1, "items_with_mentions": 0, "mentions": {}} for pool in ("test", "train")}
    folder = full_run(tmp_path, {"m": {}}, counts=counts, **HUB)
    assert "seeded subset of 5 of 2,000 items of test.txt" in export_model(folder, "m")


def test_a_local_corpus_claims_no_revision(tmp_path: Path) -> None:
    card = ModelCard(export_model(full_run(tmp_path, {"m": {}}), "m"))
    assert card.data.eval_results[0].dataset_revision is None
    assert card.data.eval_results[0].dataset_type == "tiny"
    assert "local files" in card.text


def test_an_unknown_model_ends_in_one_line(tmp_path: Path) -> None:
    full_run(tmp_path, {"m": {}})
    done = run_nerprobe("export", "n", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("nerprobe: 'n': no board has scores of this model; known: m")


def test_a_baseline_has_no_card(tmp_path: Path) -> None:
    folder = full_run(tmp_path, {"lookup": {}}, baselines=["lookup"])
    with pytest.raises(UnknownModelError, match="no model card"):
        export_model(folder, "lookup")
