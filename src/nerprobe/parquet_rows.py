"""Rows of a Parquet file of a corpus, as long as the file is what it says, and no larger than it can be."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from nerprobe.errors import CorpusFormatError

_MOST_VALUES_A_BYTE = 64
"""Values of one column a byte of the file; a word of a text takes about one byte."""
_MOST_UNPACKED = 1000
"""Times that a file may grow in memory; texts grow about 20 times."""
_ROWS = 256
"""Rows of a batch: what is in memory at once, before its size can be told."""


def _size(file: Path | BinaryIO) -> int:
    if isinstance(file, Path):
        return file.stat().st_size
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size


def parquet_rows(file: Path | BinaryIO, where: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Give the numbered rows of a Parquet file.

    Raises:
        CorpusFormatError: If it is none, lies about its rows, or unpacks to far more than it holds.
    """
    import pyarrow
    import pyarrow.parquet as pq

    number = 0
    try:
        size = _size(file)
        table = pq.ParquetFile(file)
        groups = [table.metadata.row_group(index) for index in range(table.num_row_groups)]
        values = sum(max(group.column(index).num_values for index in range(group.num_columns)) for group in groups)
        if values > _MOST_VALUES_A_BYTE * size:
            raise pyarrow.ArrowInvalid(f"{size:,} bytes announce {values:,} values")
        room = _MOST_UNPACKED * size
        for group in range(table.num_row_groups):  # all groups at once would hold the whole file
            for batch in table.iter_batches(batch_size=_ROWS, row_groups=[group]):
                room -= batch.nbytes
                if room < 0:
                    raise pyarrow.ArrowInvalid(f"unpacks to more than {_MOST_UNPACKED} times its {size:,} bytes")
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
        if number != table.metadata.num_rows:
            raise pyarrow.ArrowInvalid(f"announces {table.metadata.num_rows:,} rows and holds {number:,}")
    except (pyarrow.ArrowException, OSError, ValueError) as error:  # ValueError: a text that is no UTF-8
        raise CorpusFormatError("this is no Parquet file", where=where, got=str(error)[:200]) from error
