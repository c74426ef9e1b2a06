"""Promises of the workflow's own text: fingerprints, imports when it is read, schema, and the shape of rules."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
import yte
from helpers import PROJECT
from reach import Sources

pytestmark = pytest.mark.workflow

RULES = sorted((PROJECT / "workflow" / "rules").glob("[0-9]*.smk"))
PLUMBING = {"stage_commands", "errors", "files", "log", "redact", "stage"}
ENTRIES = {"probe": "write_probe", "score": "write_metrics", "leaderboard": "write_board"}
ENTRIES |= {"errors_page": "write_errors_page"}
ENTRIES |= {"curve": "write_curve", "learning_curve": "write_learning_curve"}
RULE_STAGES = {
    "fetch_encoder": "fetch",
    "fit_curve": "curve",
    "draw_curves": "learning-curve",
    "errors_page": "errors-page",
}


def literal_modules() -> dict[str, tuple[str, ...]]:
    text = (PROJECT / "workflow" / "rules" / "common.smk").read_text(encoding="utf-8")
    found = re.search(r"^MODULES = (\{.*?^\})", text, re.MULTILINE | re.DOTALL)
    assert found
    modules: dict[str, tuple[str, ...]] = ast.literal_eval(found[1])
    return modules


@pytest.mark.parametrize("stage", ENTRIES)
def test_fingerprint_covers_every_module_whose_code_the_stage_runs(stage: str) -> None:
    """Not merely imported: a definition of the module must be within reach of the stage's command."""
    reached = Sources(PROJECT / "src" / "nerprobe").reached((stage, ENTRIES[stage]))
    assert set(literal_modules()[stage]) == reached - PLUMBING


def test_reach_follows_calls_classes_and_imports_inside_functions(tmp_path: Path) -> None:
    sources = {
        "a": "from nerprobe.b import f as g\nfrom nerprobe.e import unused\ndef start():\n    return g()\n",
        "b": "def f():\n    from nerprobe.c import K\n    return K()\ndef other():\n    from nerprobe.e import z\n",
        "c": "from nerprobe.d import LIMIT\nclass K:\n    def m(self):\n        return LIMIT\n",
        "d": "LIMIT = 3\n",
        "e": "def unused():\n    pass\nz = 1\n",
    }
    for name, text in sources.items():
        (tmp_path / f"{name}.py").write_text(text)
    assert Sources(tmp_path).reached(("a", "start")) == {"a", "b", "c", "d"}


def test_commands_enter_the_stages_where_the_fingerprints_start() -> None:
    text = (PROJECT / "src" / "nerprobe" / "stage_commands.py").read_text(encoding="utf-8")
    for stage, entry in ENTRIES.items():
        assert f"from nerprobe.{stage} import {entry}\n" in text


def test_reading_the_workflow_imports_no_heavy_library(tmp_path: Path) -> None:
    """A plan with every kind of encoder and a local folder, as common.smk makes it."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    script = f"""
