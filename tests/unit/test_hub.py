"""Downloads through the real client of the hub, from a server on 127.0.0.1 that fails on order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hub_client import DATA, FAST, ONCE, OTHER_REV, REV, TEXT, TOKEN, Client
from loopback_hub import LoopbackHub

from nerprobe.redact import scrub


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    with LoopbackHub() as server:
        many = {f"brat/{number}.txt": b"x" for number in range(50)}
        server.add_repo(DATA, "dataset", REV, {"BIO/train.txt": TEXT, "BIO/valid.txt": b"short", **many})
        yield server


@pytest.fixture
def client(hub: LoopbackHub, tmp_path: Path) -> Client:
    return Client(hub, tmp_path / "home")


def resolve_path(filename: str) -> str:
    return f"/datasets/{DATA}/resolve/{REV}/{filename}"


def test_only_the_named_files_are_asked_for_and_then_served_offline(hub: LoopbackHub, client: Client) -> None:
    sha256 = hashlib.sha256(TEXT).hexdigest()
    first, second = client.calls(client.file(sha256=sha256), client.file("BIO/valid.txt"))
    assert Path(first["value"]).read_bytes() == TEXT
    assert Path(second["value"]).read_bytes() == b"short"
    names = ("BIO/train.txt", "BIO/valid.txt")
    assert hub.log == [(method, resolve_path(name)) for name in names for method in ("HEAD", "GET")]
    hub.log.clear()
    (again,) = client.calls(client.file(sha256=sha256), HF_HUB_OFFLINE="1")
    assert again["value"] == first["value"]
    assert hub.log == []


def order_faults(hub: LoopbackHub, *, times: int | None) -> list[str]:
    """Let a file a fault fail, in the way of its name; return their names."""
    names = ["cut", "reset", "body hangs", "server hangs", "status 500", "status 429"]
    hub.add_repo(DATA, "dataset", REV, {name: name.encode() * 1000 for name in names})
    hub.cut_next("/cut", after=1000, times=times)
    hub.cut_next("/reset", after=1000, times=times, reset=True)
    hub.hang("/body%20hangs", in_body=True, times=times)
    hub.hang("/server%20hangs", times=times)
    hub.fail_next("/status%20500", status=500, times=times)
    hub.fail_next("/status%20429", status=429, times=times)
    return names


@pytest.mark.hub_fault(6)
def test_faults_that_pass_are_got_over(hub: LoopbackHub, client: Client) -> None:
    names = order_faults(hub, times=1)
    answers = client.calls(*[client.file(name) for name in names])
    for name, answer in zip(names, answers, strict=True):
        assert Path(answer["value"]).read_bytes() == name.encode() * 1000
    assert len(hub.log) > 2 * len(names)


@pytest.mark.hub_fault(6)
def test_faults_that_stay_end_clearly_with_nothing_left(hub: LoopbackHub, client: Client) -> None:
    names = order_faults(hub, times=None)
    answers = client.calls(*[client.file(name) for name in names])
    for name, answer in zip(names, answers, strict=True):
        assert answer["error"] == ("HubOfflineError" if name == "server hangs" else "HubError"), name
        assert answer["text"].startswith(f"{name} of the dataset {DATA} at revision {REV}: ")
        for way in ("HF_ENDPOINT", "HF_HUB_OFFLINE=1", "data_dir=DIR", f"DIR/<task>/{name}"):
            assert way in answer["text"]
        asked = [method for method, path in hub.log if path.endswith(name.replace(" ", "%20"))]
        assert asked.count("HEAD") == FAST["attempts"], name
        assert answer["seconds"] < 10
    assert client.left() == []


def test_wrong_bytes_once_are_fetched_again(hub: LoopbackHub, client: Client) -> None:
    hub.corrupt("train.txt", times=1)
    (answer,) = client.calls(client.file())
    assert Path(answer["value"]).read_bytes() == TEXT


def test_wrong_bytes_of_the_right_size_never_pass(hub: LoopbackHub, client: Client) -> None:
    hub.corrupt("train.txt")
    (answer,) = client.calls(client.file())
    assert answer["error"] == "HashMismatchError"
    git = hashlib.sha1(b"blob %d\0" % len(TEXT) + TEXT).hexdigest()
    assert f"expected {git}" in answer["text"]
    assert client.left() == []
    assert [method for method, _ in hub.log] == ["HEAD", "GET"] * 2


def test_a_pinned_hash_decides_over_the_etag(client: Client) -> None:
    (answer,) = client.calls(client.file(sha256="0" * 64))
    assert answer["error"] == "HashMismatchError"
    assert f"expected {'0' * 64}" in answer["text"]
    assert hashlib.sha256(TEXT).hexdigest() in answer["text"]
    assert client.left() == []


@pytest.mark.hub_fault(2)
def test_a_damaged_cache_heals_online_and_is_refused_offline(client: Client) -> None:
    client.calls(client.file())
    (blob,) = client.blobs()
    blob.write_bytes(TEXT[:-1] + b"?")
    (healed,) = client.calls(client.file())
    assert Path(healed["value"]).read_bytes() == TEXT
    client.blobs()[0].write_bytes(TEXT[:-1])
    (refused,) = client.calls(client.file(), HF_HUB_OFFLINE="1")
    assert refused["error"] == "HashMismatchError"
    assert "offline mode is on" in refused["text"]


@pytest.mark.hub_fault(9)
def test_refusals_are_told_apart(hub: LoopbackHub, client: Client) -> None:
    hub.fail_next("private.txt", status=401)
    hub.fail_next("gated.txt", status=403, headers={"X-Error-Code": "GatedRepo"})
    hub.fail_next("forbidden.txt", status=403)
    hub.fail_next("bare.txt", status=404)
    answers = client.calls(
        client.file("private.txt"),
        client.file("gated.txt"),
        client.file("forbidden.txt"),
        client.file("absent.txt"),
        client.file(revision=OTHER_REV),
        client.file(repo="org/absent"),
        client.file("bare.txt"),
        client.file(revision="main"),
        client.file(repo="no/such/name"),
        client.file("absent.txt", ways_out="ask the librarian"),
    )
    assert [answer["error"] for answer in answers] == [
        "HubAccessError",
        "HubAccessError",
        "HubAccessError",
        "HubMissingError",
        "HubMissingError",
        "HubMissingError",
        "HubMissingError",
        "UnpinnedModelError",
        "HubMissingError",
        "HubMissingError",
    ]
    assert all("HF_TOKEN" in answer["text"] for answer in answers[:3])
    assert "no such file" in answers[3]["text"]
    assert "no such revision" in answers[4]["text"]
    assert "no such repository;" in answers[5]["text"]
    assert "no such repository, revision or file" in answers[6]["text"]
    assert "no valid name" in answers[8]["text"]
    assert "ask the librarian" in answers[9]["text"]
    assert len(hub.log) == 8  # refusals are not tried again, and a bad name or revision is never asked for


@pytest.mark.hub_fault(2)
def test_the_wait_the_server_asks_for_is_kept_up_to_the_cap(hub: LoopbackHub, client: Client) -> None:
    hub.fail_next("train.txt", status=429, headers={"Retry-After": "1"})
    hub.fail_next("valid.txt", status=429, headers={"Retry-After": "3600"}, times=None)
    patient = {"attempts": 2, "base_seconds": 0.01, "cap_seconds": 5.0}
    waited, ended = client.calls(client.file(policy=patient), client.file("BIO/valid.txt"))
    assert Path(waited["value"]).read_bytes() == TEXT
    assert 1.0 <= waited["seconds"] < 4.0
    assert ended["error"] == "HubError"
    assert "429" in ended["text"]
    assert "3600 s" in ended["text"]
    assert 0.3 <= ended["seconds"] < 3.0  # one wait of 0.3 s between two tries


@pytest.mark.hub_fault(2)
def test_no_network_and_no_cache_says_what_is_missing(hub: LoopbackHub, client: Client) -> None:
    (offline,) = client.calls(client.file(), HF_HUB_OFFLINE="1")
    (nobody,) = client.calls(client.file(), HF_ENDPOINT="http://127.0.0.1:9")
    assert [offline["error"], nobody["error"]] == ["HubOfflineError"] * 2
    for answer in (offline, nobody):
        assert f"BIO/train.txt of the dataset {DATA} at revision {REV}" in answer["text"]
        assert "data_dir=DIR" in answer["text"]
    assert hub.log == []


def test_a_token_is_sent_but_never_told(hub: LoopbackHub, client: Client) -> None:
    said = {"X-Error-Message": f"token {TOKEN} and plain-secret-9 are not allowed"}
    hub.fail_next("train.txt", status=403, headers=said, method="HEAD", times=1)
    hub.fail_next("valid.txt", status=500, headers=said, times=None)
    hub.cut_next("brat/1.txt", after=0, times=1)
    env = {"HF_TOKEN": TOKEN, "HUGGING_FACE_HUB_TOKEN": "plain-secret-9"}
    calls = (client.file(), client.file("BIO/valid.txt"), client.file("brat/1.txt"))
    answers = client.calls(*calls, **env)
    assert set(hub.tokens) == {f"Bearer {TOKEN}"}
    assert "token *** and *** are not allowed" in answers[0]["text"]
    everything = json.dumps(answers) + client.stderr
    assert "Trying to resume" in client.stderr
    assert TOKEN not in everything
    assert "plain-secret-9" not in everything


def test_a_password_in_the_endpoint_is_not_told(hub: LoopbackHub, client: Client) -> None:
    hub.cut_next("train.txt", after=10, times=None)
    endpoint = hub.url.replace("://", "://reader:open-sesame@")
    (answer,) = client.calls(client.file(policy=ONCE), HF_ENDPOINT=endpoint)
    assert answer["error"] == "HubError"
    assert "***@127.0.0.1" in answer["text"]
    assert "open-sesame" not in answer["text"] + client.stderr


MODEL = "org/encoder"
MODEL_FILES = {
    "config.json": b'{"model_type": "bert"}',
    "tokenizer.json": b'{"a": 1}',
    "tokenizer_config.json": b"{}",
    "vocab.txt": b"[PAD]\n",
    "modeling_own.py": b"print('code')",
    "model.safetensors": b"weights" * 1000,
    "pytorch_model.bin": b"pickle",
    "tf_model.h5": b"tf",
    "trainer_state.json": b"{}",
    "training_args.bin": b"args",
    "README.md": b"words",
    "1_Pooling/config.json": b"{}",
    "onnx/model.onnx": b"onnx",
    "onnx/config.json": b"{}",
}
WANTED = ["config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "model.safetensors"]


@pytest.fixture
def model(hub: LoopbackHub) -> tuple[str, dict[str, Any]]:
    hub.add_repo(MODEL, "model", REV, MODEL_FILES)
    return "hub_encoder_folder", {"repo": MODEL, "revision": REV}


def test_an_encoder_comes_with_just_its_files_and_again_offline(
    hub: LoopbackHub, client: Client, model: tuple[str, dict[str, Any]]
) -> None:
    (answer,) = client.calls(model)
    folder = Path(answer["value"])
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {name: MODEL_FILES[name] for name in WANTED}
    assert hub.log[0] == ("GET", f"/api/models/{MODEL}/revision/{REV}?blobs=true")
    fetched = [path.rsplit("/", 1)[1] for method, path in hub.log[1:] if method == "GET"]
    assert fetched == WANTED
    hub.log.clear()
    (offline,) = client.calls(model, HF_HUB_OFFLINE="1")
    (nobody,) = client.calls(model, HF_ENDPOINT="http://127.0.0.1:9")
    assert offline["value"] == nobody["value"] == answer["value"]
    assert hub.log == []


def test_code_is_fetched_only_when_it_is_trusted(client: Client, model: tuple[str, dict[str, Any]]) -> None:
    arguments = {"repo": MODEL, "revision": REV}
    plain, trusting = client.calls(
        ("hub_encoder_files", arguments), ("hub_encoder_files", arguments | {"trust_remote_code": True})
    )
    assert plain["value"] == WANTED
    assert set(trusting["value"]) - set(plain["value"]) == {"modeling_own.py"}


def test_wrong_weights_are_refused_and_nothing_of_them_stays(
    hub: LoopbackHub, client: Client, model: tuple[str, dict[str, Any]]
) -> None:
    hub.corrupt("model.safetensors")
    (answer,) = client.calls(model)
    assert answer["error"] == "HashMismatchError"
    assert hashlib.sha256(MODEL_FILES["model.safetensors"]).hexdigest() in answer["text"]
    assert "model.safetensors" not in client.left()


def test_offline_without_all_parts_says_which(
    hub: LoopbackHub, client: Client, model: tuple[str, dict[str, Any]]
) -> None:
    hub.cut_next("model.safetensors", times=None)
    (cut,) = client.calls((model[0], model[1] | {"policy": ONCE}))
    assert cut["error"] == "HubError"
    (offline,) = client.calls(model, HF_HUB_OFFLINE="1")
    assert offline["error"] == "HubOfflineError"
    assert "weights (model.safetensors or pytorch_model.bin)" in offline["text"]
    assert f"of the model {MODEL} at revision {REV}" in offline["text"]
    assert "config.json" not in offline["text"]


def test_damaged_weights_in_the_cache_are_refused_offline(client: Client, model: tuple[str, dict[str, Any]]) -> None:
    client.calls(model)
    blob = max(client.blobs(), key=lambda path: path.stat().st_size)
    blob.write_bytes(b"Weights" * 1000)
    (answer,) = client.calls(model, HF_HUB_OFFLINE="1")
    assert answer["error"] == "HashMismatchError"


def test_a_repository_without_weights_is_no_encoder(hub: LoopbackHub, client: Client) -> None:
    hub.add_repo("org/tf", "model", REV, {"config.json": b"{}", "tf_model.h5": b"tf"})
    (answer,) = client.calls(("hub_encoder_folder", {"repo": "org/tf", "revision": REV}))
    assert answer["error"] == "EncoderFolderError"
    assert "tf_model.h5" in answer["text"]
    assert len(hub.log) == 1


def test_a_branch_is_resolved_to_its_commit(hub: LoopbackHub, client: Client) -> None:
    hub.add_repo(DATA, "dataset", OTHER_REV, {})
    hub.add_repo(MODEL, "model", REV, {})
    hub.hang("org/silent")
    answers = client.calls(
        ("resolve_revision", {"repo": MODEL}),
        ("resolve_revision", {"repo": DATA, "repo_type": "dataset"}),
        ("resolve_revision", {"repo": "org/absent"}),
        ("resolve_revision", {"repo": "org/silent", "policy": ONCE}),
    )
    assert [answer.get("value") for answer in answers] == [REV, OTHER_REV, None, None]
    assert [answer.get("error") for answer in answers[2:]] == ["HubMissingError", "HubOfflineError"]
    assert answers[3]["seconds"] < 10
    assert hub.log[0] == ("GET", f"/api/models/{MODEL}/revision/main?expand=sha")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"Bearer {TOKEN}!", "Bearer ***!"),
        (f"x_{TOKEN}", "x_***"),
        ("authorization: Basic1234", "authorization: ***"),
        ("https://me:pass@mirror.example/x", "https://***@mirror.example/x"),
        ("GET /f?a=1&X-Amz-Signature=abc123&b=2", "GET /f?a=1&X-Amz-Signature=***&b=2"),
        ("hf_hub_download of train_spacy.txt", "hf_hub_download of train_spacy.txt"),
        ("my-own-secret and stored-one", "*** and ***"),
    ],
)
def test_scrub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, clean: str) -> None:
    (tmp_path / "token").write_text("stored-one\n")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_TOKEN_PATH", raising=False)
    monkeypatch.setenv("HF_TOKEN", "my-own-secret")
    assert scrub(text) == clean
