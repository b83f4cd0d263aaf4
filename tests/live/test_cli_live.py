"""The commands for live nodes: real processes, and what people see of them."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

import epicast
from epicast.cli.live_options import JOIN_S
from epicast.cli.top_view import Look, lasting, rates, top_view
from epicast.core.errors import EpicastError
from epicast.live.messages import Message
from epicast.live.pages import fetch_status
from epicast.live.pubsub import Printer
from epicast.live.settings import Settings, make_node
from tests.live.certified import make_cluster
from tests.live.programs import Program
from tests.tidy.source import ROOT
from tests.tidy.test_docs import means, table
from tests.unit.cli.shell import Shell


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address at which nobody listens, and nobody will while the test runs."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize("command", ["node", "pub", "sub", "cluster", "members", "top"])
def test_every_command_has_help(shell: Shell, command: str) -> None:
    answer = shell(command, "--help")
    assert answer.code == 0
    assert f"Usage: epicast {command}" in answer.out
    assert "--orders" not in answer.out
    assert f"\n  {command} " in shell("--help").out


# node


def test_a_node_says_where_it_is_and_leaves_when_asked() -> None:
    with Program("node") as node:
        address, word, admin = node.line().split(" ")
        assert word == "admin"
        assert fetch_status(admin)["address"] == address
        assert node.stop(signal.SIGTERM) == 0
        assert node.rest() == []
        assert [line.split(maxsplit=3)[2:] for line in node.errors()] == [
            ["INFO", f"listening at {address}, cluster epicast, stack brisa"],
            ["INFO", "leaving"],
        ]


def test_ctrl_c_lets_a_node_leave_and_its_neighbour_hears_of_it() -> None:
    with Program("node") as first:
        address = first.line().split(" ")[0]
        with Program("node", "--seed", address, "--json", "--log", "json") as second:
            told = second.json()
            assert set(told) == {"address", "id", "cluster", "admin"}
            first.until(f"joined: {told['id']}")
            assert second.stop(signal.SIGINT) == 0
            lines = [json.loads(line) for line in second.errors()]
            assert [set(line) for line in lines] == [{"time", "level", "message"}] * len(lines)
            assert lines[-1]["message"] == "leaving"
        first.until(f"no longer neighbours: {told['id']}")


def test_a_node_reads_its_file_and_options_win(tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_text(
        'cluster = "prices"\nstack = "flood"\nadmin = "off"\n[limits]\nhandshake = "2s"\n'
    )
    with Program("node", "node.toml", "--cluster", "news", "--json", cwd=tmp_path) as node:
        told = node.json()
        assert (told["cluster"], told["admin"]) == ("news", None)
        assert "cluster news, stack flood" in node.until("listening")


def test_a_node_can_be_told_not_to_wait_for_ever(nobody: str) -> None:
    with Program("node", "--seed", nobody, "--timeout", "0.2") as node:
        assert node.wait() == 2
        assert node.errors()[-1] == f"epicast: error: nobody let us in within 0.2 s: {nobody}: Connection refused"


def test_orders_come_on_stdin_and_its_end_is_the_last() -> None:
    with Program("node", "--json", "--orders") as node:
        admin = node.json()["admin"]
        node.write(b"publish a/b 20 0 100\nnonsense\npublish * 1 0 1\n", end=False)
        answers = [node.json() for _ in range(3)]
        assert {"published", "seconds"} in [set(answer) for answer in answers]
        assert sum("error" in answer for answer in answers) == 2
        counters = fetch_status(admin)["counters"]
        assert (counters["published"], counters["delivered"]) == (20, 20)
        node.write(b"publish a/b 1000000 1 100\n", end=True)
        assert node.wait() == 0


def test_a_node_with_a_trace_writes_it(tmp_path: Path) -> None:
    with Program("node", "--trace", tmp_path / "trace", "--trace-level", "deliveries", "--area", "north") as node:
        admin = node.line().split(" ")[2]
        assert fetch_status(admin)["trace"]["level"] == "deliveries"
        assert node.stop() == 0
    assert list((tmp_path / "trace").iterdir())


# pub and sub


def test_what_is_published_is_printed() -> None:
    with Program("node") as node:
        address = node.line().split(" ")[0]
        with Program("sub", "prices/*", "--seed", address, "--count", 4) as reader:
            reader.until("subscribed to prices/* as 127.0.0.1:")
            with Program("pub", "prices/eur", "1.08", "--seed", address) as one:
                assert (one.wait(), one.rest(), one.errors()) == (0, [], [])
            with Program("pub", "prices/usd", "--seed", address, stdin=b"0.92\n\n0.93") as lines:
                assert lines.wait() == 0
            assert reader.wait() == 0
            first, *others = reader.rest()
            assert first == "prices/eur 1.08"
            assert sorted(others) == [
                "prices/usd ",
                "prices/usd 0.92",
                "prices/usd 0.93",
            ]  # this stack promises no order


@pytest.mark.parametrize(
    ("words", "line"), [(["a/b"], "1"), (["a/b", "--topic"], "a/b 1"), (["**"], "a/b 1"), (["a/*", "--no-topic"], "1")]
)
def test_the_topic_is_printed_under_wildcards_or_as_told(words: list[str], line: str) -> None:
    with Program("node") as node:
        address = node.line().split(" ")[0]
        with Program("sub", *words, "--seed", address, "--count", 1) as reader:
            reader.until("subscribed")
            with Program("pub", "a/b", "1", "--seed", address) as one:
                assert one.wait() == 0
            assert (reader.wait(), reader.rest()) == (0, [line])


def test_a_hostile_topic_stays_on_its_line() -> None:
    printer = Printer(None, print, as_json=False, topics=True)
    message = Message("a\nb\x1b[2J", b"1", "127.0.0.1:1", 0, 1, 1)
    assert printer._line(message) == b"a?b?[2J 1\n"


@pytest.mark.parametrize("command", [["sub", "prices/#"], ["sub", "+/eur"], ["sub", "prices.>"], ["pub", "a/#", "x"]])
def test_wildcards_of_other_systems_are_refused_in_one_line(shell: Shell, nobody: str, command: list[str]) -> None:
    said = shell.refusal(*command, "--seed", nobody)
    expected = "wildcards are for subscriptions" if command[0] == "pub" else "write * for one level"
    assert expected in said


def test_messages_and_receipts_as_json() -> None:
    with Program("node") as node:
        address = node.line().split(" ")[0]
        with Program("sub", "**", "--seed", address, "--count", 2, "--json", "--quiet") as reader:
            node.until("joined")
            publisher = ("pub", "a/b", "--seed", address, "--whole", "--header", "unit=usd", "--json")
            with Program(*publisher, stdin="grün\nund blau".encode()) as whole:
                receipt = whole.json()
                assert (whole.wait(), whole.rest()) == (0, [])
            assert (receipt["topic"], receipt["fragments"]) == ("a/b", 1)
            assert receipt["neighbours"] >= 1
            with Program("pub", "a/c", "--seed", address, stdin=b"\xff\xfe") as odd:
                assert odd.wait() == 0
            first, second = (json.loads(line) for line in reader.rest())
            assert reader.errors() == []
    assert (first["topic"], first["payload"], first["headers"]) == ("a/b", "grün\nund blau", {"unit": "usd"})
    assert (first["source"], first["seq"]) == (receipt["source"], receipt["seq"])
    assert first["latency_ms"] >= 0
    assert (second["topic"], second["payload_base64"]) == ("a/c", "//4=")


def test_a_reader_that_goes_away_ends_a_subscription_quietly() -> None:
    with Program("node") as node:
        address = node.line().split(" ")[0]
        read, write = os.pipe()
        try:
            with Program("sub", "**", "--seed", address, stdout=write) as reader:
                os.close(write)
                reader.until("subscribed")
                os.close(read)
                with Program("pub", "a", "unheard", "--seed", address) as one:
                    assert one.wait() == 0
                assert reader.wait() == 141
                assert len(reader.errors()) == 1
        finally:
            for end in (read, write):
                with suppress(OSError):
                    os.close(end)


def test_ctrl_c_ends_a_publisher_after_what_it_has_published() -> None:
    with Program("node") as node:
        address = node.line().split(" ")[0]
        with Program("sub", "**", "--seed", address, "--count", 1) as reader:
            reader.until("subscribed")
            with Program("pub", "a", "--seed", address, "--json") as publisher:
                publisher.write(b"first\nbegun", end=False)
                assert publisher.json()["topic"] == "a"
                assert publisher.stop(signal.SIGINT) == 130
                assert publisher.errors() == ["epicast: interrupted"]
            assert (reader.wait(), reader.rest()) == (0, ["a first"])


def test_input_that_cannot_be_read_is_one_line() -> None:
    with Program("node") as node:
        address = node.line().split(" ")[0]
        unreadable = os.open(os.devnull, os.O_WRONLY)
        try:
            with Program("pub", "a", "--seed", address, stdin_from=unreadable) as publisher:
                assert publisher.wait() == 2
                assert publisher.errors() == ["epicast: error: the input cannot be read: Bad file descriptor"]
        finally:
            os.close(unreadable)


def test_a_subscription_ends_on_ctrl_c_and_after_its_time() -> None:
    with Program("node") as node:
        address = node.line().split(" ")[0]
        with Program("sub", "**", "--seed", address, "--quiet") as reader:
            node.until("joined")
            assert (reader.stop(signal.SIGINT), reader.rest(), reader.errors()) == (0, [], [])
        with Program("sub", "**", "--seed", address, "--seconds", "0.2", "--count", "3") as late:
            assert late.wait() == 1
            assert late.errors()[-1] == "epicast: 0 of 3 messages came"


def test_nobody_to_talk_to_is_one_line(shell: Shell, nobody: str) -> None:
    assert "nobody to talk to: give --seed" in shell.refusal("pub", "a", "b")
    assert "nobody to talk to: give --seed" in shell.refusal("sub", "a")
    said = shell.refusal("pub", "a", "b", "--seed", nobody, "--timeout", "0.2")
    assert said == f"epicast: error: nobody let us in within 0.2 s: {nobody}: Connection refused\n"
    assert JOIN_S == 30


def test_another_cluster_and_another_stack_are_named(shell: Shell) -> None:
    with Program("node", "--cluster", "prices") as node:
        address = node.line().split(" ")[0]
        said = shell.refusal("sub", "a", "--seed", address, "--timeout", "0.3")
        assert f"{address}: refused: another cluster" in said
        said = shell.refusal(
            "sub", "a", "--seed", address, "--timeout", "0.3", "--cluster", "prices", "--stack", "flood"
        )
        assert f"{address}: refused: another stack" in said


def test_a_cluster_with_keys_is_for_those_who_have_them(tmp_path: Path, shell: Shell) -> None:
    keys = make_cluster(tmp_path / "keys", "n1", "client", cluster="prices")
    with Program("node", "--keys", keys, "--name", "n1", "--sign", "--json") as node:
        told = node.json()
        assert told["cluster"] == "prices"
        member = ("--keys", keys, "--name", "client", "--sign")
        with Program("sub", "**", "--seed", told["address"], *member, "--count", 1) as reader:
            reader.until("subscribed")
            with Program("pub", "a", "signed", "--seed", told["address"], *member) as one:
                assert one.wait() == 0
            assert (reader.wait(), reader.rest()) == (0, ["a signed"])
        said = shell.refusal("sub", "**", "--seed", told["address"], "--cluster", "prices", "--timeout", "0.5")
        assert "TLS on one side only?" in said or "no answer" in said
        assert fetch_status(told["admin"])["secure"]


# members and top


def test_members_and_top_show_what_a_node_knows(shell: Shell) -> None:
    with Program("node", "--json", "--orders") as first:
        told = first.json()
        with Program("node", "--seed", told["address"], "--json") as second:
            other = second.json()
            second.until("joined")
            first.write(b"publish a/b 10 0 100\n", end=False)
            assert first.json()["published"] == 10
            answer = shell("members", "--admin", other["admin"])
            assert (answer.code, answer.err) == (0, "")
            assert other["id"] in answer.out
            assert "1 neighbour, 0 processes more known" in answer.out
            assert max(map(len, answer.out.splitlines())) <= 100
            found = shell("members", "--admin", f"http://{other['admin']}", "--json").json
            assert [each["id"] for each in found["neighbours"]] == [told["id"]]
            shown = shell("top", "--admin", other["admin"], "--once", "--interval", "0.1").out
            lines = [" ".join(line.split()) for line in shown.splitlines()]
            assert any(line.startswith("Delivered") and line.endswith("10 in all") for line in lines)
            assert f"{told['id']} {told['id']}" in " ".join(lines)  # the flow of the first, whose parent is the first
            assert max(map(len, shown.splitlines())) <= 100
            (node,) = shell("top", "--admin", other["admin"], "--json", "--interval", "0.1").json["nodes"]
            assert (node["id"], node["rates"]["delivered"]) == (other["id"], 0)


def test_top_shows_the_cluster(shell: Shell, tmp_path: Path) -> None:
    with Program("node", "--json", "--orders") as first:
        told = first.json()
        with (
            Program("node", "--seed", told["address"], "--json") as second,
            Program("node", "--seed", told["address"], "--json") as third,
        ):
            others = [second.json(), third.json()]
            for node in (second, third):
                node.until("joined")
            first.write(b"publish a/b 10 0 100\n", end=False)
            assert first.json()["published"] == 10
            (tmp_path / "admins").write_text(f"# two of three\n{told['admin']}\n{others[0]['admin']}\n")
            asked = ("top", "--admin", f"@{tmp_path / 'admins'}", "--interval", "0.1")
            rows = {row["process"]: row for row in shell(*asked, "--json").json["processes"]}
            assert list(rows) == [*sorted([told["id"], others[0]["id"]]), others[1]["id"]]
            for each in (told, others[0]):
                row = rows[each["id"]]
                assert (row["state"], row["gaps"], row["lost"], row["version"]) == ("up", 0, 0, epicast.__version__)
                assert row["neighbours"] >= 1
                assert row["behind"] == 0
            assert rows[others[1]["id"]]["state"] in ("neighbour", "known")
            shown = shell(*asked, "--once").out
            assert "cluster epicast · 3 processes · 2 of them asked" in shown
            assert all(each["address"] in shown for each in (told, *others))
            third.stop()
            answer = shell(
                "top", "--admin", told["admin"], "--admin", others[1]["admin"], "--once", "--interval", "0.1"
            )
            assert (answer.code, answer.err) == (0, "")
            assert "1 node without an answer" in answer.out


def test_a_file_of_admin_addresses_that_cannot_be_read_is_one_line(shell: Shell, tmp_path: Path) -> None:
    assert "No such file or directory" in shell.refusal("top", "--admin", f"@{tmp_path / 'nope'}")
    (tmp_path / "empty").touch()
    assert "there is no address in the file" in shell.refusal("top", "--admin", f"@{tmp_path / 'empty'}")


def test_top_asks_the_hosts_that_others_know_at_a_port(shell: Shell) -> None:
    """Two nodes on different addresses of this machine, with one port for their pages."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with Program("node", "--listen", "127.0.0.1:0", "--admin", f"127.0.0.1:{port}", "--json") as first:
        told = first.json()
        words = ("--listen", "127.0.0.2:0", "--admin", f"127.0.0.2:{port}", "--seed", told["address"], "--json")
        with Program("node", *words) as second:
            other = second.json()
            second.until("joined")
            alone = shell("top", "--admin", told["admin"], "--json", "--interval", "0.1").json
            both = shell("top", "--admin", told["admin"], "--admin-port", port, "--json", "--interval", "0.1").json
    assert [row["state"] for row in alone["processes"]] == ["up", "neighbour"]
    assert {row["process"]: row["state"] for row in both["processes"]} == {told["id"]: "up", other["id"]: "up"}


