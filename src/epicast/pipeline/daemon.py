"""Spark's own daemon of Python workers, whose workers do not look through all their modules after every task.

A worker collects garbage after each task, and each time visits every object of pandas, pyarrow and whatever else was
imported: three quarters of what a small task costs in Python. What is there after the first task stays anyway, so it is
set aside once. This module must import nothing that starts threads: workers are forked from it.
"""

from __future__ import annotations

import gc
from socket import socket

from pyspark import daemon

_work = daemon.worker


def worker(sock: socket, authenticated: bool) -> int:
    """One task."""
    code = _work(sock, authenticated)
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
    return code


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
