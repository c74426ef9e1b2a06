"""Configuration, task files and encoder registry: read, coerced and checked against JSON schemas."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from nerprobe.errors import ConfigError, NerprobeError, TaskFileError
from nerprobe.shapes import Validator, misshapen

PROJECT = Path(__file__).resolve().parents[2]
"""Root of the project that this code lies in (it is always run from its source tree)."""

QUOTING = "lists on the command line need quotes: --config 'models=[a,b]'"


@dataclass(frozen=True, kw_only=True)
class Pool:
    """One pool of a task.

    Attributes:
        name: Name in the task file.
        role: ``test`` or ``train``: which size of the subset applies.
        file: File as named in the repository.
        items: Stated number of items, if the task file knows it.
        sha256: Hash of the file at the pinned revision, if the task file knows it.
    """

    name: str
    role: str
    file: str
    items: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, kw_only=True)
class Task:
    """One task file. Fields are those of ``workflow/schemas/task.schema.yaml``."""

    name: str
    title: str
    language: str
    licence: str
    texts_shareable: bool
    source: dict[str, Any]
    format: dict[str, Any]
    text: str
    item_prefix: str
    types: tuple[str, ...]
    ignored_types: tuple[str, ...]
    pools: dict[str, Pool]
    evaluations: tuple[dict[str, str], ...]
    labels: dict[str, str]


def closest(name: str, names: Mapping[str, object] | list[str]) -> str:
    """Return ``did you mean …`` for the nearest known name, or the known names."""
    lowered = {known.lower(): known for known in sorted(names)}
    near = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.6)
    if near:
        return f"did you mean {lowered[near[0]]}?"
    known = sorted(names)
    shown = ", ".join(known[:40]) + (", …" if len(known) > 40 else "")
    return f"known: {shown}"


def read_yaml(path: Path, error: type[NerprobeError] = ConfigError) -> Any:  # noqa: ANN401
    """Read a YAML file; a missing or broken one ends in one line."""
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise error("cannot read this file", where=str(path), got=problem.strerror or "") from problem
    except (yaml.YAMLError, ValueError, RecursionError) as problem:  # ValueError: wrong encoding, or no such date
        raise error("this is no YAML", where=str(path), got=" ".join(str(problem).split())) from problem


def _schema_types(schema: Mapping[str, Any]) -> set[str]:
    kinds = schema.get("type", [])
    found = {kinds} if isinstance(kinds, str) else set(kinds)
    for choice in schema.get("oneOf", []):
        found |= _schema_types(choice)
    return found


def _coerce_scalar(text: str, kinds: set[str]) -> object:
    lowered = text.strip().lower()
    if "null" in kinds and lowered in {"null", "none", "~", ""}:
        return None
    if "boolean" in kinds and lowered in {"true", "false"}:
        return lowered == "true"
    for kind, convert in (("integer", int), ("number", float)):
        if kind in kinds:
            try:
                return convert(text)
            except ValueError:
                continue
    return text


def coerce(value: object, schema: Mapping[str, Any]) -> object:
    """Give values the types that the schema asks for.

    ``--config`` delivers nested values as strings and a one-element list as a bare string, and
    YAML reads ``1e-6`` as a string; a value that fits no type is left for the schema to refuse.
    """
    kinds = _schema_types(schema)
    if isinstance(value, str) and "array" in kinds:
        value = [value]
    if isinstance(value, str):
        return _coerce_scalar(value, kinds)
    if isinstance(value, int) and not isinstance(value, bool) and "number" in kinds:
        return float(value)
    if isinstance(value, float) and value.is_integer() and "integer" in kinds and "number" not in kinds:
        return int(value)
    if isinstance(value, Mapping):
        inner = schema.get("properties", {})
        return {key: coerce(part, inner.get(key, {})) for key, part in value.items()}
    if isinstance(value, list):
        return [coerce(part, schema.get("items", {})) for part in value]
    return value


def _explain(problem: jsonschema.ValidationError) -> tuple[str, str, str]:
    """Return what, expected and hint of a schema error."""
    schema: Any = problem.schema if isinstance(problem.schema, Mapping) else {}
    wanted: Any = problem.validator_value
    if problem.validator == "additionalProperties" and isinstance(problem.instance, Mapping):
        known = list(schema.get("properties", {}))
        extra = sorted(str(key) for key in problem.instance if key not in known)
        return f"unknown key {extra[0]!r}", "one of " + ", ".join(known), closest(extra[0], known)
    if problem.validator == "required":
        given: Any = problem.instance
        missing = sorted(set(wanted) - set(given))
        return f"missing key {missing[0]!r}", "", ""
    if problem.validator == "enum":
        return "value not allowed", "one of " + ", ".join(map(str, schema["enum"])), ""
    if problem.validator == "oneOf":
        choices = [str(c.get("const", c.get("type", "see the schema"))) for c in schema["oneOf"]]
        return "value fits no choice", " or ".join(choices), ""
    rule = f"{problem.validator} {wanted}"
    return "value does not fit", rule, QUOTING if "array" in _schema_types(schema) else ""


def _deepest(problem: jsonschema.ValidationError) -> jsonschema.ValidationError:
    """Go into a failed ``oneOf`` along the choice whose ``kind`` fits."""
    if problem.validator != "oneOf" or not isinstance(problem.instance, Mapping):
        return problem
    kind = problem.instance.get("kind")
    choices: Any = problem.schema
    for inner in problem.context or []:
        choice = choices["oneOf"][inner.schema_path[0]]
        if choice.get("properties", {}).get("kind", {}).get("const") == kind and kind is not None:
            return inner
    return problem


def validate(value: object, *, schema: str, where: str, error: type[NerprobeError] = ConfigError) -> Any:  # noqa: ANN401
    """Coerce a value and check it against ``workflow/schemas/<schema>.schema.yaml``.

    Raises:
        NerprobeError: The class ``error``, one line on the first fault.
    """
    rules = read_yaml(PROJECT / "workflow" / "schemas" / f"{schema}.schema.yaml")
    wrong = misshapen(value)
    coerced = value if wrong else coerce(value, rules)
    wrong = wrong or misshapen(coerced)
    if wrong is not None:
        place, expected, got = wrong
        at = f"{where}: {place}" if place else where
        raise error("value does not fit", where=at, expected=expected, got=got)
    problems = list(Validator(rules).iter_errors(coerced))
    if not problems:
        return coerced
    problem = _deepest(min(problems, key=lambda p: (len(p.absolute_path), [str(s) for s in p.absolute_path])))
    what, expected, hint = _explain(problem)
    place = ".".join(str(step) for step in problem.absolute_path)
    got = "" if what.startswith(("unknown", "missing")) else repr(problem.instance)[:200]
    raise error(what, where=f"{where}: {place}" if place else where, expected=expected, got=got, todo=hint)


def load_task(path: Path) -> Task:
    """Read and check one task file; its name is the file's.

    Raises:
        TaskFileError: If it does not fit the schema or contradicts itself.
    """
    given = read_yaml(path, TaskFileError)
    if isinstance(given, dict) and isinstance(given.get("pools"), dict):
        given["pools"] = {str(name): pool for name, pool in given["pools"].items()}  # YAML reads 2020 as a number
    raw = validate(given, schema="task", where=str(path), error=TaskFileError)
    task = Task(
        name=path.stem,
        title=raw["title"],
        language=raw["language"],
        licence=raw["licence"],
        texts_shareable=raw["texts_shareable"],
        source=raw["source"],
        format=raw["format"],
        text=raw["text"],
        item_prefix=raw["item_prefix"],
        types=tuple(raw["types"]),
        ignored_types=tuple(raw["ignored_types"]),
        pools={name: Pool(name=name, **pool) for name, pool in raw["pools"].items()},
        evaluations=tuple(raw["evaluations"]),
        labels=raw.get("labels", {}),
    )
    _check_task(task, str(path))
    return task


def _check_task(task: Task, where: str) -> None:
    """Refuse what a schema cannot see."""
    both = sorted(set(task.types) & set(task.ignored_types))
    if both:
        raise TaskFileError("a type is both scored and ignored", where=where, got=", ".join(both))
    for evaluation in task.evaluations:
        for role in ("train", "test"):
            pool = evaluation[f"{role}_pool"]
            if pool not in task.pools or task.pools[pool].role != role:
                raise TaskFileError(
                    f"an evaluation's {role}_pool is no pool of that role",
                    where=where,
                    expected="one of " + ", ".join(p.name for p in task.pools.values() if p.role == role),
                    got=pool,
                )
    if task.text == "offsets" and not {"start", "end"} <= set(task.format.get("columns", [])):
        raise TaskFileError(
            "text: offsets needs the columns start and end",
            where=where,
            todo="add them to format.columns, or say text: spaces",
        )
    unsized = sorted(pool.name for pool in task.pools.values() if pool.items is None)
    if task.source["kind"] == "sample" and unsized:
        raise TaskFileError("a generated pool needs its number of items", where=where, got=f"none for {unsized[0]}")
    if task.format["kind"] in {"jsonl", "parquet"} and task.source["kind"] == "sample":
        raise TaskFileError("the sample source is written in columns", where=where, expected="format.kind: columns")


def read_config(configfile: Path | None = None, **over: object) -> dict[str, Any]:
    """Return the default configuration with a file's values and single keys on top, as Snakemake merges them.

    Raises:
        ConfigError: If the file is no mapping.
    """
    merged: dict[str, Any] = dict(read_yaml(PROJECT / "config" / "config.yaml"))
    own = (read_yaml(configfile) or {}) if configfile else {}
    if not isinstance(own, dict):
        raise ConfigError("a configuration is a mapping of keys", where=str(configfile), got=type(own).__name__)
    for name, value in {**own, **over}.items():
        known = merged.get(name)
        merged[name] = {**known, **value} if isinstance(known, dict) and isinstance(value, dict) else value
    return merged


def load_registry(path: Path) -> dict[str, dict[str, Any]]:
    """Read and check the encoder registry."""
    entries: dict[str, dict[str, Any]] = validate(read_yaml(path) or {}, schema="models", where=str(path))
    return entries


def load_lock(path: Path) -> dict[str, str]:
    """Read ``config/models.lock.yaml``: full revision of each hub id that ``nerprobe lock`` pinned."""
    if not path.exists():
        return {}
    return validate(read_yaml(path) or {}, schema="lock", where=str(path))  # type: ignore[no-any-return]
