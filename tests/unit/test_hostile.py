"""Input that means harm, or is broken as if it did: refused in one line or shown harmlessly; nothing of it is run."""

from __future__ import annotations

import io
import json
import logging
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from boards import board_of, metrics_of, put_failure, put_metrics, run_folder
from makers import IGNORED, PARQUET, PROFNER, ROOT, RULE, TYPES, acts, run_nerprobe

from nerprobe import manage
from nerprobe.config import load_lock, load_registry, load_task, read_config
from nerprobe.errors import CorpusFormatError, NerprobeError, TaskFileError
from nerprobe.files import write_json
from nerprobe.leaderboard import board_frame
from nerprobe.page import board_page
from nerprobe.parquet_rows import parquet_rows
from nerprobe.plan import make_plan
from nerprobe.random_bert import build_random_bert
from nerprobe.readers import TagRule, json_rows, read_columns, read_rows
from nerprobe.redact import ScrubFormatter, scrub
from nerprobe.render import board_markdown, print_board, wide_console

pytestmark = pytest.mark.hostile

REV = "0123456789abcdef0123456789abcdef01234567"
ESC = "\x1b[31m\x07\x9b\u202e<b>"


# --- names in the configuration ------------------------------------------------------------------

NAMES = {
    "climbs": "../../etc/passwd",
    "climbs within": "org/../../name",
    "spaces": "a b",
    "only a space": " ",
    "empty": "",
    "quotes": "a'b\"c",
    "semicolon": "a;touch canary",
    "substitution": "$(touch canary)",
    "backticks": "`touch canary`",
    "pipe": "a|touch canary",
    "line end": "a\nb",
    "last line end": "minilm-l6\n",
    "last line end of a hub id": f"org/name@{REV}\n",
    "space in a hub id": f"org/na me@{REV}",
    "three parts": f"a/b/c@{REV}",
    "option": "--help",
    "pattern": "*",
    "home": "~",
    "NUL": "a\0b",
    "300 characters": "x" * 300,
    "not ASCII": "niño",
    "lookalike": "minilm-l\u0431",
    "terminal escape": "\x1b[31mred",
    "right to left": "\u202eevil",
    "half a character": "\ud800",
    "a device": "/dev/zero",
    "a folder with NUL": "./a\0b",
    "a folder without a Latin letter": "./漢",
    "a Snakemake pattern": "{model}",
}


def plan(base: Path, **over: Any) -> None:
    config = read_config()
    for name, value in (
        {"models": [], "tasks": ["sample"], "subset": {"seed": 1, "test": 5, "train": 5}} | over
    ).items():
        config[name] = (
            {**config[name], **value} if isinstance(value, dict) and isinstance(config[name], dict) else value
        )
    make_plan(config, base=base)


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is made by mistake is made here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NERPROBE_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("key", ["models", "tasks", "baselines"])
@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_name_is_refused_in_one_harmless_line(tmp_path: Path, key: str, name: str) -> None:
    with pytest.raises(NerprobeError) as caught:
        plan(tmp_path, **{key: [NAMES[name]]})
    assert not acts(str(caught.value))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 2000
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["$(touch canary)", "a;touch 'canary'", 'q"uo"te', "n ñ 漢", "-rf", "x\nrm"])
def test_a_folder_with_a_hostile_name_gets_a_plain_row(tmp_path: Path, name: str) -> None:
    build_random_bert(tmp_path / name, seed=3, layers=1, width=8, heads=2, intermediate=16, max_tokens=32)
    config = read_config() | {"models": [f"./{name}"], "baselines": [], "tasks": ["sample"]}
    config["subset"] = {"seed": 1, "test": 5, "train": 5}
    (slug,) = make_plan(config, base=tmp_path).encoders
    assert slug.isascii()
    assert slug.replace("-", "").replace(".", "").replace("_", "").isalnum()
    assert slug[0].isalnum()


