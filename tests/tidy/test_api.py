"""Every public call is in docs/api.md, in words and in an example; the examples are run by tests/unit/docs."""

import ast
import builtins
import inspect
import re

import pytest

import epicast
from epicast.core.errors import EpicastError
from epicast.live.driver import Application
from tests.tidy.source import ROOT, python_files
from tests.unit.docs.marked import blocks

PAGE = ROOT / "docs" / "api.md"
FOR_THE_INSIDE = {  # called by other modules, not by applications
    epicast.Events: {"offer"},
    epicast.Node: {*vars(Application), "unix_us"},
    epicast.Subscription: {"fail", "offer", "offer_many"},
    epicast.Tls: {"client_context", "server_context"},
}
CLASSES = (
    epicast.Node,
    epicast.SyncNode,
    epicast.Subscription,
    epicast.SyncSubscription,
    epicast.Events,
    epicast.SyncEvents,
    epicast.NodeEvent,
    epicast.Message,
    epicast.Gap,
    epicast.Receipt,
    epicast.Waiting,
    epicast.Correction,
    epicast.Tls,
)
NAMED_BY_NOBODY = {
    "__version__",
    "Events",
    "Subscription",
    "SyncEvents",
    "SyncSubscription",
    "Summary",
}  # types of what calls return
ELSEWHERE = {"SyncNode.waiting", "SyncNode.take"}  # docs/orders.md


def examples(*documents: str) -> str:
    return "\n".join(block.text for block in blocks() if block.what == "python" and block.document.name in documents)


def calls() -> list[str]:
    found = [f"epicast.{name}" for name in epicast.__all__ if name not in NAMED_BY_NOBODY]
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


# Exceptions


def exceptions() -> set[str]:
    """The names of all exceptions of the package."""
    bases: dict[str, set[str]] = {}
    for file in python_files():
        for found in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(found, ast.ClassDef):
                bases[found.name] = {base.id for base in found.bases if isinstance(base, ast.Name)}
    known = {"Exception"}
    while more := {name for name, above in bases.items() if above & known} - known:
        known |= more
    return known - {"Exception"}


def named_exceptions(text: str) -> set[str]:
    """Every word of a document that is an exception, of the package or of Python, or is called like one."""
    words = set(re.findall(r"\b[A-Z]\w+\b", text))
    of_python = {name for name, kind in vars(builtins).items() if isinstance(kind, type)} & words
    of_python = {word for word in of_python if issubclass(getattr(builtins, word), BaseException)}
    return (words & exceptions()) | of_python | {word for word in words if word.endswith(("Error", "Exception"))}


def test_every_exception_that_the_page_names_can_be_imported_from_epicast() -> None:
    named = named_exceptions(PAGE.read_text(encoding="utf-8"))
    assert {"EpicastError", "QueueFull", "SlowSubscriber", "TimeoutError"} <= named
    missing = {name for name in named if not hasattr(builtins, name) and name not in epicast.__all__}
    assert not missing, f"docs/api.md names {missing}, which epicast does not export"
    assert issubclass(epicast.EpicastError, Exception)
    assert epicast.EpicastError is EpicastError


def test_every_exported_exception_is_on_the_page_and_is_an_epicast_error() -> None:
    exported = exceptions() & set(epicast.__all__)
    assert {"ConfigError", "EpicastError", "QueueFull", "SlowSubscriber"} <= exported
    assert exported <= named_exceptions(PAGE.read_text(encoding="utf-8"))
    assert all(issubclass(getattr(epicast, name), EpicastError) for name in exported)


def test_exceptions_are_found() -> None:
    assert {"EpicastError", "QueueFull", "WireError"} <= exceptions()
    assert "Node" not in exceptions()
    assert named_exceptions("a `NoSuchError`, a `KeyError`, a `Node` and a `QueueFull`") == {
        *("NoSuchError", "KeyError", "QueueFull"),
    }


@pytest.mark.parametrize("name", epicast.__all__)
def test_every_public_name_is_there_and_in_the_listing(name: str) -> None:
    assert getattr(epicast, name) is not None
    assert name in dir(epicast)


def test_a_node_without_async_takes_what_a_node_takes() -> None:
    for name in ("__init__", "publish", "subscribe", "events", "ready", "take", "waiting"):
        ours, theirs = (inspect.signature(getattr(kind, name)) for kind in (epicast.SyncNode, epicast.Node))
        assert ours.parameters == theirs.parameters, name
