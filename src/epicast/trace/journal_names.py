"""Texts and ids by number, remembered in a file before a row uses the number.

Both are dictionaries that learn what they are asked for, so that the common case is one look-up. Peers decide what ids
and topics there are, so both have a cap: an id above it still has its number but stays without a name, a row with a
text above it is lost.
"""

from __future__ import annotations

from epicast.core.ids import NOBODY, NodeId
from epicast.trace.journal_files import AppendFile
from epicast.trace.journal_format import ID, TEXT, name_record, number_of

TEXTS_MAX = 1 << 20
IDS_MAX = 1 << 16
NAMES_BYTES_MAX = 1 << 28


class NoRoom(Exception):
    """A text cannot be remembered."""


class Codes(dict[str, int]):
    """Code 0 is the empty text, the others count the records of the file."""

    def __init__(self, file: AppendFile, texts_max: int = TEXTS_MAX) -> None:
        super().__init__({"": 0})
        self._file, self._texts_max = file, texts_max

    def __missing__(self, text: str) -> int:
        if len(self) > self._texts_max or not self._file.append(name_record(TEXT, text)):
            raise NoRoom
        code = self[text] = len(self)
        return code


class Numbers(dict[NodeId, int]):
    def __init__(self, file: AppendFile, ids_max: int = IDS_MAX) -> None:
        super().__init__({NOBODY: NOBODY})
        self._file, self._ids_max = file, ids_max

    def __missing__(self, node_id: NodeId) -> int:
        number = number_of(node_id)
        if len(self) <= self._ids_max:
            self[node_id] = number
            self._file.append(name_record(ID, str(node_id)))
        return number