BIG = 10**400
VALUES: dict[str, dict[str, Any]] = {
    "device with a command": {"embed": {"device": "cpu; touch canary"}},
    "device with a substitution": {"embed": {"device": "$(touch canary)"}},
    "device with a last line end": {"embed": {"device": "cpu\n"}},
    "batch with a command": {"embed": {"batch_tokens": "64; touch canary"}},
    "dtype with a command": {"embed": {"dtype": "float32 && touch canary"}},
    "resamples with a command": {"bootstrap": {"resamples": "10 `touch canary`"}},
    "level with a command": {"bootstrap": {"level": "0.9|touch canary"}},
    "seed with a command": {"subset": {"seed": "1 $(touch canary)"}},
    "size with a command": {"subset": {"test": "all;touch canary"}},
    "C with a command": {"probe": {"C": "1 & touch canary"}},
    "a seed beyond all bounds": {"subset": {"seed": BIG}},
    "a C beyond all bounds": {"probe": {"C": BIG}},
    "a tolerance beyond all bounds": {"probe": {"tol": f"1e{BIG}"[:300]}},
    "resamples beyond all bounds": {"bootstrap": {"resamples": BIG}},
    "resamples beyond memory": {"bootstrap": {"resamples": 10**12}},
    "a key with a command": {"$(touch canary)": 1},
    "an inner key with a terminal escape": {"embed": {ESC: 1}},
    "a list for a number": {"bootstrap": {"resamples": [1]}},
    "a folder that is none": {"data_dir": "$(touch canary)", "tasks": ["profner"]},
    "a folder with a terminal escape": {"data_dir": ESC, "tasks": ["profner"]},
    "a folder with NUL": {"data_dir": "a\0b", "tasks": ["profner"]},
}


@pytest.mark.parametrize("name", VALUES)
def test_a_hostile_value_is_refused_in_one_harmless_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(NerprobeError) as caught:
        plan(tmp_path, **VALUES[name])
    assert not acts(str(caught.value))
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


# --- YAML files ----------------------------------------------------------------------------------

LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
BOMBS = {
    "Python tag": "!!python/object/apply:os.system ['touch canary']",
    "Python name": "a: !!python/name:os.system",
    "Python module": "a: !!python/module:os",
    "Python object": "!!python/object/new:subprocess.Popen [['touch', 'canary']]",
    "10^11 references": LAUGHS,
    "a list in itself": "a: &a [*a]",
    "a mapping in itself": "&a {title: *a}",
    "nested without end": "a: " + "[" * 5000,
    "closed, but deep": "a: " + "[" * 200 + "]" * 200,
    "a number beyond all bounds": f"a: 0x{'f' * 5000}",
    "half a character": r'a: "\ud800"',
    "a terminal escape": r'"\e[31m": 1',
    "merged references": "a: &a {x: 1}\n<<: [*a, *a]\nb: !!binary /w==",
    "two documents": "a: 1\n---\nb: 2",
}


@pytest.mark.parametrize("kind", ["task", "registry", "lock", "config"])
@pytest.mark.parametrize("name", BOMBS)
def test_a_yaml_bomb_is_refused_in_one_harmless_line(tmp_path: Path, kind: str, name: str) -> None:
    path = tmp_path / "bomb.yaml"
    path.write_text(BOMBS[name])

    def configured(file: Path) -> None:
        make_plan(read_config(file), base=tmp_path)

    read: dict[str, Callable[[Path], object]]
    read = {"task": load_task, "registry": load_registry, "lock": load_lock, "config": configured}
    with pytest.raises(NerprobeError) as caught:
        read[kind](path)
    assert not acts(str(caught.value))
    assert "\n" not in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == ["bomb.yaml"]


def sample_task(**changes: Any) -> str:
    task = yaml.safe_load((ROOT / "config" / "tasks" / "sample.yaml").read_text())
    return yaml.safe_dump(task | changes)


TASKS: dict[str, dict[str, Any]] = {
    "prefix with a last line end": {"item_prefix": "a-\n"},
    "prefix with a path": {"item_prefix": "../"},
    "revision with a last line end": {"source": {"kind": "hub", "repo": "a/b", "revision": REV + "\n"}},
    "repository with a last line end": {"source": {"kind": "hub", "repo": "a/b\n", "revision": REV}},
    "repository that climbs": {"source": {"kind": "hub", "repo": "../b", "revision": REV}},
    "file that climbs": {"pools": {"test": {"role": "test", "file": "a/../../b", "items": 1}}},
    "file with a line end": {"pools": {"test": {"role": "test", "file": "a\nb", "items": 1}}},
    "pool with a path": {"pools": {"../test": {"role": "test", "file": "a", "items": 1}}},
    "pool with a last line end": {"pools": {"test\n": {"role": "test", "file": "a", "items": 1}}},
    "type with a line end": {"types": ["A\nB"]},
    "title that is half a character": {"title": "\ud800"},
}


