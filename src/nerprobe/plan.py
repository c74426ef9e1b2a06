"""What a configuration asks for: the runs, the encoders, and the strings that rules pass to stages.

Everything here is known at parse time, without torch, transformers or pandas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nerprobe.config import PROJECT, Pool, Task, closest, load_lock, load_registry, load_task, validate
from nerprobe.encoders import Encoder, resolve_all
from nerprobe.errors import ConfigError, CorpusFileError, SubsetSizeError
from nerprobe.files import canonical_json, sha256_file, sha256_text
from nerprobe.versions import CORPUS_VERSION, SUBSET_RULE, TAG_RULE


@dataclass(frozen=True, kw_only=True)
class Run:
    """One task under one set of rules: what must not be mixed on one board.

    Attributes:
        task: The task.
        label: Name of its folder, ``test<n>-train<n>-<8 hex>``.
        corpus: Specification of the corpus stage.
        subset: Specification of the subset stage.
        probe: Specification of the probe stage.
    """

    task: Task
    label: str
    corpus: dict[str, Any]
    subset: dict[str, Any]
    probe: dict[str, Any]

    @property
    def folder(self) -> str:
        """Return the run's folder, relative to the working directory."""
        return f"results/{self.task.name}/{self.label}"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A checked configuration.

    Attributes:
        config: The configuration, coerced and validated.
        runs: Runs by task name.
        wide: Runs by task name that embed the train pool for the learning curve; nothing else of them is made.
        encoders: Requested encoders and baselines by slug.
    """

    config: dict[str, Any]
    runs: dict[str, Run]
    wide: dict[str, Run]
    encoders: dict[str, Encoder]

    @property
    def board(self) -> dict[str, Any]:
        """Return the specification of the leaderboard stage: keys by model."""
        keys = {slug: encoder.key for slug, encoder in sorted(self.encoders.items())}
        return {"models": keys, "bootstrap": self.config["bootstrap"]}

    def has_errors_page(self, run: Run) -> bool:
        """Say whether a run gets errors.html, which holds texts: as asked, or if its task lets them be shared."""
        asked: bool | None = self.config["errors_page"]
        return run.task.texts_shareable if asked is None else asked

    def board_of(self, run: Run) -> dict[str, Any]:
        """Return the specification of the leaderboard stage for one run."""
        return {**self.board, "errors_page": self.has_errors_page(run)}

    def curve_spec(self, task: str) -> dict[str, Any]:
        """Return the specification of the curve stage, without its encoder."""
        probe = {name: value for name, value in self.runs[task].probe.items() if name != "cross_validate"}
        return {**probe, "train": self.config["subset"]["train"], **self.config["learning_curve"]}


def make_plan(config: Mapping[str, Any], *, base: Path, project: Path = PROJECT) -> Plan:
    """Check a configuration and work out its runs and encoders.

    Args:
        config: As Snakemake merged it.
        base: Folder that relative paths start from: where the command was typed.
        project: Root of the project.

    Raises:
        NerprobeError: On the first fault, in one line.
    """
    checked = validate({"data_dir": None, "errors_page": None, **config}, schema="config", where="config")
    registry = load_registry(project / "config" / "models.yaml")
    for name in checked["baselines"]:
        if name not in registry:
            raise ConfigError(
                "no baseline of this name", where="config: baselines", got=name, todo=closest(name, registry)
            )
    encoders = resolve_all(
        [*checked["models"], *checked["baselines"]],
        registry=registry,
        lock=load_lock(project / "config" / "models.lock.yaml"),
        embed=checked["embed"],
        base=base,
    )
    if not encoders:
        raise ConfigError(
            "nothing to evaluate", where="config", todo="name at least one encoder in models or baselines"
        )
    sizes = checked["learning_curve"]["sizes"]
    widest = "all" if "all" in sizes else max(sizes)
    wide_config = {**checked, "subset": {**checked["subset"], "train": widest}}
    runs, wide = {}, {}
    for name in checked["tasks"]:
        path = project / "config" / "tasks" / f"{name}.yaml"
        if not path.is_file():
            known = [file.stem for file in path.parent.glob("*.yaml")]
            raise ConfigError("no task file of this name", where="config: tasks", got=name, todo=closest(name, known))
        task = load_task(path)
        runs[name], wide[name] = (make_run(task, own, base=base) for own in (checked, wide_config))
    return Plan(config=checked, runs=runs, wide=wide, encoders=encoders)


def make_run(task: Task, config: Mapping[str, Any], *, base: Path) -> Run:
    """Return the run of one task.

    Raises:
        CorpusFileError: If a local file is missing.
        SubsetSizeError: If more items are asked for than a pool has.
    """
    source = _source(task, config["data_dir"], base)
    sizes = {name: config["subset"][pool.role] for name, pool in task.pools.items()}
    for name, pool in task.pools.items():
        _check_size(task, pool, sizes[name], source)
    subset = {"task": task.name, "seed": config["subset"]["seed"], "sizes": sizes}
    corpus = {
        "task": task.name,
        "title": task.title,
        "language": task.language,
        "licence": task.licence,
        "texts_shareable": task.texts_shareable,
        "labels": task.labels,
        "source": source,
        "repo": task.source.get("repo"),
        "format": task.format,
        "text": task.text,
        "item_prefix": task.item_prefix,
        "types": list(task.types),
        "ignored_types": list(task.ignored_types),
        "evaluations": list(task.evaluations),
        "pools": {name: _pool_spec(pool, source) for name, pool in task.pools.items()},
    }
    probe = {"evaluation": task.evaluations[0], "seed": config["subset"]["seed"], **config["probe"]}
    digest = sha256_text(canonical_json(_identity(task, source, subset, config["probe"])))[:8]
    size = config["subset"]
    label = f"test{size['test']}-train{size['train']}-{digest}"
    return Run(task=task, label=label, corpus=corpus, subset=subset, probe=probe)


def _source(task: Task, data_dir: str | None, base: Path) -> dict[str, Any]:
    """Return where the files really come from; local ones with the SHA-256 of each."""
    if task.source["kind"] == "hub" and data_dir is not None:
        folder = (base / data_dir).resolve() / task.name
    elif task.source["kind"] == "path":
        folder = (base / task.source["folder"]).resolve()
    else:
        return dict(task.source)
    hashes = {}
    for pool in task.pools.values():
        path = folder / pool.file
        if not path.is_file():
            raise CorpusFileError(
                "no such corpus file",
                where=f"task {task.name}",
                expected=str(path),
                todo="data_dir is read as DIR/<task>/<file as named in the repository>",
            )
        hashes[pool.file] = sha256_file(path)
    return {"kind": "path", "folder": str(folder), "sha256": hashes}


def _pool_spec(pool: Pool, source: Mapping[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {"file": pool.file}
    if pool.items is not None and source["kind"] == "sample":
        spec["items"] = pool.items
    if pool.sha256 is not None and source["kind"] == "hub":
        spec["sha256"] = pool.sha256
    return spec


def _check_size(task: Task, pool: Pool, size: int | str, source: Mapping[str, Any]) -> None:
    """Refuse more items than the task file states, unless a local file really has more."""
    if size == "all" or pool.items is None or int(size) <= pool.items:
        return
    stated = pool.items
    if source["kind"] == "path":
        from nerprobe.readers import TagRule, file_lines, read_file

        rule = TagRule(types=task.types, ignored_types=task.ignored_types)
        path = Path(source["folder"]) / pool.file
        how: dict[str, Any] = {"where": str(path), "layout": task.format, "tag_rule": rule}
        stated = sum(1 for _ in read_file(file_lines(path), path=path, gather=True, **how))
    if int(size) > stated:
        raise SubsetSizeError(
            f"pool {pool.name} has fewer items than asked for",
            where=f"task {task.name}, config: subset.{pool.role}",
            expected=f"at most {stated}, or all",
            got=str(size),
        )


def _identity(
    task: Task, source: Mapping[str, Any], subset: Mapping[str, Any], probe: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what the run's name is a hash of."""
    dataset = {name: value for name, value in source.items() if name != "folder"}
    if source["kind"] == "sample":
        from nerprobe.sample import SAMPLE_VERSION

        dataset["version"] = SAMPLE_VERSION
        dataset["items"] = {name: pool.items for name, pool in task.pools.items()}
    return {
        "task": task.name,
        "dataset": dataset,
        "pools": {name: [pool.role, pool.file] for name, pool in task.pools.items()},
        "subset": {**subset, "rule": SUBSET_RULE},
        "text": task.text,
        "format": task.format,
        "item_prefix": task.item_prefix,
        "types": list(task.types),
        "ignored_types": list(task.ignored_types),
        "tag_rule": TAG_RULE,
        "corpus_version": CORPUS_VERSION,
        "evaluations": list(task.evaluations),
        # Cross-validation scores beside the benchmark's and changes none of them: rows with and without it compare.
        "probe": {name: value for name, value in probe.items() if name != "cross_validate"},
    }
