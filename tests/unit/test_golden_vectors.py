"""Word vectors against a plain reference, and golden numbers that guard ``VECTORS_VERSION``.

The reference goes one text at a time, without batches, in loops: sub-words by the tokenizer's offsets, windows
that overlap by half, each word read where it has most context. The encoder is the untrained control, made from
numpy's generator, so nothing is downloaded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import nerprobe.fill
import nerprobe.vector_files
from nerprobe.embed import write_embeddings
from nerprobe.errors import ArtefactError, EncoderFolderError, NerprobeError, NonFiniteError
from nerprobe.files import write_json
from nerprobe.frozen import FrozenEncoder
from nerprobe.items import Item, corpus_table, join_words
from nerprobe.pooling import batches, prepare, word_vectors
from nerprobe.random_bert import build_random_bert
from nerprobe.versions import VECTORS_VERSION

LIMIT = 24
SPEC = {"seed": 20261006, "layers": 2, "width": 32, "heads": 2, "intermediate": 64, "max_tokens": LIMIT}
CLS, SEP = 2, 3
SOURCE = {"kind": "random", **SPEC}

NASTY: dict[str, tuple[list[str], str]] = {
    # Words, and for each whether it touches the word before it (x) or not (.).
    "plain": (["La", "médica", "vino"], "..."),
    "touching": (["¡", "Hola", ",", "Berlin", "."], ".xx.x"),
    "emoji": (["👩", "\u200d", "⚕", "\ufe0f", "ok"], ".xxx."),
    "selector alone": (["\ufe0f", "\ufe0f"], ".."),
    "combining": (["me\u0301dica", "\u0304", "e\u0301"], "..x"),
    "no width": (["\u200b", "\ufeff", "\u00ad", "\u2060"], ".xxx"),
    "breaks": (["a\u0085b", "c\u2028d", "\u00a0"], "..."),
    "scripts": (["日本", "طبيب", "врач"], "..."),
    "one letter": (["a"], "."),
    "link": (["#Médicos", "@policia", "https://t.co/KFPi9rT5OC"], "..."),
    "long text": (
        ["uno", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve", "diez", "once"],
        "." * 11,
    ),
    "word longer than a window": (["y", "x" * 60, "z"], "..."),
}


def nasty_items() -> list[Item]:
    items = []
    for number, (words, marks) in enumerate(NASTY.values()):
        text, starts, ends = join_words(words, [mark == "x" for mark in marks])
        items.append(
            Item(
                item_id=f"n{number}",
                pool="test" if number % 2 else "train",
                text=text,
                words=tuple(words),
                starts=starts,
                ends=ends,
                tags=("O",) * len(words),
            )
        )
    return items


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Keep torch to one thread: for texts this small more of them only wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("golden") / "bert"
    build_random_bert(path, **SPEC)
    return path


@pytest.fixture(scope="module")
def encoder(folder: Path) -> FrozenEncoder:
    return FrozenEncoder(folder, device="cpu")


def vectors_of(
    items: Sequence[Item],
    encoder: FrozenEncoder,
    *,
    prefix: str = "",
    pooling: str = "mean",
    budget: int = 4096,
) -> dict[str, np.ndarray]:
    """Return the vectors of each item by id."""
    block = prepare(items, encoder, prefix=prefix, pooling=pooling)
    found = word_vectors(block, encoder, pooling=pooling, budget=budget)
    stops = np.cumsum([len(item.words) for item in items])
    return {item.item_id: part for item, part in zip(items, np.split(found, stops[:-1]), strict=True)}


# --- the reference -------------------------------------------------------------------------------


class Reference:
    """The plain way: transformers' own classes, one window at a time."""

    def __init__(self, folder: Path, *, hidden: int | None = None, max_length: int = LIMIT) -> None:
        from transformers import AutoModel, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder, add_pooling_layer=False).eval()
        self.hidden, self.max_length = hidden, max_length

    def states(self, ids: list[int]) -> np.ndarray:
        import torch

        with torch.no_grad():
            output = self.model(input_ids=torch.tensor([ids]), output_hidden_states=True)
        states = output.last_hidden_state if self.hidden is None else output.hidden_states[self.hidden]
        return states[0].numpy()

    def windows(self, length: int, capacity: int) -> list[tuple[int, int]]:
        """Return windows that step on by half, the last one moved back to the end."""
        if length <= capacity:
            return [(0, length)]
        found, begin = [], 0
        while begin + capacity < length:
            found.append((begin, begin + capacity))
            begin += max(1, capacity // 2)
        return [*found, (length - capacity, length)]

    def best(self, first: int, last: int, windows: list[tuple[int, int]], length: int) -> int | None:
        """Return the first window that holds first..last with most context on its poorer side."""
        scored = []
        for index, (begin, end) in enumerate(windows):
            if begin <= first and last < end:
                left = length if begin == 0 else first - begin
                right = length if end == length else end - 1 - last
                scored.append((-min(left, right), index))
        return min(scored)[1] if scored else None

    def pieces(self, item: Item, prefix: str = "") -> list[list[np.ndarray]]:
        """Return the states of each word's sub-words."""
        plain = self.tokenizer(prefix + item.text, add_special_tokens=False, return_offsets_mapping=True)
        body = [
            (token, start - len(prefix), end - len(prefix))
            for token, (start, end) in zip(plain["input_ids"], plain["offset_mapping"], strict=True)
        ]
        lead = [token for token, _, end in body if end <= 0] if prefix else []
        body = body[len(lead) :]
        length, capacity = len(body), self.max_length - 2 - len(lead)
        windows = self.windows(length, capacity)
        states = [
            self.states([CLS, *lead, *(token for token, _, _ in body[begin:end]), SEP])[1 + len(lead) : -1]
            for begin, end in windows
        ]
        found = []
        for start, end in zip(item.starts, item.ends, strict=True):
            mine = [i for i, (_, a, b) in enumerate(body) if b > a and max(a, start) < min(b, end)]
            whole = self.best(mine[0], mine[-1], windows, length) if mine else None
            read = []
            for i in mine:
                window = whole if whole is not None else self.best(i, i, windows, length)
                assert window is not None
                read.append(states[window][i - windows[window][0]])
            found.append(read)
        return found

    def vectors(self, item: Item, *, prefix: str = "", pooling: str = "mean") -> np.ndarray:
        rows = []
        for read in self.pieces(item, prefix):
            if not read:
                rows.append(np.zeros(SPEC["width"]))
            elif pooling == "mean":
                rows.append(np.mean(np.array(read, dtype=np.float64), axis=0))
            elif pooling == "max":
                rows.append(np.max(read, axis=0))
            else:
                rows.append(read[0 if pooling == "first" else -1])
        return np.array(rows)


@pytest.fixture(scope="module")
def reference(folder: Path) -> Reference:
    return Reference(folder)


@pytest.mark.parametrize("item", nasty_items(), ids=list(NASTY))
def test_vectors_are_those_of_the_reference(item: Item, encoder: FrozenEncoder, reference: Reference) -> None:
    found = vectors_of([item], encoder)[item.item_id]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, reference.vectors(item), rtol=0, atol=1e-5)


