"""`epicast keys`: an authority for a cluster, and certificates for its nodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epicast.cli.help import Command, new_app

if TYPE_CHECKING:
    from epicast.live.keys import Card

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

app = new_app(help="Make and show the keys of a cluster.")


@app.command(cls=Command)
def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="New or empty. Keep it away from the nodes.")],
    cluster: Annotated[str, typer.Option(metavar="NAME", help="Its name; nodes of other clusters are refused.")] = (
        "epicast"
    ),
    days: Annotated[int, typer.Option(metavar="N", help="How long it is valid.")] = 3650,
    as_json: Json = False,
) -> None:
    """Make the certificate authority of a cluster: ca.pem for every node, ca.key for nobody else."""
    from epicast.live import keys

    card = keys.init(folder, cluster=cluster, days=days)
    _print_made(card, [folder / "ca.pem", folder / "ca.key"], as_json=as_json)


@app.command(cls=Command)
def issue(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Of the authority.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the node.")],
    host: Annotated[
        list[str], typer.Option(metavar="H", help="Address or name by which others reach the node; repeat it.")
    ],
    days: Annotated[int, typer.Option(metavar="N", help="How long it is valid.")] = 365,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write there, with a copy of ca.pem, all that the node needs.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make the certificate and the key of a node: NAME.pem and NAME.key."""
    from epicast.live import keys

    card = keys.issue(folder, name, hosts=host, days=days, out=out)
    home = folder if out is None else out
    _print_made(card, [home / f"{name}.pem", home / f"{name}.key"], as_json=as_json)


@app.command(cls=Command)
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A certificate: ca.pem, or a node's.")],
    as_json: Json = False,
) -> None:
    """Tell whose a certificate is and how long it is valid."""
    from epicast.cli.output import print_json
    from epicast.live import keys

    cards = keys.show(file)
    if as_json:
        print_json({"file": str(file), "certificates": [as_dict(card) for card in cards]})
        return
    for card in cards:
        _print_card(card)


def as_dict(card: Card) -> dict[str, Any]:
    from epicast.live.certificates import now_utc

    return {
        "kind": card.kind,
        "cluster": card.cluster,
        "name": card.name,
        "hosts": list(card.hosts),
        "valid_from": card.not_before.isoformat(),
        "valid_until": card.not_after.isoformat(),
        "valid": card.not_before <= now_utc() <= card.not_after,
        "fingerprint": card.fingerprint,
    }


def _print_made(card: Card, files: list[Path], *, as_json: bool) -> None:
    from epicast.cli.output import print_json

    if as_json:
        print_json({**as_dict(card), "files": [str(file) for file in files]})
        return
    _print_card(card)
    print(f"written      {', '.join(str(file) for file in files)}")


def _print_card(card: Card) -> None:
    from epicast.live.certificates import as_text, now_utc

    now = now_utc()
    state = " (expired)" if now > card.not_after else " (not yet valid)" if now < card.not_before else ""
    rows = {
        "cluster": card.cluster,
        "name": card.name or "(authority)",
        "hosts": ", ".join(card.hosts),
        "valid until": as_text(card.not_after) + state,
        "fingerprint": card.fingerprint,
    }
    for label, text in rows.items():
        if text:
            print(f"{label:<12} {text}")
