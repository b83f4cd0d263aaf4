"""What a live process writes down is there whatever becomes of it, and never in its way."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from epicast.core.errors import EpicastError
from epicast.core.ids import NOBODY
from epicast.core.records import Kind, Level
from epicast.live import ids
from epicast.trace import journal as module
from epicast.trace.journal import Journal
from epicast.trace.journal_format import NAMES_FILE, PICTURES_FILE, ROWS_FILE, SEGMENT_BYTES, SLOT_BYTES, number_of
from epicast.trace.journal_names import Codes, Numbers
from epicast.trace.journal_read import StoredJournal, open_journal
from tests.live.journals import START_US, start

PROJECT = Path(__file__).parents[2]
PEER, SOURCE = "127.0.0.1:7002/b", "127.0.0.1:7003/c"


def rows_of(journal: StoredJournal) -> list[dict[str, Any]]:
    """As the writer was given them, but for ids."""
    found = []
    for chunk in journal.chunks():
        for row in chunk:
            values = {name: int(row[name]) for name in chunk.dtype.names if name != "mark"}
            texts = {name: journal.texts[values[name]] for name in ("layer", "detail", "topic")}
            found.append({"kind": Kind(int(row["mark"]) - 1), **values, **texts})
    return found


def send(journal: Journal, seq: int, topic: str = "prices/eur") -> None:
    journal.write(START_US + seq, Kind.SEND, PEER, SOURCE, seq, 2, 110, "dissemination", "Data", topic, 1)


# Rows


def test_rows_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    journal = start(tmp_path / "a")
    journal.write(START_US, Kind.JOIN)
    send(journal, 7)
    journal.write(START_US + 9, Kind.NONSENSE, PEER, detail="no such flow: ü")
    journal.end("leave", START_US + 20, {"sent": 1})
    stored = open_journal(tmp_path / "a")
    nothing = {"peer": NOBODY, "source": NOBODY, "seq": -1, "hops": 0, "bytes": 0, "flags": 0}
    nothing |= {"layer": "", "detail": "", "topic": ""}
    sent = {"peer": number_of(PEER), "source": number_of(SOURCE), "seq": 7, "hops": 2, "bytes": 110, "flags": 1}
    sent |= {"layer": "dissemination", "detail": "Data", "topic": "prices/eur"}
    odd = {"peer": number_of(PEER), "detail": "no such flow: ü"}
    assert rows_of(stored) == [
        {"kind": Kind.JOIN, "time_us": START_US, **nothing},
        {"kind": Kind.SEND, "time_us": START_US + 7, **sent},
        {"kind": Kind.NONSENSE, "time_us": START_US + 9, **nothing, **odd},
    ]
    assert (stored.ended_us, stored.how, stored.shortfall) == (START_US + 20, "leave", "")
    assert stored.counters() == {"sent": 1}
    assert stored.names == {number_of(name): name for name in ("127.0.0.1:7001/a", PEER, SOURCE)}


def test_a_process_has_one_number_everywhere() -> None:
    assert number_of(PEER) == ids.number(PEER)
    assert 0 <= number_of(PEER) < 1 << 63


def test_a_level_keeps_its_kinds_only(tmp_path: Path) -> None:
    for level, kept in ((Level.OFF, []), (Level.DELIVERIES, [Kind.DELIVER]), (Level.FULL, [Kind.SEND, Kind.DELIVER])):
        journal = start(tmp_path / level.name, level=level)
        send(journal, 1)
        journal.write(START_US + 2, Kind.DELIVER, PEER, SOURCE, 1)
        journal.close()
        assert [row["kind"] for row in rows_of(open_journal(tmp_path / level.name))] == kept


def test_a_journal_grows_by_segments_and_gives_back_what_it_did_not_use(tmp_path: Path) -> None:
    journal = start(tmp_path / "a")
    for seq in range(40_000):
        send(journal, seq)
    assert journal.rows == 40_000
    assert (tmp_path / "a" / ROWS_FILE).stat().st_size == 3 * SEGMENT_BYTES
    journal.end("leave", START_US + 40_000)
    assert (tmp_path / "a" / ROWS_FILE).stat().st_size == 40_001 * SLOT_BYTES
    assert [int(seq) for chunk in open_journal(tmp_path / "a").chunks() for seq in chunk["seq"]] == list(range(40_000))


def test_time_that_goes_back_stands_still(tmp_path: Path) -> None:
    journal = start(tmp_path / "a")
    for offset_us in (5, 3, 9):
        journal.write(START_US + offset_us, Kind.PARENT, PEER, SOURCE, 0)
    journal.end("leave", START_US)
    stored = open_journal(tmp_path / "a")
    assert [row["time_us"] - START_US for row in rows_of(stored)] == [5, 5, 9]
    assert stored.ended_us == START_US + 9


def test_numbers_of_a_peer_that_no_row_can_hold_are_cut_to_what_it_can(tmp_path: Path) -> None:
    journal = start(tmp_path / "a")
    journal.write(START_US, Kind.RECEIVE, PEER, SOURCE, 1 << 70, 1 << 40, 1 << 33, flags=-(1 << 50))
    journal.write(START_US, Kind.RECEIVE, 12345, SOURCE, 1)
    journal.close()
    first, second = rows_of(open_journal(tmp_path / "a"))
    assert (first["seq"], first["hops"]) == ((1 << 63) - 1, (1 << 31) - 1)
    assert (first["bytes"], first["flags"]) == ((1 << 31) - 1, -(1 << 31))
    assert second["peer"] == number_of("12345")


def test_pictures_are_read_back_and_no_edges_are_an_answer(tmp_path: Path) -> None:
    journal = start(tmp_path / "a")
    journal.snapshot(START_US, "active", "", [(PEER, 250), (SOURCE, -1)])
    journal.snapshot(START_US, "tree", (SOURCE, 4), [])
    journal.snapshot(START_US + 5, "active", "", [(PEER, 260)])
    journal.end("leave", START_US + 9)
    stored = open_journal(tmp_path / "a")
    found = {
        at: [(each.overlay, each.flow, each.peer.tolist(), each.value.tolist()) for each in stored.pictures(place)]
        for at, place in stored.moments().items()
    }
    assert found == {
        START_US: [
            ("active", "", [number_of(PEER), number_of(SOURCE)], [250, -1]),
            ("tree", f"{number_of(SOURCE)}/4", [], []),
        ],
        START_US + 5: [("active", "", [number_of(PEER)], [260])],
    }


def test_what_comes_after_the_end_is_passed_over(tmp_path: Path) -> None:
    journal = start(tmp_path / "a")
    journal.end("leave", START_US)
    send(journal, 1)
    journal.snapshot(START_US, "active", "", [])
    journal.end("leave", START_US + 5)
    journal.close()
    assert (open_journal(tmp_path / "a").rows, open_journal(tmp_path / "a").ended_us) == (0, START_US)


# The end of the process

WRITES_FOR_EVER = """
import os, sys
from pathlib import Path
from tests.live.test_journal import send, start
journal = start(Path(sys.argv[1]))
seq = 0
while True:
    for _ in range(1000):
        send(journal, seq, f"topic {seq % 5000}")
        seq += 1
    journal.snapshot(seq, "active", "", [("a", seq)])
    os.write(1, f"{journal.rows}\\n".encode())
