# The compiled reader is the pure one to whoever calls it.
from epicast.wire.frames import FrameReader as FrameReader
from epicast.wire.frames import Run as Run
