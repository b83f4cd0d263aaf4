"""The reader of frames that live nodes use: the compiled one where it was built, else the pure one, or if
EPICAST_ENGINE says `pure`."""

from __future__ import annotations

import os

from epicast.wire import frames

FrameReader: type[frames.FrameReader] = frames.FrameReader
COMPILED = False  # are live nodes' compiled parts in use? They are built together
if os.environ.get("EPICAST_ENGINE") != "pure":
    try:
        from epicast.wire import _frames
    except ImportError:
        pass
    else:
        if hasattr(_frames.FrameReader, "go_on"):  # or an earlier install built it, from another source
            FrameReader, COMPILED = _frames.FrameReader, True
