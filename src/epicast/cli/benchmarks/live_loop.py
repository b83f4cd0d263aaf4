"""The event loop of a worker process: uvloop where it is installed, the same for every system."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any


def run(main: Coroutine[Any, Any, None]) -> None:
    gc.freeze()  # what was imported is no garbage, and need not be looked at again
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        runner.run(main)


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
