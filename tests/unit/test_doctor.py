"""``nerprobe doctor`` on tiny encoders: sound ones, and one for each thing that can be wrong."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file, save_file
from zoo import build

from nerprobe.checkup_numbers import batch_finding, relative_difference
from nerprobe.config import PROJECT, load_task
from nerprobe.corpus import write_corpus
from nerprobe.doctor import Finding, Setup, diagnose, examine, report
from nerprobe.encoder_files import folder_files
from nerprobe.errors import UnknownModelError
from nerprobe.estimate import MIB, STAGE_MEMORY, Measured, Workload, duration, estimate, workload_of
from nerprobe.frozen import FrozenEncoder
from nerprobe.plan import make_run

torch.set_num_threads(1)  # tiny networks: more threads only get in each other's way
SETTINGS = {
    "dtype": "float32",
    "storage": "float32",
    "layer": "last",
    "pooling": "mean",
    "prefix": "",
    "max_length": None,
}
LOAD = Workload(task="tiny", items=10, words=100, basis="made up")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders of tiny encoders by family, each built once."""
    built: dict[str, Path] = {}

    def folder(family):
        if family not in built:
            built[family] = build(family, tmp_path_factory.mktemp(family))
        return built[family]

    return folder


@pytest.fixture
def copy(folders, tmp_path):
    """A copy of a tiny encoder, to be damaged."""

    def make(family="bert-cased"):
        return shutil.copytree(folders(family), tmp_path / "copy")

    return make


def setup(folder, source=None, **settings):
    return Setup(
        folder=folder,
        files=folder_files(folder),
        source=source or {"kind": "folder"},
        settings=SETTINGS | settings,
        device="cpu",
        batch_tokens=512,
    )


def by_name(findings):
    assert len({finding.name for finding in findings}) == len(findings)
    return {finding.name: finding for finding in findings}


def change_weights(folder, change):
    path = folder / "model.safetensors"
    weights = load_file(path)
    change(weights)
    save_file(weights, path, metadata={"format": "pt"})


KINDS = {
    "bert-cased": ("BertModel (bert)", "160 tokens (limited by the model's configuration), 2 of them special"),
    "roberta": ("RobertaModel (roberta)", "160 tokens (limited by the position table), 2 of them special"),
    "xlm-roberta": ("XLMRobertaModel (xlm-roberta)", "160 tokens (limited by the position table), 2 of them special"),
    "gpt2": ("GPT2Model (gpt2)", "160 tokens (limited by the model's configuration), 0 of them special"),
    "t5": ("T5EncoderModel (t5)", "512 tokens (no limit is stated, so this many are taken), 1 of them special"),
}


@pytest.mark.parametrize("family", KINDS)
def test_a_sound_encoder_has_no_fault(family, folders):
    folder = folders(family)
    found = by_name(examine(setup(folder)))
    assert {name for name, finding in found.items() if finding.status == "fault"} == set()
    kind, limit = KINDS[family]
    assert kind in found["load"].text
    assert "32 wide, 2 layers" in found["load"].text
    assert found["limit"].text.startswith(limit)
    assert "a window of that length goes through" in found["limit"].text
    assert "model.safetensors" in found["weights"].text
    assert found["remote code"] == Finding("remote code", "ok", "none")
    for name in ("offsets", "float32", "bfloat16", "float16", "batches"):
        assert found[name].status == "ok", found[name].text
    assert "and 0 of " in found["offsets"].text


def test_each_task_gets_an_estimate(folders):
    found = by_name(examine(setup(folders("bert-cased")), [LOAD, replace(LOAD, task="other", items=20)]))
    assert found["task tiny"].status == found["task other"].status == "ok"
    assert found["task tiny"].text.startswith("estimate for 10 texts, 100 words (made up)")
    assert "20 texts" in found["task other"].text


def test_nan_weights_are_a_fault_and_nothing_is_estimated(copy):
    folder = copy()
    change_weights(folder, lambda weights: weights["encoder.layer.1.output.dense.bias"].fill_(float("nan")))
    found = by_name(examine(setup(folder), [LOAD]))
    assert found["float32"].status == "fault"
    assert "NaN or infinite" in found["float32"].text
    assert (found["bfloat16"].status, found["float16"].status) == ("warning", "warning")
    assert "task tiny" not in found