"""


def child(script: str, path: Path, **given: Any) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(PROJECT / "src"), str(PROJECT)])}
    command = [sys.executable, "-c", script, str(path)]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **given
    )


def test_a_killed_process_loses_no_row(tmp_path: Path) -> None:
    process = child(WRITES_FOR_EVER, tmp_path / "a")
    assert process.stdout is not None
    for _ in range(60):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    said, errors = process.communicate()
    told = int(said.split()[-1]) if said.split() else 60_000
    stored = open_journal(tmp_path / "a")
    assert stored.rows >= told >= 60_000, errors
    assert (stored.ended_us, stored.how, stored.shortfall) == (None, "", "")
    seqs = [int(seq) for chunk in stored.chunks() for seq in chunk["seq"]]
    assert seqs == list(range(stored.rows))
    assert len(stored.texts) == 1 + 3 + 5000
    assert len(stored.moments()) >= told // 1000 - 1


def test_a_killed_process_lets_go_of_its_folder_and_a_running_one_does_not(tmp_path: Path) -> None:
    journal = start(tmp_path / "a")
    with pytest.raises(EpicastError, match=r"still being written by 127\.0\.0\.1:7001/a: stop the node first$"):
        open_journal(tmp_path / "a")
    with pytest.raises(EpicastError, match="is being written by another node"):
        start(tmp_path / "a")
    journal.close()
    assert open_journal(tmp_path / "a").ended_us is None
    with pytest.raises(EpicastError, match="is not empty: a journal needs a folder of its own"):
        start(tmp_path / "a")


def test_what_was_cut_off_in_the_last_moment_is_passed_over(tmp_path: Path) -> None:
    journal = start(tmp_path / "a")
    send(journal, 0)
    journal.snapshot(START_US, "active", "", [(PEER, 1)])
    journal.snapshot(START_US + 1, "active", "", [(PEER, 1)])
    journal.close()
    pictures, names = tmp_path / "a" / PICTURES_FILE, tmp_path / "a" / NAMES_FILE
    pictures.write_bytes(pictures.read_bytes()[:-3])
    names.write_bytes(names.read_bytes()[:-2])  # of "active", which no row uses
    stored = open_journal(tmp_path / "a")
    assert list(stored.moments()) == [START_US]
    assert [row["topic"] for row in rows_of(stored)] == ["prices/eur"]


# No room


def test_above_its_cap_rows_are_dropped_and_counted(tmp_path: Path) -> None:
    journal = start(tmp_path / "a", rows_max=20_000)
    for seq in range(20_005):
        send(journal, seq)
    assert (journal.rows, journal.lost) == (20_000, 5)
    journal.close()  # killed: the head knows all the same
    stored = open_journal(tmp_path / "a")
    assert (stored.rows, stored.shortfall) == (20_000, "there was no room for 5 rows")


def test_texts_have_a_cap_and_rows_without_their_text_are_lost(tmp_path: Path) -> None:
    journal = start(tmp_path / "a")
    journal._codes = Codes(journal._names, texts_max=4)
    for seq in range(6):
        send(journal, seq, f"topic {seq}")
    assert (journal.rows, journal.lost) == (2, 4)
    journal.close()


def test_ids_have_a_cap_and_keep_their_number_without_a_name(tmp_path: Path) -> None:
    journal = start(tmp_path / "a")
    journal._numbers = Numbers(journal._names, ids_max=3)
    for seq in range(6):
        journal.write(START_US, Kind.RECEIVE, f"peer {seq}")
    assert len(journal._numbers) == 4
    journal.close()
    stored = open_journal(tmp_path / "a")
    assert [row["peer"] for row in rows_of(stored)] == [number_of(f"peer {seq}") for seq in range(6)]
    assert list(stored.names.values()) == ["127.0.0.1:7001/a", "peer 0", "peer 1", "peer 2"]


FILES_OF_3_MB = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))
"""
GOES_ON = """
import sys
from pathlib import Path
from tests.live.test_journal import START_US, send, start
journal = start(Path(sys.argv[1]))
for seq in range(200_000):
    send(journal, seq, f"topic {seq // 50}")
    if seq % 1000 == 0:
        journal.snapshot(START_US + seq, "active", "", [(str(n), 1) for n in range(500)])
print(journal.rows, journal.lost)
journal.end("leave", START_US + seq, {"sent": seq})
"""