@pytest.mark.parametrize("name", TASKS)
def test_a_hostile_task_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "evil.yaml").write_text(sample_task(**TASKS[name]))
    with pytest.raises(TaskFileError) as caught:
        load_task(tmp_path / "evil.yaml")
    assert not acts(str(caught.value))


# --- corpus files --------------------------------------------------------------------------------

ROW: dict[str, Any] = {"tokens": ["a"], "tags": ["O"], "id": "1"}
LINES = {
    "an id of half a character": json.dumps(ROW | {"id": "\ud800"}),
    "an empty id": json.dumps(ROW | {"id": ""}),
    "metadata of half a character": json.dumps(ROW | {"date": "\ud800"}),
    "a terminal escape for a row": json.dumps(ESC, ensure_ascii=False),
    "a terminal escape for a tag": json.dumps(ROW | {"tags": [f"B-{ESC}"]}),
    "an id with a terminal escape, twice": "\n".join([json.dumps(ROW | {"id": ESC})] * 2),
    "a number beyond all bounds": json.dumps(ROW).replace('"1"', "9" * 5000),
    "objects without end": '{"a":' * 50_000,
    "an id nested without end": '{"tokens": ["a"], "tags": ["O"], "id": ' + "[" * 50_000 + "]" * 50_000 + "}",
    "tags nested": json.dumps(ROW | {"tags": [[["O"]]]}),
    "a word with NaN": '{"tokens": [NaN], "tags": ["O"], "id": 1}',
}


@pytest.mark.parametrize("name", LINES)
def test_a_hostile_row_is_refused_in_one_harmless_line(name: str) -> None:
    layout = {"kind": "jsonl", "words": "tokens", "tags": "tags", "item": "id", "metadata": ["date"]}
    text = LINES[name]
    if '"date"' not in text:
        text = text.replace('"tokens"', '"date": "", "tokens"')
    found = json_rows(io.BytesIO(text.encode("utf-8", "surrogatepass")), "f.jsonl")
    with pytest.raises(CorpusFormatError, match=r"^f\.jsonl:\d") as caught:
        list(read_rows(found, where="f.jsonl", layout=layout, tag_rule=RULE))
    assert not acts(str(caught.value))
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "line",
    [f"{ESC} 7 0 1", f"a {ESC} 0 1 O\nb {ESC} 0 1 O", f"a 7 0 1 B-{ESC}", f"a 7 {ESC} 1 O"],
    ids=["too few columns", "an id", "a tag", "an offset"],
)
def test_a_hostile_line_is_quoted_harmlessly(line: str) -> None:
    with pytest.raises(CorpusFormatError, match=r"^f\.txt:\d") as caught:
        list(read_columns(io.BytesIO(line.encode()), where="f.txt", layout=PROFNER, tag_rule=RULE, gather=True))
    assert not acts(str(caught.value))


def parquet(table: pa.Table, **how: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **how)
    return buffer.getvalue()


def many_values() -> bytes:
    """One item of three million equal words, in a few kilobytes."""
    words = pa.array([["a"] * 3_000_000], pa.list_(pa.string()))
    tags = pa.array([["O"] * 3_000_000], pa.list_(pa.string()))
    return parquet(pa.table({"tokens": words, "tags": tags, "id": ["1"]}), compression="zstd")


def long_words() -> bytes:
    """Two thousand times one word of 200 kB: 400 MB in a few kilobytes."""
    word = pa.array([["a" * 200_000]] * 2_000, pa.list_(pa.string()))
    ids = [str(number) for number in range(2_000)]
    return parquet(pa.table({"tokens": word, "tags": [["O"]] * 2_000, "id": ids}), compression="zstd")