def overflow(weights):
    """Make numbers that float32 and bfloat16 hold and float16 does not."""
    weights["encoder.layer.1.output.LayerNorm.weight"].fill_(1e5)


@pytest.mark.parametrize(
    ("dtype", "storage", "faulty"),
    [("float32", "float32", set()), ("float16", "float32", {"float16"}), ("bfloat16", "float16", {"bfloat16"})],
)
def test_overflow_is_a_fault_only_where_it_is_configured(dtype, storage, faulty, copy):
    folder = copy()
    change_weights(folder, overflow)
    found = by_name(examine(setup(folder, dtype=dtype, storage=storage)))
    assert {name for name, finding in found.items() if finding.status == "fault"} == faulty
    assert "NaN or infinite" in found["float16"].text
    assert found["float32"].status == "ok"
    for name in faulty:
        assert "float32" in found[name].text  # what to do


def test_missing_weights_are_a_fault(copy):
    folder = copy()
    change_weights(folder, lambda weights: weights.pop("encoder.layer.0.output.dense.weight"))
    findings = examine(setup(folder), [LOAD])
    assert findings[-1].name == "load"
    assert findings[-1].status == "fault"
    assert "encoder.layer.0.output.dense.weight" in findings[-1].text


def test_a_slow_tokenizer_is_a_fault(copy):
    folder = copy()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertweetTokenizer"}))
    (folder / "vocab.txt").write_text("la 3\n")
    (folder / "bpe.codes").write_text("l a</w> 3\n")
    findings = examine(setup(folder))
    assert findings[-1].status == "fault"
    assert "only a slow tokenizer" in findings[-1].text


def test_a_bin_file_is_said_to_be_loaded_without_its_code(copy):
    folder = copy()
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    found = by_name(examine(setup(folder)))
    assert "weights_only" in found["weights"].text
    assert all(finding.status != "fault" for finding in found.values())


def test_remote_code_is_refused_unless_asked_for(copy):
    folder = copy()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"auto_map": {"AutoConfig": "own.Config"}}))
    refused = by_name(examine(setup(folder)))["remote code"]
    assert refused.status == "warning"
    assert "config.json name Python code (auto_map): refused" in refused.text
    trusting = setup(folder, source={"kind": "hub", "trust_remote_code": True})
    asked = by_name(examine(trusting))
    assert "it may run" in asked["remote code"].text
    assert asked["load"].status == "fault"  # own.py is not there


def shift(monkeypatch, change):
    """Change the tokens of every encoder, as a tokenizer with false offsets would."""
    true = FrozenEncoder.tokenize
    monkeypatch.setattr(
        FrozenEncoder, "tokenize", lambda self, texts, prefix="": change(true(self, texts, prefix), texts)
    )


def test_offsets_counted_in_a_rewritten_text_are_a_warning(folders, monkeypatch):
    def rewritten(tokens, texts):
        """As if each … had been replaced by three dots before offsets were counted."""
        moved = []
        for own, text in zip(tokens, texts, strict=True):
            added = np.array([2 * text[:start].count("…") for start in own.starts], dtype=np.int64)
            limit = len(text)
            moved.append(
                replace(own, starts=np.minimum(own.starts + added, limit), ends=np.minimum(own.ends + added, limit))
            )
        return moved

    shift(monkeypatch, rewritten)
    found = by_name(examine(setup(folders("roberta"))))["offsets"]
    assert found.status == "warning"
    assert " points at " in found.text


def test_offsets_outside_of_the_text_are_a_fault(folders, monkeypatch):
    encoder = setup(folders("bert-cased")).load("float32").tokenizer
    true = type(encoder).__call__

    def beyond(self, *args, **options):
        batch = true(self, *args, **options)
        if "offset_mapping" in batch:
            batch["offset_mapping"] = [[(s, e + 500) for s, e in text] for text in batch["offset_mapping"]]
        return batch

    monkeypatch.setattr(type(encoder), "__call__", beyond)
    findings = examine(setup(folders("bert-cased")))
    assert findings[-1].status == "fault"
    assert "outside of the text" in findings[-1].text


