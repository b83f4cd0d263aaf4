"""The reader of frames that live nodes use: the compiled one where it was built, else the pure one, or if
EPICAST_ENGINE says `pure`."""

from __future__ import annotations

import os

from epicast.wire import frames

FrameReader: type[frames.FrameReader] = frames.FrameReader
BUILT = 2  # goes up with every change of what the compiled parts offer
COMPILED = False  # are live nodes' compiled parts in use? They are built together
if os.environ.get("EPICAST_ENGINE") != "pure":
    try:
        from epicast.wire import _frames
    except ImportError:
        pass
    else:
        if getattr(_frames, "BUILT", 0) == BUILT:  # or an earlier install built them, from another source
            FrameReader, COMPILED = _frames.FrameReader, True