def wrong_encoding() -> bytes:
    words = pa.array([[b"\xff\xfe"]], pa.list_(pa.binary())).cast(pa.list_(pa.binary()))
    data = parquet(pa.table({"tokens": words, "tags": [["O"]], "id": ["1"]}), store_schema=False)
    return data


def page_size_lies() -> bytes:
    """The header of the first page announces another size than the page has."""
    data = bytearray(parquet(pa.table({"tokens": [["a"] * 200], "tags": [["O"] * 200], "id": ["1"]})))
    assert data[4] == 0x15  # thrift: field 1, an int: the type of the page
    assert data[6] == 0x15  # field 2: its size, a varint
    last = next(at for at in range(7, 12) if data[at] < 0x80)
    data[7:last] = b"\xff" * (last - 7)
    data[last] = 0x7E
    return bytes(data)


def rows_lie() -> bytes:
    """The footer announces more rows and values than there are."""
    table = pa.table({"tokens": [["a"], ["b"]], "tags": [["O"], ["O"]], "id": ["1", "2"]})
    data = parquet(table, compression="none")
    footer = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
    lying = data[footer:-8].replace(b"\x16\x04", b"\x16\x7e")  # thrift: an i64 field, 2 becomes 63
    assert lying != data[footer:-8]
    return data[:footer] + lying + data[-8:]


@pytest.mark.parametrize("make", [many_values, long_words, wrong_encoding, page_size_lies, rows_lie])
def test_a_parquet_file_that_lies_is_refused_in_one_line(make: Callable[[], bytes]) -> None:
    data = make()
    assert len(data) < 100_000
    found = parquet_rows(io.BytesIO(data), "f.parquet")
    with pytest.raises(CorpusFormatError, match=r"^f\.parquet") as caught:
        list(read_rows(found, where="f.parquet", layout=PARQUET, tag_rule=RULE))
    assert not acts(str(caught.value))


# --- what is shown -------------------------------------------------------------------------------


def hostile_board(tmp_path: Path) -> dict[str, Any]:
    """A board whose every text is hostile, as far as it is no name of a file."""
    kind = f"{TYPES[0]}"
    folder = run_folder(tmp_path, title=ESC, licence=ESC, sha256={ESC: "0" * 64})
    metrics = metrics_of("m")
    encoder = metrics["encoder"] | {"info": {"family": ESC, "licence": ESC}, "revision": ESC}
    put_metrics(folder, "half", {"t1": "O O O", "t2": "O O"}, encoder=encoder)
    put_failure(folder, "bad", f"{kind}{ESC}")
    return board_of(folder, ["half", "bad"])


