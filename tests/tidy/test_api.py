"""Every public call is in docs/api.md, in words and in an example; the examples are run by tests/unit/docs."""

import re

import pytest

import epicast
from epicast.live.driver import Application
from epicast.live.sync import SyncSubscription
from tests.tidy.source import ROOT
from tests.unit.docs.marked import blocks

PAGE = ROOT / "docs" / "api.md"
FOR_THE_INSIDE = {  # called by other modules, not by applications
    epicast.Node: {*vars(Application), "unix_us"},
    epicast.Subscription: {"offer", "offer_many"},
    epicast.Tls: {"client_context", "server_context"},
}
CLASSES = (
    epicast.Node,
    epicast.SyncNode,
    epicast.Subscription,
    SyncSubscription,
    epicast.Message,
    epicast.Gap,
    epicast.Receipt,
    epicast.Waiting,
    epicast.Correction,
    epicast.Tls,
)
ELSEWHERE = {"SyncNode.waiting", "SyncNode.take"}  # docs/orders.md


def examples(*documents: str) -> str:
    return "\n".join(block.text for block in blocks() if block.what == "python" and block.document.name in documents)


def calls() -> list[str]:
    found = [f"epicast.{name}" for name in epicast.__all__ if name not in ("__version__", "Subscription")]
    found += ["Node.address", "Node.id", "Subscription.lost"]  # attributes that only instances have
    for kind in CLASSES:
        inside = FOR_THE_INSIDE.get(kind, set())
        found += [f"{kind.__name__}.{name}" for name in dir(kind) if not name.startswith("_") and name not in inside]
    return found


@pytest.mark.parametrize("call", calls())
def test_a_public_call_has_an_example(call: str) -> None:
    owner, _, name = call.partition(".")
    text = examples("orders.md") if call in ELSEWHERE else examples("api.md")
    if owner == "epicast":
        # Some come to an application without being named by it.
        assert re.search(rf"\bepicast\.{name}\b", text) or f"`{name}`" in PAGE.read_text(encoding="utf-8"), call
    else:
        assert re.search(rf"\.{name}\b", text), call


def test_calls_are_found() -> None:
    assert {"Node.publish_now", "Subscription.batches", "epicast.QueueFull", "Tls.from_folder"} <= set(calls())
    assert "Node.deliver" not in calls()
