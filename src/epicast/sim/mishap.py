"""When a protocol raises: says when and where it was, and how to see it again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from traceback import walk_tb
from types import TracebackType

from epicast.core.errors import EpicastError


@contextmanager
def explained(now_us: Callable[[], int], replay: str) -> Iterator[None]:
    try:
        yield
    except EpicastError:  # says all there is to say
        raise
    except Exception as error:
        node = _node(error.__traceback__)
        where = "outside of any node" if node is None else f"node {node}"
        error.add_note(f"at {now_us() / 1e6:.6f} s of virtual time, {where}; to see it again: {replay}")
        raise


def _node(traceback: TracebackType | None) -> object:
    """The node whose protocol was called: the first frame of an object that has an Env."""
    for frame, _ in walk_tb(traceback):
        env = getattr(frame.f_locals.get("self"), "env", None)
        if env is not None and hasattr(env, "me"):
            return env.me
    return None
