"""The files of a journal: what one live process writes down while it runs.

    journal.json    who writes it; it comes last, so a folder that has it has the others
    rows.bin        slots of 64 bytes: the first is the head, each of the others a row
    names.bin       the texts and ids that rows refer to, in the order of first use
    pictures.bin    the process's own edges of its overlays, at chosen moments
    end.json        its counters, after an end in good order

The last byte of a row is its mark: one more than the kind, 0 in a slot that is empty. It is written last, so a process
that is killed in the middle of a row leaves an empty slot. All numbers are little-endian.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from struct import Struct
from typing import Any

import msgspec

from epicast.core.ids import NodeId

FORMAT = "epicast-journal"
FORMAT_VERSION = 1
WHO_FILE, ROWS_FILE, NAMES_FILE = "journal.json", "rows.bin", "names.bin"
PICTURES_FILE, END_FILE = "pictures.bin", "end.json"

SLOT_BYTES = 64
SEGMENT_BYTES = 1 << 20
"""By so much the rows grow: 16,384 rows. A multiple of the page size of every common machine."""

ROW = Struct("<qqqqiiiiii7xB")  # time, peer, source, seq, hops, bytes, layer, detail, topic, flags, mark
ROW_FIELDS = ("time_us", "peer", "source", "seq", "hops", "bytes", "layer", "detail", "topic", "flags")
assert ROW.size == SLOT_BYTES

MAGIC = b"epicastJ"
HEAD = Struct("<8sIIQqQqB")
"""Magic, version, bytes of a slot; rows lost and since when; rows and one more, once the file is closed; when and how
the process ended."""
HEAD_LOST, HEAD_ROWS, HEAD_END, HEAD_HOW = 16, 32, 40, 48
LOST, ROWS, END = Struct("<Qq"), Struct("<Q"), Struct("<q")
HOWS = ("", "leave", "crash")
assert HEAD.size <= SLOT_BYTES

NAME = Struct("<BI")  # sort, bytes of the text that follows
TEXT, ID = 1, 2
PICTURE = Struct("<qIII")  # time, codes of overlay and flow, number of edges
EDGE = Struct("<qq")  # peer, value


class Who(msgspec.Struct, frozen=True, kw_only=True):
    """The content of journal.json."""

    format: str
    format_version: int
    node_id: str
    number: int  # stands for the process in a trace
    started_us: int | None
    level: str
    stack: str
    promises: list[str]
    cluster: str
    area: str
    scenario: dict[str, Any] | None
    epicast: str  # versions
    python: str
    platform: str


class Record(msgspec.Struct, frozen=True):
    """One of names.bin."""

    sort: int
    text: str


def number_of(node_id: NodeId) -> int:
    """What stands for a process in a trace: 63 bits, the same wherever they are computed."""
    text = node_id if isinstance(node_id, str) else str(node_id)
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big") >> 1


def name_record(sort: int, text: str) -> bytes:
    encoded = text.encode("utf-8", "replace")
    return NAME.pack(sort, len(encoded)) + encoded


def name_records(content: bytes) -> Iterator[Record]:
    """All that are whole: the last one may have been cut off by the end of the process."""
    at = 0
    while at + NAME.size <= len(content):
        sort, length = NAME.unpack_from(content, at)
        at += NAME.size + length
        if at > len(content):
            return
        yield Record(sort, content[at - length : at].decode("utf-8", "replace"))