import sys
from pathlib import Path
import yaml
from nerprobe.plan import make_plan
project = Path({str(PROJECT)!r})
config = yaml.safe_load((project / "config" / "config.yaml").read_text(encoding="utf-8"))
config["tasks"] = ["profner", "sample"]
config["models"] += ["./folder", "org/name@{"0" * 40}"]
plan = make_plan(config, base=Path({str(tmp_path)!r}), project=project)
plan.board, [encoder.embed_spec for encoder in plan.encoders.values()]
print(sorted({{"torch", "transformers", "pandas", "sklearn", "pyarrow", "scipy"}} & set(sys.modules)), len(plan.runs))
"""
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(PROJECT / "src"), "NERPROBE_CACHE": str(tmp_path / "c")}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == "[] 2\n"


@pytest.mark.parametrize("stage", ["fetch", "corpus", "subset", *ENTRIES])
def test_stages_without_a_network_import_no_torch(stage: str) -> None:
    module, function = {"fetch": ("fetch", "write_encoder"), "corpus": ("corpus", "write_corpus")}.get(
        stage, (stage, {**ENTRIES, "subset": "write_subset"}.get(stage, ""))
    )
    script = (
        f"import sys\nfrom nerprobe.{module} import {function}\n"
        "print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(PROJECT / "src")}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def keys(value: Any) -> dict[str, Any] | None:
    return {name: keys(part) for name, part in value.items()} if isinstance(value, dict) else None


def schema_keys(schema: dict[str, Any]) -> dict[str, Any] | None:
    if "properties" not in schema:
        return None
    assert schema["additionalProperties"] is False
    return {name: schema_keys(part) for name, part in schema["properties"].items()}


def test_config_and_schema_have_the_same_keys() -> None:
    config = yaml.safe_load((PROJECT / "config" / "config.yaml").read_text(encoding="utf-8"))
    schema = yaml.safe_load((PROJECT / "workflow" / "schemas" / "config.schema.yaml").read_text(encoding="utf-8"))
    assert keys(config) == schema_keys(schema)


def rule_texts() -> dict[str, tuple[Path, str]]:
    """Return each rule's body by its name, and the file it is in."""
    found = {}
    for path in RULES:
        for match in re.finditer(r"^rule (\w+):\n((?: {4}.*\n|\n)+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            found[match[1]] = (path, match[2])
    return found


def test_rules_are_the_stages_in_files_named_after_them() -> None:
    stages = {"10_fetch": ["fetch_encoder"], "20_corpus": ["corpus", "subset"], "30_embed": ["embed"]}
    stages |= {"40_probe": ["probe"], "50_score": ["score"], "60_leaderboard": ["leaderboard"]}
    stages |= {"70_errors_page": ["errors_page"]}
    stages["80_learning_curve"] = ["learning_curve", "fit_curve", "draw_curves"]
    by_file: dict[str, list[str]] = {}
    for name, (path, _) in rule_texts().items():
        by_file.setdefault(path.stem, []).append(name)
    assert by_file == stages


@pytest.mark.parametrize("name", [*RULE_STAGES, "corpus", "subset", "embed", "probe", "score", "leaderboard"])
def test_rule_has_log_environment_and_one_command(name: str) -> None:
    _, body = rule_texts()[name]
    parts = re.findall(r"^ {4}(\w+):", body, re.MULTILINE)
    order = ["input", "output", "log", "benchmark", "conda", "threads", "resources", "params", "shell"]
    assert parts == sorted(parts, key=order.index)
    assert {"output", "log", "conda", "threads", "params", "shell"} <= set(parts)
    command = ast.literal_eval("(" + body.partition("    shell:\n")[2].strip() + ")")
    stage = RULE_STAGES.get(name, name)
    assert command.startswith(f"python -m nerprobe {stage} --")
    assert command.endswith(" --log {log:q}")
    assert "    conda:\n        ENVIRONMENT\n" in body


def pins_of(environment: str) -> list[str]:
    read = yaml.safe_load((PROJECT / "envs" / environment).read_text(encoding="utf-8"))
    (pins,) = (part["pip"] for part in read["dependencies"] if isinstance(part, dict))
    assert read["channels"] == ["conda-forge"]
    return list(pins)


def test_fetching_takes_no_core_and_profiles_bound_how_many_run() -> None:
    """It waits for the network: taking a core, it could not run while an encoder computes on all of them."""
    _, body = rule_texts()["fetch_encoder"]
    assert "\n    threads: 0" in body
    assert "\n        download=1," in body
    profiles = sorted((PROJECT / "profiles").glob("*/config.yaml"))
    assert profiles
    for profile in profiles:
        text = profile.read_text(encoding="utf-8")
        assert yte.process_yaml(text, require_use_yte=True)["resources"]["download"] >= 1


def test_conda_environment_pins_what_the_jobs_import_as_the_lock_does() -> None:
    pins = pins_of("nerprobe.yaml")
    lock = (PROJECT / "requirements.lock").read_text(encoding="utf-8").split("\n")
    assert set(pins) <= set(lock)
    known = {"scikit-learn": "sklearn", "pyyaml": "yaml", "vl-convert-python": "vl_convert"}
    pinned = {known.get(name, name) for pin in pins for name in [pin.partition("==")[0].lower()]}
    imported = {"tokenizers"}  # its version goes into the metrics
    for path in (PROJECT / "src" / "nerprobe").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module.partition(".")[0])
    assert imported - set(sys.stdlib_module_names) - {"nerprobe"} == pinned


def test_cpu_environment_differs_in_torch_alone() -> None:
    expected = [f"{pin}+cpu" if pin.startswith("torch==") else pin for pin in pins_of("nerprobe.yaml")]
    assert pins_of("nerprobe-cpu.yaml") == expected
    rules = (PROJECT / "workflow" / "rules" / "common.smk").read_text(encoding="utf-8")
    assert '"../../envs/nerprobe{}.yaml"' in rules
    assert '"-cpu"' in rules


def test_container_recipe_copies_what_there_is_and_installs_the_lock() -> None:
    recipe = (PROJECT / "envs" / "nerprobe.def").read_text(encoding="utf-8")
    copied = dict(re.findall(r"^    (\S+) (/opt/nerprobe/\S+)$", recipe, re.MULTILINE))
    assert {"Snakefile", "workflow", "config", "envs", "profiles", "src", "requirements.lock"} <= set(copied)
    for name, target in copied.items():
        assert (PROJECT / name).exists()
        assert target == f"/opt/nerprobe/{name}"
    assert "pip install --no-cache-dir --requirement /opt/nerprobe/requirements.lock" in recipe
