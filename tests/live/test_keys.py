"""Keys are made once, kept from others, and say whose they are."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from epicast.core.errors import EpicastError
from epicast.live import certificates, keys
from epicast.live.identity import Identity, as_host, parse_uri, require_host
from epicast.live.tls import Tls
from tests.live.certified import HOST, LONG_AGO, make_cluster
from tests.tidy.commands import shell_lines
from tests.tidy.source import ROOT
from tests.unit.cli.shell import Shell, start

NODE = f"{HOST}:7946/k3f9a2c1"


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


# Making


def test_keys_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    folder = make_cluster(tmp_path / "keys", "n1")
    assert mode(folder) == 0o700
    assert {path.name: mode(path) for path in folder.iterdir()} == {
        "ca.pem": 0o644,
        "ca.key": 0o600,
        "n1.pem": 0o644,
        "n1.key": 0o600,
    }


def test_a_certificate_says_whose_it_is(tmp_path: Path) -> None:
    keys.init(tmp_path, cluster="prices")
    now = datetime.now(UTC).replace(microsecond=0)
    card = keys.issue(tmp_path, "n1", hosts=["10.0.0.1", "[::1]", "Node.Example.", "10.0.0.1"], days=30, now=now)
    assert (card.kind, card.cluster, card.name) == ("node", "prices", "n1")
    assert card.hosts == ("10.0.0.1", "::1", "node.example")
    assert card.not_after == now + timedelta(days=30)
    assert keys.show(tmp_path / "n1.pem") == [card]
    (authority,) = keys.show(tmp_path / "ca.pem")
    assert (authority.kind, authority.cluster, authority.name, authority.hosts) == ("authority", "prices", "", ())


def test_a_certificate_ends_with_its_authority(tmp_path: Path) -> None:
    authority = keys.init(tmp_path, cluster="prices", days=10)
    assert keys.issue(tmp_path, "n1", hosts=[HOST], days=365).not_after == authority.not_after


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    folder = make_cluster(tmp_path / "keys", "n1")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(EpicastError, match="holds an authority already"):
        keys.init(folder, cluster="prices")
    with pytest.raises(EpicastError, match=r"n1\.key exists"):
        keys.issue(folder, "n1", hosts=[HOST])
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("mine")
    with pytest.raises(EpicastError, match="is not empty"):
        keys.init(tmp_path, cluster="prices")
    with pytest.raises(EpicastError, match="cannot write"):
        keys.init(tmp_path / "letter", cluster="prices")


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = make_cluster(tmp_path / "keys")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(EpicastError, match="cannot write the keys"):
        keys.issue(folder, "n1", hosts=[HOST], out=tmp_path / "file")
    (folder / "n2.pem").symlink_to("nowhere")  # seen only when it is opened, after n2.key was written
    with pytest.raises(EpicastError, match="cannot write the keys"):
        keys.issue(folder, "n2", hosts=[HOST])
    assert not (folder / "n2.key").exists()


def test_what_a_machine_needs_can_be_written_elsewhere(tmp_path: Path) -> None:
    folder, out = make_cluster(tmp_path / "keys"), tmp_path / "for-n1"
    keys.issue(folder, "n1", hosts=[HOST], out=out)
    keys.issue(folder, "n2", hosts=[HOST], out=out)
    assert mode(out) == 0o700
    assert sorted(path.name for path in out.iterdir()) == ["ca.pem", "n1.key", "n1.pem", "n2.key", "n2.pem"]
    assert (out / "ca.pem").read_bytes() == (folder / "ca.pem").read_bytes()
    other = make_cluster(tmp_path / "other")
    with pytest.raises(EpicastError, match="is of another authority"):
        keys.issue(other, "n3", hosts=[HOST], out=out)


@pytest.mark.parametrize("name", ["", "a/b", "../n1", ".n1", "n 1", "n1\n", "ä", "x" * 64, "ca", "CA"])
def test_names_that_are_no_names_are_refused(tmp_path: Path, name: str) -> None:
    folder = make_cluster(tmp_path / "keys")
    with pytest.raises(EpicastError, match=r"^name: "):
        keys.issue(folder, name, hosts=[HOST])
    if name.lower() != "ca":
        with pytest.raises(EpicastError, match=r"^cluster: "):
            keys.init(tmp_path / "new", cluster=name)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "a b",
        "127.0.0.1:7946",
        "*.example",
        "ä.example",
        "300.1.1.1",
        "0.0.0.0",
        "::",
        "fe80::1%eth0",
        "-a",
        "a" * 64,
    ],
)
def test_hosts_that_nobody_can_reach_are_refused(tmp_path: Path, host: str) -> None:
    with pytest.raises(EpicastError, match=r"^host: "):
        keys.issue(make_cluster(tmp_path / "keys"), "n1", hosts=[host])


def test_a_certificate_has_some_hosts_and_not_too_many(tmp_path: Path) -> None:
    folder = make_cluster(tmp_path / "keys")
    with pytest.raises(EpicastError, match="expected at least one"):
        keys.issue(folder, "n1", hosts=[])
    with pytest.raises(EpicastError, match="too many for one certificate"):
        keys.issue(folder, "n1", hosts=[f"node-{number}.of-a-large-data-centre.example" for number in range(100)])
    assert not (folder / "n1.key").exists()


@pytest.mark.parametrize("days", [0, -1, 36_501])
def test_days_are_bounded(tmp_path: Path, days: int) -> None:
    with pytest.raises(EpicastError, match="days: expected 1 to"):
        keys.init(tmp_path / "keys", cluster="prices", days=days)


def test_an_authority_that_has_expired_issues_nothing(tmp_path: Path) -> None:
    keys.init(tmp_path, cluster="prices", days=10, now=LONG_AGO)
    with pytest.raises(EpicastError, match=r"ca\.pem expired on "):
        keys.issue(tmp_path, "n1", hosts=[HOST])


def test_an_authority_needs_its_own_key(tmp_path: Path) -> None:
    one, two = make_cluster(tmp_path / "1"), make_cluster(tmp_path / "2")
    (one / "ca.key").write_bytes((two / "ca.key").read_bytes())
    with pytest.raises(EpicastError, match="is not the key of"):
        keys.issue(one, "n1", hosts=[HOST])


def test_a_new_authority_issues_while_the_old_one_is_still_trusted(tmp_path: Path) -> None:
    old, new = make_cluster(tmp_path / "old"), make_cluster(tmp_path / "new")
    both = (new / "ca.pem").read_bytes() + (old / "ca.pem").read_bytes()
    (new / "ca.pem").write_bytes(both)
    keys.issue(new, "n1", hosts=[HOST], out=tmp_path / "n1")
    assert (tmp_path / "n1" / "ca.pem").read_bytes() == both
    assert len(keys.show(tmp_path / "n1" / "ca.pem")) == 2


# Names


def test_a_host_has_one_spelling() -> None:
    spellings = {"::1": ["::1", "0:0::1", "[::1]"], "10.0.0.1": ["10.0.0.1", "::ffff:10.0.0.1"], "a.b": ["A.b", "a.B."]}
    assert {host: {as_host(each) for each in each_way} for host, each_way in spellings.items()} == {
        host: {host} for host in spellings
    }


def test_a_certificate_vouches_for_its_hosts_alone() -> None:
    identity = Identity("prices", "n1", (HOST, "::1", "a.example"), datetime.now(UTC))
    for node_id in (NODE, f"{HOST}:1/x", "[::1]:7946/k3f9a2c1", "A.example:7946/k3f9a2c1"):
        require_host(identity, node_id)
    with pytest.raises(EpicastError, match=r"n1 is for 127\.0\.0\.1, ::1, a\.example, not for 127\.0\.0\.2"):
        require_host(identity, "127.0.0.2:7946/k3f9a2c1")
    for nonsense in ("", HOST, f"{HOST}:7946", f"{HOST}/x", f"{HOST}:7946/", f"{HOST}:99999/x", f"{NODE}/y"):
        with pytest.raises(EpicastError, match="not a node id"):
            require_host(identity, nonsense)


def test_a_uri_is_ours_or_it_is_not() -> None:
    assert parse_uri("epicast://prices/n1") == ("prices", "n1")
    assert parse_uri("epicast://prices") == ("prices", "")
    for other in ("http://prices/n1", "epicast://prices/", "epicast://prices/n1/x", "epicast://", "epicast://a/b\n"):
        assert parse_uri(other) is None


# Reading


def test_files_that_are_something_else_are_refused(tmp_path: Path) -> None:
    folder = make_cluster(tmp_path / "keys", "n1")
    (folder / "letter").write_text("mine")
    (folder / "letter").chmod(0o600)
    with pytest.raises(EpicastError, match="is not a certificate"):
        keys.show(folder / "letter")
    with pytest.raises(EpicastError, match="holds a private key"):
        keys.show(folder / "n1.key")
    with pytest.raises(EpicastError, match="is not a private key"):
        certificates.load_key(folder / "letter")
    with pytest.raises(EpicastError, match=r"cannot read .*: No such file"):
        keys.show(folder / "nobody.pem")
    with pytest.raises(EpicastError, match=r"cannot read .*: Is a directory"):
        keys.show(folder)
    with pytest.raises(EpicastError, match="is not an authority"):
        certificates.load_authority(folder / "n1.pem", certificates.now_utc())


def test_a_key_that_everyone_can_read_is_refused(tmp_path: Path) -> None:
    folder = make_cluster(tmp_path / "keys", "n1")
    (folder / "n1.key").chmod(0o644)
    with pytest.raises(EpicastError, match=r"chmod 600 .*n1\.key"):
        certificates.load_key(folder / "n1.key")


def test_authorities_of_two_clusters_are_not_mixed(tmp_path: Path) -> None:
    one, two = make_cluster(tmp_path / "1", cluster="a"), make_cluster(tmp_path / "2", cluster="b")
    (tmp_path / "ca.pem").write_bytes((one / "ca.pem").read_bytes() + (two / "ca.pem").read_bytes())
    with pytest.raises(EpicastError, match="several clusters: a, b"):
        certificates.load_authority(tmp_path / "ca.pem", certificates.now_utc())


# The command line


def test_the_commands_make_and_show_keys(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    made = shell("keys", "init", folder, "--cluster", "prices", "--json")
    assert made.code == 0
    assert made.json["files"] == [str(folder / "ca.pem"), str(folder / "ca.key")]
    issued = shell("keys", "issue", folder, "n1", "--host", HOST, "--host", "n1.example", "--days", "7", "--json")
    assert issued.json["hosts"] == [HOST, "n1.example"]
    shown = shell("keys", "show", folder / "n1.pem", "--json").json
    (certificate,) = shown["certificates"]
    assert {**certificate, "files": issued.json["files"]} == issued.json
    assert certificate["valid"] is True
    assert "PRIVATE" not in json.dumps([made.json, issued.json, shown])


def test_the_commands_speak_to_people(shell: Shell, tmp_path: Path) -> None:
    folder, out = tmp_path / "keys", tmp_path / "n1"
    assert f"written      {folder / 'ca.pem'}, {folder / 'ca.key'}" in shell("keys", "init", folder).out
    assert (
        f"{out / 'n1.pem'}, {out / 'n1.key'}" in shell("keys", "issue", folder, "n1", "--host", HOST, "--out", out).out
    )
    lines = shell("keys", "show", out / "n1.pem").out.splitlines()
    assert lines[:3] == ["cluster      epicast", "name         n1", f"hosts        {HOST}"]
    assert lines[3].startswith("valid until  20")
    assert "(authority)" in shell("keys", "show", folder / "ca.pem").out
    old = make_cluster(tmp_path / "old")
    keys.issue(old, "n2", hosts=[HOST], now=LONG_AGO)
    assert "(expired)" in shell("keys", "show", old / "n2.pem").out


def test_the_commands_refuse_bad_input(shell: Shell, tmp_path: Path) -> None:
    folder = make_cluster(tmp_path / "keys")
    assert "see epicast keys" in shell.refusal("keys")
    assert "holds an authority" in shell.refusal("keys", "init", folder)
    assert "cluster: expected" in shell.refusal("keys", "init", tmp_path / "new", "--cluster", "a b")
    assert "days: expected" in shell.refusal("keys", "init", tmp_path / "new", "--days", "0")
    assert "--host" in shell.refusal("keys", "issue", folder, "n1")
    assert "host: expected" in shell.refusal("keys", "issue", folder, "n1", "--host", "a b")
    assert "cannot read" in shell.refusal("keys", "issue", tmp_path, "n1", "--host", HOST)
    assert "cannot read" in shell.refusal("keys", "show", tmp_path / "nothing.pem")


WITHOUT = """
import sys
sys.modules["cryptography"] = None
from epicast.cli.main import main
main()
"""


def test_without_the_library_it_says_what_to_install(tmp_path: Path) -> None:
    with start(WITHOUT, "keys", "init", tmp_path / "keys") as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert err.count("\n") == 1
    assert "pip install 'epicast[live]'" in err


SPY = """
import sys
from epicast.cli.main import run
run(sys.argv[1:])
sys.exit("cryptography" in sys.modules)
"""


def test_help_does_not_load_the_library() -> None:
    program = (
        "import sys\nfrom epicast.cli.main import run\nrun(['keys', '--help'])\nsys.exit('cryptography' in sys.modules)"
    )
    with start(program) as process:
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Usage: epicast keys" in out


# The documentation


def test_the_documented_commands_run(tmp_path: Path) -> None:
    """All of docs/security.md, in its order."""
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    script = "\n".join(line for _, line in shell_lines(text))
    assert script.count("epicast keys") >= 5
    epicast = f"epicast() {{ '{sys.executable}' -c 'from epicast.cli.main import main; main()' \"$@\"; }}\n"
    done = subprocess.run(
        ["sh", "-eu"], input=epicast + script, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(keys.show(tmp_path / "both.pem")) == 2
    for folder, name in (("n1", "n1"), ("n2", "n2"), ("n1-renewed", "n1"), ("n1-second", "n1")):
        assert Tls.from_folder(tmp_path / folder, name).identity().cluster == "prices"
        assert Tls(tmp_path / "both.pem", *pair_in(tmp_path / folder, name)).identity().name == name


def pair_in(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / f"{name}.pem", folder / f"{name}.key"
