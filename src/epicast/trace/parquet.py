"""A Parquet table on its way to disk, and how it is encoded."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from epicast.trace.batch import Column
from epicast.trace.files import sync, temporary
from epicast.trace.group import GROUP_ROWS

_WIDE = 1 << 31
_STATISTICS = ("row", "time_us", "source", "seq")  # what readers look up; on every column they cost half the encoding


class ParquetFile:
    """A table on its way to disk: `write` and `close` under the temporary name, then `publish` or `discard`."""

    def __init__(self, path: Path, schema: pa.Schema, *, wide_ids: bool = False) -> None:
        self.path = path
        self.rows = 0
        self._whole = True  # no write has failed
        self._published = False
        self._sink = pa.OSFile(str(temporary(path)), "wb")
        try:
            self._writer = pq.ParquetWriter(self._sink, schema, **parquet_options(schema, wide_ids=wide_ids))
        except BaseException:
            self._remove()
            raise

    def write(self, table: pa.Table | pa.RecordBatch) -> None:
        self._whole = False
        self._writer.write(table, GROUP_ROWS)
        self._whole = True
        self.rows += table.num_rows

    def close(self) -> None:
        if not self._whole:
            raise OSError(f"rows of {self.path.name} were lost")
        self._writer.close()
        self._sink.close()
        sync(temporary(self.path))

    def discard(self) -> None:
        """Remove the file, whatever state it is in."""
        with suppress(OSError, ValueError, pa.ArrowException):  # it may be the disk that failed
            self._writer.close()
        self._remove()

    def publish(self) -> None:
        if not self._published:
            os.replace(temporary(self.path), self.path)
            self._published = True

    def _remove(self) -> None:
        with suppress(OSError):
            self._sink.close()
        temporary(self.path).unlink(missing_ok=True)


def parquet_options(schema: pa.Schema, *, wide_ids: bool) -> dict[str, Any]:
    """Encodings chosen by measurement among those that Spark's vectorised reader knows.

    Delta packing is as fast as a dictionary on small ids and stays so for a million processes, where a dictionary
    overflows. Ids that are 64-bit hashes have no small differences: for them a dictionary saves two thirds of the file.
    """
    ids = ("node", "peer", "source") if wide_ids else ()
    packed = [field.name for field in schema if pa.types.is_integer(field.type) and field.name not in ids]
    return {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": [name for name in schema.names if name not in packed],
        "column_encoding": dict.fromkeys(packed, "DELTA_BINARY_PACKED"),
        "write_statistics": [name for name in schema.names if name in _STATISTICS],
    }


def are_wide(*ids: Column) -> bool:
    """True if ids look like hashes rather than small numbers."""
    return any(len(column) and max(int(column.max()), -int(column.min())) >= _WIDE for column in ids)