@pytest.mark.parametrize("pooling", ["first", "last", "max"])
def test_other_poolings_are_those_of_the_reference(pooling: str, encoder: FrozenEncoder, reference: Reference) -> None:
    found = vectors_of(nasty_items(), encoder, pooling=pooling)
    for item in nasty_items():
        np.testing.assert_allclose(found[item.item_id], reference.vectors(item, pooling=pooling), rtol=0, atol=1e-5)


def test_a_prefix_is_seen_by_the_encoder_and_pooled_into_no_word(encoder: FrozenEncoder, reference: Reference) -> None:
    found, without = vectors_of(nasty_items(), encoder, prefix="q: "), vectors_of(nasty_items(), encoder)
    for item in nasty_items():
        expected = reference.vectors(item, prefix="q: ")
        np.testing.assert_allclose(found[item.item_id], expected, rtol=0, atol=1e-5)
        assert np.abs(found[item.item_id] - without[item.item_id]).max() > 1e-3


def test_a_lower_limit_makes_smaller_windows(folder: Path) -> None:
    found = vectors_of(nasty_items(), FrozenEncoder(folder, device="cpu", max_length=9))
    reference = Reference(folder, max_length=9)
    for item in nasty_items():
        np.testing.assert_allclose(found[item.item_id], reference.vectors(item), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("layer", "hidden"), [(0, 0), (1, 1), (2, None), (-1, None)])
def test_a_layer_by_number_is_that_hidden_state(folder: Path, layer: int, hidden: int | None) -> None:
    item = nasty_items()[0]
    found = vectors_of([item], FrozenEncoder(folder, device="cpu", layer=layer))[item.item_id]
    np.testing.assert_allclose(found, Reference(folder, hidden=hidden).vectors(item), rtol=0, atol=1e-5)