@pytest.mark.parametrize("command", ["members", "top"])
def test_a_wrong_admin_address_is_one_line(shell: Shell, command: str, nobody: str) -> None:
    assert "is the node running" in shell.refusal(command, "--admin", nobody)
    assert "expected an address" in shell.refusal(command, "--admin", "nowhere")
    assert "--admin" in shell.refusal(command)


def test_rates_are_between_two_looks() -> None:
    def look(at_s: float, delivered: int, sent: dict[str, int]) -> Look:
        rows = [{"id": peer, "sent_bytes": size, "received_bytes": 0} for peer, size in sent.items()]
        return Look({"counters": {"delivered": delivered}, "neighbours": rows}, at_s)

    found = rates(look(10, 100, {"a": 1000, "b": 5}), look(12, 300, {"a": 3000, "c": 10**9}))
    assert (found["delivered"], found["sent_bytes"], found["published"]) == (100, 1000, 0)


def test_times_are_short() -> None:
    assert [lasting(seconds) for seconds in (None, 0.4, 119, 121, 7300, 200_000)] == [
        "–",  # noqa: RUF001
        "0 s",
        "119 s",
        "2 min",
        "2.0 h",
        "2.3 d",
    ]


def test_long_lists_and_odd_names_are_shown_well(capsys: pytest.CaptureFixture[str]) -> None:
    from epicast.cli.output import console

    flow = {
        "source": "h[/red]\x1b[2J:1/x",
        "number": 0,
        "own": False,
        "parent": None,
        "children_total": 2,
        "depth": None,
    }
    status: dict[str, Any] = {
        "id": "h:1/x",
        "cluster": "c",
        "stack": "brisa",
        "uptime_s": 1.0,
        "joined": False,
        "counters": {"dropped: unreachable": 7, "nonsense": 1},
        "neighbours": [],
        "queues": {"peers_bytes": 1, "slowest_peer_bytes": 1, "congested": True, "subscribers_messages": 0},
        "flows": [flow] * 100,
        "flows_total": 3000,
        "subscriptions": [],
        "subscriptions_total": 0,
    }
    console().print(top_view(Look(status, 0), Look(status, 1)))
    out = capsys.readouterr().out
    assert "and 2,988 more" in out
    assert "h[/red]?[2J:1/x" in out
    assert "no neighbours" in out
    assert "publishers wait" in out
    assert "nonsense 1 · messages dropped 7" in out
    assert "(looking for one)" in out