def printed(board: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> str:
    print_board(board, wide_console())
    return capsys.readouterr().out


# What the page's libraries are made of; the data they read are in an element of another kind.
CODE = re.compile(r"<(script(?![^>]*json)|style)\b.*?</\1>", re.DOTALL)


@pytest.mark.parametrize("how", ["terminal", "page", "Markdown", "CSV", "JSON"])
def test_no_text_of_a_board_acts(tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str) -> None:
    board = hostile_board(tmp_path)
    board["types"] = [kind + ESC for kind in board["types"]]
    for row in board["rows"]:
        if row["status"] == "ok":
            row["per_type"] = {kind + ESC: counts for kind, counts in row["per_type"].items()}
            row["flags"] = row["command"] = ESC
    write_json(tmp_path / "board.json", board)
    shown = {
        "terminal": lambda: printed(board, capsys),
        "page": lambda: CODE.sub("", board_page(board)),
        "Markdown": lambda: board_markdown(board),
        "CSV": lambda: board_frame(board).to_csv(index=False),
        "JSON": lambda: (tmp_path / "board.json").read_text(),
    }[how]()
    assert "31m" in shown
    # In JSON a right-to-left mark is data; what acts in a terminal is not there.
    assert set(acts(shown)) <= ({"\u202e"} if how == "JSON" else set())
    if how in ("page", "Markdown"):  # the page itself has bold text, but not after these signs
        assert "u202e<b>" not in shown


def test_a_log_line_does_not_act() -> None:
    record = logging.LogRecord("n", logging.WARNING, "f", 1, "item %s", (ESC,), None)
    assert acts(ScrubFormatter("%(message)s").format(record)) == []


def test_a_corpus_is_shown_harmlessly_by_check_task(tmp_path: Path) -> None:
    pools = {"test": {"role": "test", "file": f"{ESC}.txt"}, "train": {"role": "train", "file": "t.txt"}}
    layout = {"kind": "columns", "separator": " ", "columns": ["word", "item", "tag"]}
    changes = {"source": {"kind": "path", "folder": "."}, "format": layout, "pools": pools, "text": "spaces"}
    (tmp_path / "mine.yaml").write_text(sample_task(**changes, types=[f"T{ESC}"], ignored_types=list(IGNORED)))
    (tmp_path / f"{ESC}.txt").write_text(f"{ESC} i{ESC} B-T{ESC}\n")
    (tmp_path / "t.txt").write_text(f"a 2 B-T{ESC}\n")
    done = run_nerprobe("check-task", "mine.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "31m" in done.stdout
    assert acts(done.stdout + done.stderr) == []


def test_a_hostile_registry_is_shown_harmlessly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {"source": {"kind": "train-lookup"}, "family": f"{ESC}[/nope]", "licence": "[red]x", "languages": ESC}
    (tmp_path / "models.yaml").write_text(yaml.safe_dump({"mine": entry}))
    monkeypatch.setattr(manage, "REGISTRY", tmp_path / "models.yaml")
    manage.list_models("mine")
    shown = capsys.readouterr().out
    assert "[/nope]" in shown.replace("\n", "")
    assert "[red]x" in shown
    assert acts(shown) == []


# --- secrets -------------------------------------------------------------------------------------

PASSWORD = "open sesame"
SECRETS = {
    "a password with an at sign": ({}, "GET https://me:p@ss:w@rd@host/x", "w@rd"),
    "a user with a token": ({}, "https://hf_abcdefghijklmnop@host/x", "abcdefghijklmnop"),
    "the endpoint's password alone": (
        {"HF_ENDPOINT": "https://me:sesame99@host"},
        "refused: user me, password sesame99",
        "sesame99",
    ),
    "a proxy's password": ({"https_proxy": "http://me:sesame99@proxy:3128"}, "407 for sesame99", "sesame99"),
    "an index's password": ({"PIP_INDEX_URL": "https://me:sesame99@host/simple"}, "sesame99", "sesame99"),
    "a token of another library": ({"HUGGINGFACEHUB_API_TOKEN": "sesame99"}, "Bearer? sesame99", "sesame99"),
    "the older name": ({"HUGGING_FACE_HUB_TOKEN": "sesame99"}, "got sesame99", "sesame99"),
    "a token with a space": ({"HF_TOKEN": PASSWORD}, f"got {PASSWORD}", PASSWORD),
    "a token within a word": ({"HF_TOKEN": "sesame99"}, "xsesame99x", "sesame99"),
    "a header": ({}, "{'authorization': 'Bearer abc.def'}", "abc.def"),
}


@pytest.mark.parametrize("name", SECRETS)
def test_no_secret_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    variables, text, secret = SECRETS[name]
    monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path / "none"))
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    assert secret in text
    assert secret not in scrub(text)


@pytest.mark.hostile(0)
def test_the_place_of_a_token_is_no_secret(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path / "none"))
    assert scrub(f"no token at {tmp_path / 'none'}") == f"no token at {tmp_path / 'none'}"


def test_a_command_tells_no_password_of_its_endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://me:se@same99@127.0.0.1:9")
    monkeypatch.setenv("HF_TOKEN", "hf_plainsecret123456")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    done = run_nerprobe("lock", "org/name", cwd=tmp_path)
    assert done.returncode == 1
    assert "org/name" in done.stderr
    for secret in ("same99", "plainsecret"):
        assert secret not in done.stdout + done.stderr


def test_a_tag_rule_quotes_a_hostile_type_harmlessly() -> None:
    with pytest.raises(CorpusFormatError) as caught:
        TagRule(types=(f"T{ESC}",), ignored_types=()).check("B-X", "f:1")
    assert acts(str(caught.value)) == []
