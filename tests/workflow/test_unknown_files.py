"""Files asked for by name that the configuration does not have."""

from __future__ import annotations

import pytest
from helpers import Place

pytestmark = pytest.mark.workflow


@pytest.mark.parametrize(
    "file",
    [
        "resources/encoders/gamma.json",
        "RUN/metrics/gamma.json",
        "RUN/embeddings/alpha.0123456789ab.parquet",
        "results/profner/test1-train1-01234567/metrics/alpha.json",
    ],
)
def test_a_file_of_no_known_encoder_key_or_run_has_no_rule(base: Place, file: str) -> None:
    place = base.at("unknown files")
    config = place.config("./alpha")
    if "RUN" in file:
        ran = place.run(*config, flags=["-n", "--quiet", "all", "--summary"])
        run = next(line for line in ran.out.splitlines() if line.startswith("results/")).split("/")[2]
        file = file.replace("RUN", f"results/profner/{run}")
    ran = place.run(*config, flags=["-n", file])
    assert ran.code != 0
    assert "MissingRuleException" in ran.out
    assert file in ran.out
    assert "Traceback" not in ran.out


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("resources/encoders/gamma.json", "no encoder gamma in this configuration"),
        ("resources/encoders/some--model--00000000.json", ""),
    ],
)
def test_of_many_encoders_an_unknown_one_is_refused_too(base: Place, file: str, said: str) -> None:
    place = base.at("unknown of many")
    names = ",".join(f"some/model-{number}@{number:040x}" for number in range(200))
    ran = place.run(f"models=[{names},some/model@{0:040x}]", "tasks=[sample]", "baselines=[]", flags=["-n", file])
    assert (ran.code == 0) == (said == "")
    assert said in ran.out