def test_a_range_of_layers_is_their_mean(folder: Path) -> None:
    item = nasty_items()[0]
    found = vectors_of([item], FrozenEncoder(folder, device="cpu", layer=[1, 2]))[item.item_id]
    expected = (Reference(folder, hidden=1).vectors(item) + Reference(folder, hidden=2).vectors(item)) / 2
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("layer", [3, -4, [0, 99], [2, 1]], ids=str)
def test_a_layer_that_the_encoder_does_not_have_is_refused_in_one_line(folder: Path, layer: Any) -> None:
    with pytest.raises(NerprobeError):
        vectors_of(nasty_items()[:1], FrozenEncoder(folder, device="cpu", layer=layer))


def test_a_limit_without_room_for_a_word_is_refused(folder: Path) -> None:
    with pytest.raises(EncoderFolderError, match="no room for any word"):
        vectors_of(nasty_items()[:1], FrozenEncoder(folder, device="cpu", max_length=2))


# --- rows ----------------------------------------------------------------------------------------


def test_no_word_is_dropped_and_sub_words_are_counted(encoder: FrozenEncoder, reference: Reference) -> None:
    items = nasty_items()
    block = prepare(items, encoder, prefix="", pooling="mean")
    expected = [len(read) for item in items for read in reference.pieces(item)]
    assert block.n_subwords.tolist() == expected
    assert len(expected) == sum(len(item.words) for item in items)


def test_a_word_without_sub_words_has_a_zero_vector(encoder: FrozenEncoder) -> None:
    item = nasty_items()[0]
    # A span of no sub-word: the tokenizer's offsets of this text end before it.
    odd = Item(**{**item.__dict__, "starts": (0, 3, 90), "ends": (2, 9, 95)})
    block = prepare([odd], encoder, prefix="", pooling="mean")
    found = word_vectors(block, encoder, pooling="mean", budget=64)
    assert block.n_subwords.tolist()[2] == 0
    assert not found[2].any()
    assert found[:2].any(axis=1).all()


# --- batches -------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [1, 30, 64, 100_000])
@pytest.mark.parametrize("order", ["as is", "reversed"])
def test_vectors_do_not_depend_on_batches_or_order(encoder: FrozenEncoder, budget: int, order: str) -> None:
    items = nasty_items() if order == "as is" else nasty_items()[::-1]
    found = vectors_of(items, encoder, budget=budget)
    for item in items:
        alone = vectors_of([item], encoder, budget=1)[item.item_id]
        np.testing.assert_allclose(found[item.item_id], alone, rtol=0, atol=1e-5)


@pytest.mark.parametrize("budget", [1, 30, 64, 100_000])
def test_a_padded_batch_keeps_to_its_budget(encoder: FrozenEncoder, budget: int) -> None:
    block = prepare(nasty_items(), encoder, prefix="", pooling="mean")
    groups = batches(block.sequences, budget)
    assert sum(map(len, groups)) == len(block.sequences)
    for group in groups:
        assert len(group) == 1 or max(len(window.ids) for window in group) * len(group) <= budget