def test_no_room_for_a_word_is_a_fault_and_little_room_a_warning(folders):
    assert by_name(examine(setup(folders("bert-cased"), max_length=2)))["limit"].status == "fault"
    short = by_name(examine(setup(folders("bert-cased"), max_length=20)))["limit"]
    assert short.status == "warning"
    assert short.text.startswith("20 tokens (limited by max_length of the registry)")


def test_a_limit_that_the_network_does_not_take_is_a_fault(copy):
    folder = copy("t5")  # states no limit, so make the network refuse long texts
    made = setup(folder)
    encoder = made.load("float32")
    encoder.limit = 200
    encoder.model.forward = lambda **inputs: torch.zeros(100)[inputs["input_ids"].shape[1]]
    from nerprobe.checkup import limit_finding

    assert limit_finding(encoder, made.settings).status == "fault"


def test_a_device_that_is_not_there_is_a_fault(folders):
    if torch.cuda.is_available():
        made = replace(setup(folders("bert-cased")), device=f"cuda:{torch.cuda.device_count()}")
    else:
        made = replace(setup(folders("bert-cased")), device="cuda")
    findings = examine(made)
    assert findings[-1].status == "fault"
    assert made.device in findings[-1].text


def test_a_layer_that_is_not_there_is_a_fault(folders):
    found = by_name(examine(setup(folders("bert-cased"), layer=9)))
    assert any(finding.status == "fault" for finding in found.values())


def test_relative_difference_is_the_largest_of_any_word():
    reference = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 2.0]], np.float32)
    other = np.array([[3.0, 4.5], [0.0, 0.0], [0.5, 2.0]], np.float32)  # 0.5 of 5, nothing, 0.5 of 2
    assert relative_difference(other, reference) == pytest.approx(0.25)
    assert relative_difference(reference, reference) == 0
    assert relative_difference(reference[1:2], reference[1:2]) == 0


def test_batches_that_change_vectors_are_a_warning():
    single = np.array([[1.0, 0.0]], np.float32)
    assert batch_finding(single * np.float32(1 + 5e-6), single).status == "ok"
    assert batch_finding(single * np.float32(1 + 5e-5), single).status == "warning"
    assert batch_finding(single * np.float32(np.nan), single).status == "warning"


def test_an_estimate_is_what_the_numbers_say():
    encoder = SimpleNamespace(
        width=10,
        dtype="float32",
        device=SimpleNamespace(type="cpu"),
        template=SimpleNamespace(size=2),
        tokenize=lambda texts, prefix="": [SimpleNamespace(ids=[7] * len(prefix)) for _ in texts],
    )
    measured = Measured(tokens_a_second=1000.0, memory=600 * MIB, device_memory=0.0, where="here")
    workload = Workload(task="t", items=100, words=3500, basis="")
    found = estimate(
        workload,
        measured=measured,
        encoder=encoder,
        settings={"prefix": "q: ", "storage": "float16"},
        batch_tokens=64,
        fertility=2.0,
    )
    assert found.subwords == 7000
    assert found.seconds == pytest.approx(7.5)  # 7000 sub-words and 5 special or prefix tokens a text
    assert found.vectors == 3500 * 10 * 2
    assert found.memory == 600 * MIB + STAGE_MEMORY + 2 * 3500 * 10 * 4 + 12 * 64 * 10 * 4
    assert found.device_memory == 0


def test_durations_are_readable():
    assert [duration(s) for s in (0.2, 45, 119, 600, 7199, 9000)] == [
        "1 s",
        "45 s",
        "119 s",
        "10 min",
        "120 min",
        "2.5 h",
    ]