def require_short(folder: Path, said: str, rows_max: int) -> None:
    rows, lost = map(int, said.split())
    stored = open_journal(folder)
    assert 0 < rows <= rows_max
    assert (stored.rows, stored.how) == (rows, "leave")
    assert stored.shortfall == f"there was no room for {lost:,} rows"
    assert lost >= 200_000 - rows
    assert sum(len(chunk) for chunk in stored.chunks()) == rows  # all sound


def test_a_file_that_may_not_grow_costs_rows_and_nothing_else(tmp_path: Path) -> None:
    said, errors = child(FILES_OF_3_MB + GOES_ON, tmp_path / "a").communicate()
    assert errors == ""
    require_short(tmp_path / "a", said, 3 * SEGMENT_BYTES // SLOT_BYTES)


SMALL_DISK = """
mount -t tmpfs -o size=6m none {disk} || exit 77
"$@" && cp -r {disk}/a {out}
"""


def private_mounts() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not private_mounts(), reason="a small disk of one's own needs a private mount namespace")
def test_a_disk_that_is_full_costs_rows_and_nothing_else(tmp_path: Path) -> None:
    disk, out = tmp_path / "disk", tmp_path / "out"
    disk.mkdir()
    script = SMALL_DISK.format(disk=disk, out=out)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(PROJECT / "src"), str(PROJECT)])}
    command = ["unshare", "-rm", "sh", "-c", script, "sh", sys.executable, "-c", GOES_ON, str(disk / "a")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == 77:
        pytest.skip("this system lets nobody mount a small disk")
    assert (done.returncode, done.stderr) == (0, "")
    require_short(out, done.stdout, (6 << 20) // SLOT_BYTES)


def test_where_no_journal_can_be_it_says_so_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module, "write_text", refuse)
        with pytest.raises(EpicastError, match=r"^cannot write a journal in .*: No space left on device$"):
            start(tmp_path / "a")
    start(tmp_path / "a").close()
    (tmp_path / "file").write_text("")
    with pytest.raises(EpicastError, match=r"^cannot write a journal in .*: (Not a directory|File exists)$"):
        start(tmp_path / "file")


# Cost


def test_a_node_that_writes_a_journal_needs_neither_numpy_nor_arrow() -> None:
    script = "import sys, epicast.trace.journal; print([m for m in ('numpy', 'pyarrow') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"