def test_too_little_memory_halves_the_batch_and_gives_the_same(
    encoder: FrozenEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    expected = vectors_of(nasty_items(), encoder)
    hidden = encoder.hidden

    def poor(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if len(ids) > 2:
            raise torch.OutOfMemoryError("no memory")
        return hidden(ids, mask)

    monkeypatch.setattr(encoder, "hidden", poor)
    found = vectors_of(nasty_items(), encoder)
    for item in nasty_items():
        np.testing.assert_allclose(found[item.item_id], expected[item.item_id], rtol=0, atol=1e-5)


def test_a_state_that_is_no_number_is_an_error_and_never_a_zero(
    encoder: FrozenEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    hidden = encoder.hidden
    monkeypatch.setattr(encoder, "hidden", lambda ids, mask: torch.full_like(hidden(ids, mask), float("nan")))
    with pytest.raises(NonFiniteError, match="NaN or infinite"):
        vectors_of(nasty_items(), encoder)


# --- golden numbers ------------------------------------------------------------------------------

GOLDEN_VERSION = 1
GOLDEN: dict[str, list[float]] = {
    "n0": [-0.375097, 0.368006, 0.465091, -0.996578],
    "n1": [-0.631288, 0.669671, 0.319511, -2.276733],
    "n2": [0.483556, 0.270980, 0.264719, -0.693677],
    "n3": [-0.406121, 0.565710, -0.392971, -0.652131],
    "n4": [-0.268456, 0.264815, 0.066179, -0.656480],
    "n5": [-0.358433, 0.121523, -0.741154, -0.992876],
    "n6": [-0.059687, 0.779156, -0.179547, -1.385944],
    "n7": [0.400988, 0.141406, -0.110003, -0.785446],
    "n8": [-0.842465, 0.965886, -1.241322, -0.671415],
    "n9": [0.031519, 0.462741, -0.057975, -0.781221],
    "n10": [-0.395703, -0.023641, 0.660149, 0.049132],
    "n11": [0.043595, 0.643293, 0.535135, -0.924218],
}


def summary(found: dict[str, np.ndarray]) -> dict[str, list[float]]:
    """Return four numbers an item: two of the first word, two of the last one."""
    return {name: [*map(float, rows[0, :2]), *map(float, rows[-1, -2:])] for name, rows in found.items()}


def test_golden_vectors_change_only_together_with_their_version(encoder: FrozenEncoder) -> None:
    """If this fails, vectors changed: bump ``VECTORS_VERSION`` and put the new numbers here."""
    found = summary(vectors_of(nasty_items(), encoder))
    assert set(found) == set(GOLDEN)
    for name, numbers in GOLDEN.items():
        assert found[name] == pytest.approx(numbers, abs=1e-4), name
    assert VECTORS_VERSION == GOLDEN_VERSION


# --- the stage -----------------------------------------------------------------------------------

SETTINGS = {
    "dtype": "float32",
    "storage": "float32",
    "layer": "last",
    "pooling": "mean",
    "prefix": "",
    "max_length": None,
    "window": "half-overlap",
}


class Stage:
    """The files of one embed job."""

    def __init__(self, root: Path, folder: Path) -> None:
        from nerprobe.files import sha256_file

        self.root, self.items = root, nasty_items()
        pq.write_table(corpus_table(self.items, []), root / "corpus.parquet")
        self.subset([item.item_id for item in self.items])
        files = [
            {"name": path.name, "size": path.stat().st_size, "sha256": sha256_file(path)}
            for path in sorted(folder.iterdir())
        ]
        write_json(root / "encoder.json", {"schema": 1, "source": SOURCE, "folder": str(folder), "files": files})

    def subset(self, ids: list[str]) -> None:
        pools = {item.item_id: item.pool for item in self.items}
        chosen = {pool: [name for name in ids if pools[name] == pool] for pool in ("test", "train")}
        write_json(self.root / "subset.json", {"id": "s", "seed": 1, "counts": {}, "items": chosen})

    def run(self, store: str = "store", out: str = "out", *, budget: int = 64, **settings: Any) -> bytes:
        spec = {"model": "m", "key": "k" * 12, "source": SOURCE, "settings": SETTINGS | settings}
        write_embeddings(
            spec,
            corpus=self.root / "corpus.parquet",
            subset=self.root / "subset.json",
            encoder=self.root / "encoder.json",
            store=self.root / store,
            device="cpu",
            budget=budget,
            output=self.root / f"{out}.parquet",
            manifest=self.root / f"{out}.json",
        )
        return (self.root / f"{out}.parquet").read_bytes()

    def manifest(self, out: str = "out") -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.root / f"{out}.json").read_text())
        return found

    def blocks(self, store: str = "store") -> list[Path]:
        return sorted((self.root / store).glob("*.safetensors"))


@pytest.fixture
def job(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(nerprobe.fill, "BLOCK_ITEMS", 4)
    monkeypatch.setattr(nerprobe.vector_files, "GROUP_WORDS", 10)
    return Stage(tmp_path, folder)


def test_the_file_has_a_row_a_word_in_the_order_of_the_corpus(job: Stage, reference: Reference) -> None:
    job.run()
    table = pq.read_table(job.root / "out.parquet")
    kinds = {field.name: field.type for field in table.schema}
    assert list(kinds) == ["item_id", "word", "vector", "n_subwords"]
    assert [str(kinds[name]) for name in ("item_id", "word", "n_subwords")] == ["string", "int32", "int32"]
    assert (kinds["vector"].list_size, str(kinds["vector"].value_type)) == (32, "float")
    ordered = job.items
    assert table["item_id"].to_pylist() == [item.item_id for item in ordered for _ in item.words]
    assert table["word"].to_pylist() == [index for item in ordered for index in range(len(item.words))]
    found = np.array(table["vector"].to_pylist())
    np.testing.assert_allclose(found, np.concatenate([reference.vectors(i) for i in ordered]), rtol=0, atol=1e-5)
    assert pq.ParquetFile(job.root / "out.parquet").num_row_groups > 1


def test_the_manifest_tells_what_was_done(job: Stage) -> None:
    import hashlib

    data = job.run()
    manifest = job.manifest()
    words = sum(len(item.words) for item in job.items)
    assert manifest["sha256"] == hashlib.sha256(data).hexdigest()
    assert (manifest["rows"], manifest["bytes"]) == (words, len(data))
    assert manifest["health"]["words"] == words
    assert manifest["health"]["items_embedded"] == len(job.items)
    # One sub-word a byte, and 22 of them beside [CLS] and [SEP].
    assert manifest["health"]["items_windowed"] == sum(len(item.text.encode()) > LIMIT - 2 for item in job.items) == 4
    assert manifest["encoder"]["width"] == 32
    assert manifest["seconds"] > 0
    assert manifest["peak_mib"] > 0
    assert manifest["vectors_version"] == VECTORS_VERSION


def test_embedding_twice_gives_identical_bytes(job: Stage) -> None:
    assert job.run("one", "a") == job.run("two", "b")


def test_a_second_run_computes_nothing_and_gives_identical_bytes(job: Stage) -> None:
    first = job.run()
    assert len(job.blocks()) == 3
    assert job.run() == first
    assert job.manifest()["health"]["items_embedded"] == 0


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_run_that_lost_one_block_gives_identical_bytes(job: Stage, lost: int) -> None:
    first = job.run()
    job.blocks()[lost].unlink()
    assert job.run() == first
    assert job.manifest()["health"]["items_embedded"] == 4


def test_a_damaged_block_is_computed_again_to_identical_bytes(job: Stage) -> None:
    first = job.run()
    block = job.blocks()[1]
    block.write_bytes(block.read_bytes()[:-3])
    assert job.run() == first


def test_a_growing_subset_computes_only_what_is_new(job: Stage) -> None:
    job.subset([item.item_id for item in job.items[:5]])
    job.run()
    job.subset([item.item_id for item in job.items])
    job.run()
    assert job.manifest()["health"]["items_embedded"] == len(job.items) - 5
    grown = np.array(pq.read_table(job.root / "out.parquet")["vector"].to_pylist())
    job.run("fresh", "fresh")
    fresh = np.array(pq.read_table(job.root / "fresh.parquet")["vector"].to_pylist())
    np.testing.assert_allclose(grown, fresh, rtol=0, atol=1e-5)


def test_health_does_not_depend_on_what_the_store_already_held(job: Stage) -> None:
    job.run()
    first = job.manifest()["health"]
    job.run()
    second = job.manifest()["health"]
    changing = {"items_embedded", "padding"}
    assert {k: v for k, v in first.items() if k not in changing} == {
        k: v for k, v in second.items() if k not in changing
    }


def test_half_precision_is_stored_where_asked_for(job: Stage) -> None:
    job.run("full", "full")
    job.run("half", "half", storage="float16")
    full, half = (pq.read_table(job.root / f"{name}.parquet")["vector"] for name in ("full", "half"))
    assert "halffloat" in str(half.type)
    np.testing.assert_allclose(np.array(half.to_pylist(), float), np.array(full.to_pylist()), rtol=1e-3, atol=1e-3)


def test_an_encoder_file_that_changed_is_refused_and_nothing_is_written(job: Stage, tmp_path: Path) -> None:
    record = json.loads((job.root / "encoder.json").read_text())
    record["files"][0]["sha256"] = "0" * 64
    write_json(job.root / "encoder.json", record)
    with pytest.raises(ArtefactError, match="a file of this encoder is gone or changed"):
        job.run()
    assert not (job.root / "out.parquet").exists()


def test_a_record_of_another_encoder_is_refused(job: Stage) -> None:
    record = json.loads((job.root / "encoder.json").read_text())
    write_json(job.root / "encoder.json", record | {"source": {**SOURCE, "seed": 1}})
    with pytest.raises(ArtefactError, match="another encoder or revision"):
        job.run()


def test_an_unfinished_job_leaves_no_file_under_its_name(job: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **settings: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(OSError, match="no space"):
        job.run()
    assert not list(job.root.glob("out.*"))
    assert not list(job.root.glob(".out*"))