def test_a_workload_is_counted_where_a_corpus_is_there(tmp_path):
    task = load_task(PROJECT / "config" / "tasks" / "sample.yaml")
    config = {"data_dir": None, "subset": {"seed": 1, "test": 3, "train": 4}, "probe": {}}
    run = make_run(task, config, base=tmp_path)
    assumed = workload_of(run, base=tmp_path)
    assert (assumed.items, assumed.words, assumed.sample) == (7, 7 * 35, ())
    assert "assumed" in assumed.basis
    folder = tmp_path / run.folder
    folder.mkdir(parents=True)
    write_corpus(run.corpus, table_path=folder / "corpus.parquet", info_path=folder / "corpus.json")
    counted = workload_of(run, base=tmp_path)
    assert (counted.items, len(counted.sample)) == (7, 7)
    assert counted.words == sum(len(item.words) for item in counted.sample)
    unknown = replace(task, pools={name: replace(pool, items=None) for name, pool in task.pools.items()})
    whole = config | {"subset": {"seed": 1, "test": "all", "train": 4}}
    assert workload_of(make_run(unknown, whole, base=tmp_path), base=tmp_path) is None


def test_a_control_without_files_is_always_usable(tmp_path):
    findings = diagnose("train-lookup", configfile=None, data_dir=None, base=tmp_path)
    assert [finding.status for finding in findings] == ["ok"]


def test_a_folder_is_examined_and_a_task_that_cannot_be_read_is_only_a_warning(folders, tmp_path, monkeypatch):
    monkeypatch.setenv("NERPROBE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(
        "nerprobe.doctor.examine", lambda setup, workloads: [Finding("load", "ok", str(len(workloads)))]
    )
    found = by_name(diagnose(str(folders("bert-cased")), configfile=None, data_dir=Path("none"), base=tmp_path))
    assert "content " in found["source"].text
    assert found["load"].text == "0"
    assert found["task profner"].status == "warning"
    assert "no such corpus file" in found["task profner"].text


def test_an_unknown_name_is_an_error_with_the_nearest_one(tmp_path):
    with pytest.raises(UnknownModelError, match="did you mean random-bert"):
        diagnose("random-bret", configfile=None, data_dir=None, base=tmp_path)


def test_a_report_is_one_plain_line_a_finding_and_a_verdict(capsys):
    findings = [
        Finding("load", "ok", "fine"),
        Finding("float32", "fault", "bad \x1b[31m\u202e"),
        Finding("x", "warning", "hm"),
    ]
    assert report("me", findings) is False
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["ok", "load", "fine"]
    assert lines[1].split(maxsplit=2) == ["fault", "float32", "bad \\u001b[31m\\u202e"]
    assert lines[3] == "me: not usable: 1 of 3 checks failed, 1 warning"
    assert report("me", findings[:1]) is True


def test_a_report_on_a_terminal_is_a_table_that_wraps(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr("nerprobe.doctor.wide_console", lambda: Console(file=screen, force_terminal=True, width=40))
    assert report("me", [Finding("limit", "ok", "[bold]word[/bold] " * 5)]) is True
    lines = screen.getvalue().splitlines()
    assert len(lines) > 1
    assert max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in lines) <= 40
    assert screen.getvalue().count("[bold]") == 5  # text of other people is no markup


def run(*words, cwd):
    variables = {
        **os.environ,
        "PYTHONPATH": str(PROJECT / "src"),
        "NERPROBE_CACHE": str(cwd / "cache"),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "nerprobe", "doctor", *words]
    return subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, check=False)


def test_the_command_on_a_registry_name_that_needs_no_hub(tmp_path):
    (tmp_path / "own.yaml").write_text("tasks: [sample]\nembed: {batch_tokens: 1024}\n")
    done = run("random-bert", "--configfile", "own.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    names = [line.split("  ")[0] for line in done.stdout.splitlines()]
    assert names[:-1] == ["ok"] * (len(names) - 1)
    assert "task sample" in done.stdout
    assert done.stdout.splitlines()[-1] == "random-bert: usable"


def test_the_command_on_a_folder_without_weights(copy, tmp_path):
    (copy() / "model.safetensors").unlink()
    done = run("./copy", cwd=tmp_path)
    assert done.returncode == 1
    assert "fault    source" in done.stdout
    assert "weights" in done.stdout
    assert "Traceback" not in done.stderr
    assert done.stdout.splitlines()[-1] == "./copy: not usable: 1 of 1 checks failed"