# Settings


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["node", "--listen", "nowhere"], "listen: expected an address like 127.0.0.1:7946, got 'nowhere'"),
        (
            ["node", "--listen", "0.0.0.0:0", "--insecure"],
            "stands for every address of this machine; say with advertise",
        ),
        (["node", "--listen", "203.0.113.1:0"], "there is no TLS: make keys with `epicast keys`"),
        (["node", "--listen", "203.0.113.1:0", "--insecure"], "cannot listen at 203.0.113.1:0"),
        (["node", "--stack", "nope"], "unknown stack 'nope'"),
        (["node", "--seed", "a b"], "expected an address like"),
        (["node", "--keys", "x"], "keys and name belong together"),
        (["node", "--sign"], "signed messages need keys"),
        (["node", "--keys", "no-such-folder", "--name", "n1"], "no-such-folder"),
        (["node", "--admin", "0.0.0.0:0"], "can be reached by others, who would see the cluster"),
        (["node", "--admin", "here"], "admin: expected an address"),
        (["node", "--log", "xml"], "log: expected one of text, json"),
        (["node", "--trace-level", "off"], "trace_level: expected one of full, deliveries"),
        (["node", "no-such-file.toml"], "no-such-file.toml: No such file or directory"),
        (["node", "--timeout", "0"], "--timeout"),
        (["pub", "a/*", "x", "--seed", "127.0.0.1:1"], "wildcards are for subscriptions"),
        (["pub", "a", "x", "--whole"], "--whole is for stdin"),
        (["pub", "a", "x", "--header", "unit"], "--header unit: expected name=text"),
        (["sub", "a/b*", "--seed", "127.0.0.1:1"], "* and ** stand for whole levels"),
        (["sub", "a", "--seed", "127.0.0.1:1", "--policy", "hope"], "policy: expected block, drop-oldest"),
        (["sub", "a", "--count", "0"], "--count"),
    ],
)
def test_bad_options_are_refused(shell: Shell, words: list[str], said: str) -> None:
    assert said in shell.refusal(*words)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lissten = 5", "node.toml: lissten: unknown key; did you mean listen?"),
        ("listen = 5", "node.toml: listen: expected a text, got 5"),
        ("[limits]\nframe = 5", "node.toml: limits.frame: unknown key"),
        ("[limits]\nframe_bytes = 5", "node.toml: limits.frame_bytes: expected an integer from 1024"),
        ("[limits]\nhandshake = 'soon'", "limits.handshake_us: expected a duration"),
        ("seeds = '127.0.0.1:1'", "node.toml: seeds: expected a list"),
        ("listen = ", "node.toml: not TOML"),
        ("[stack]\nmembership = 5", "stack.membership: expected a table"),
        ("lan = true\nlan_group = '10.0.0.1:1'\nlisten = '127.0.0.1:0'", "lan_group: expected a multicast address"),
    ],
)
def test_bad_settings_are_refused(shell: Shell, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "node.toml").write_text(text)
    assert said in shell.refusal("node", tmp_path / "node.toml")


def test_keys_say_of_which_cluster_they_are(tmp_path: Path) -> None:
    keys = str(make_cluster(tmp_path / "keys", "n1"))
    assert make_node(Settings(keys=keys, name="n1")).cluster == "prices"
    with pytest.raises(EpicastError, match="'news', but the keys are of 'prices'"):
        make_node(Settings(keys=keys, name="n1", cluster="news"))


def test_without_an_address_a_node_listens_where_its_seed_reaches_it() -> None:
    assert make_node(Settings())._listen == ("127.0.0.1", 0)
    assert make_node(Settings(seeds=("127.0.0.1:1",)))._listen == ("127.0.0.1", 0)
    assert make_node(Settings(seeds=("no-such-name.invalid:1",)))._listen == ("127.0.0.1", 0)


def test_every_setting_is_documented_with_its_default() -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    documented = {row[0]: row[1] for row in table(text, "keys: Settings")}
    known = {field.name: field for field in msgspec.structs.fields(Settings)}
    assert list(documented) == list(known)
    wrong = {key: cell for key, cell in documented.items() if not means(cell, known[key])}
    assert not wrong, f"defaults that are others in the code: {wrong}"
