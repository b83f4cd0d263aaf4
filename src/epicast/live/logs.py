"""What a node says on stderr while it runs: lines for people, or one JSON object a line for programs."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime

LOGGER = "epicast"


class TextLines(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%Y-%m-%d %H:%M:%S")


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


FORMATS: dict[str, type[logging.Formatter]] = {"text": TextLines, "json": JsonLines}


def log_to_stderr(form: str = "text", level: int = logging.INFO) -> None:
    """From now on, in place of what was set before."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(FORMATS[form]())
    logger = logging.getLogger(LOGGER)
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False


def tried(call: Callable[[], None]) -> None:
    """One step of several that shall all be taken: if it fails, that is logged."""
    try:
        call()
    except Exception:
        logging.getLogger(LOGGER).exception("%s failed, and the node goes on", call.__qualname__)
