"""What every stage shares: its log, the record of a failure, one line for a user's mistake, and no secrets."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from nerprobe.errors import CorpusFormatError
from nerprobe.files import read_json
from nerprobe.log import logger
from nerprobe.stage import stage

TOKEN = "hf_" + "Abcdefghij1234567890Zz"


@pytest.fixture
def failure(tmp_path: Path) -> Path:
    return tmp_path / "failures" / "my-model.json"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "stage.log"


@pytest.fixture(autouse=True)
def no_stored_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path / "none"))
    monkeypatch.setenv("HF_TOKEN", "plain-secret-of-mine")


def fail(error: Exception, *, log: Path | None, failure: Path | None, name: str = "embed") -> int:
    with pytest.raises(SystemExit) as caught, stage(name, log=log, failure=failure):
        raise error
    return int(caught.value.code or 0)


def test_a_mistake_that_a_user_can_mend_ends_in_one_line(
    log: Path, failure: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = CorpusFormatError("too few columns", where="f:3", expected="five", got="two\nlines", todo="mend it")
    assert fail(error, log=log, failure=failure) == 1
    screen = capsys.readouterr()
    assert screen.out == ""
    (line,) = screen.err.splitlines()
    assert line.endswith("embed: f:3: too few columns; expected five; got two lines; mend it")
    assert "Traceback" not in log.read_text()


def test_the_reason_is_left_for_the_board(log: Path, failure: Path) -> None:
    fail(CorpusFormatError("no", where="f:3"), log=log, failure=failure)
    assert read_json(failure) == {"schema": 1, "stage": "embed", "model": "my-model", "reason": "f:3: no"}


@pytest.mark.parametrize("name", ["fetch", "embed"])
def test_the_record_names_the_model_whichever_stage_failed(tmp_path: Path, log: Path, name: str) -> None:
    files = {"fetch": "my-model.json", "embed": "my-model.json"}
    fail(CorpusFormatError("no"), log=log, failure=tmp_path / files[name], name=name)
    assert json.loads((tmp_path / files[name]).read_text())["model"] == "my-model"


def test_a_model_whose_name_ends_like_a_file_keeps_its_name(tmp_path: Path, log: Path) -> None:
    fail(CorpusFormatError("no"), log=log, failure=tmp_path / "org.json.v2.json")
    assert json.loads((tmp_path / "org.json.v2.json").read_text())["model"] == "org.json.v2"


def test_success_removes_the_record_of_an_earlier_failure(log: Path, failure: Path) -> None:
    fail(CorpusFormatError("no"), log=log, failure=failure)
    with stage("embed", log=log, failure=failure):
        pass
    assert not failure.exists()


def test_success_without_an_earlier_failure_is_silent(
    log: Path, failure: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with stage("embed", log=log, failure=failure):
        logger.info("into the log only")
    assert capsys.readouterr() == ("", "")
    assert "into the log only" in log.read_text()


def test_an_error_nobody_foresaw_leaves_its_first_line_and_a_traceback_in_the_log(log: Path, failure: Path) -> None:
    assert fail(ZeroDivisionError("by\nzero"), log=log, failure=failure) == 1
    assert json.loads(failure.read_text())["reason"] == "ZeroDivisionError: by zero"
    assert "Traceback" in log.read_text()


@pytest.mark.parametrize("error", [CorpusFormatError, RuntimeError], ids=["foreseen", "not foreseen"])
@pytest.mark.parametrize(
    ("message", "secret"),
    [
        (f"sent {TOKEN} and got 401", TOKEN),
        ("token plain-secret-of-mine refused", "plain-secret-of-mine"),
        ("Authorization: Bearer abc.def.ghi", "abc.def.ghi"),
        ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("GET https://me:pAssw0rd@host/x", "pAssw0rd"),
    ],
    ids=["token", "variable", "header", "basic", "url"],
)
def test_no_secret_reaches_record_log_or_screen(
    log: Path,
    failure: Path,
    capsys: pytest.CaptureFixture[str],
    error: type[Exception],
    message: str,
    secret: str,
) -> None:
    fail(error(message), log=log, failure=failure)
    assert secret not in failure.read_text()
    assert secret not in capsys.readouterr().err
    # A traceback quotes no literal here: the message comes in by a variable.
    assert secret not in log.read_text()


@pytest.mark.parametrize("how", ["warning", "logger"])
def test_no_secret_reaches_the_log_by_a_warning(log: Path, how: str, capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with stage("embed", log=log):
            if how == "warning":
                warnings.warn(f"sent {TOKEN}", stacklevel=1)
            else:
                logger.warning("sent %s", TOKEN)
    assert TOKEN not in log.read_text()
    assert TOKEN not in capsys.readouterr().err


def test_a_warning_of_another_library_is_written_to_the_log(log: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with stage("embed", log=log):
            warnings.warn("this may matter", stacklevel=1)
    assert "this may matter" in log.read_text()


def test_handlers_are_taken_off_again(log: Path) -> None:
    before = list(logger.handlers)
    with stage("embed", log=log):
        assert len(logger.handlers) > len(before)
    assert logger.handlers == before


def test_a_stage_needs_neither_log_nor_record() -> None:
    assert fail(CorpusFormatError("no"), log=None, failure=None) == 1
