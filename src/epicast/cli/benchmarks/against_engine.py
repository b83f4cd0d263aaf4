"""`epicast bench engine --against`: whole simulations through `epicast.simulate`, which every version has."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

DELAY = "uniform 10ms 100ms"
DATAGRAMS = {"transport": "datagram", "tick_us": 100}
IN_HASTE = {"interval_us": 1_000}  # joins: an overlay of 10,000 is up after ten virtual seconds


class Run(msgspec.Struct, frozen=True):
    """With so many messages that building the overlay is the smaller part."""

    kind: str
    stack: str
    nodes: int
    messages: int

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.nodes:,} nodes"

    @property
    def settings(self) -> dict[str, Any]:
        network = DATAGRAMS if self.kind == "flood" else {}
        return {
            "stack": self.stack,
            "nodes": self.nodes,
            "messages": self.messages,
            "rate": 20,
            "payload": 100,
            "latency": DELAY,
            "network": network,
            "joins": IN_HASTE,
            "warmup_us": 5_000_000,
            "drain_us": 5_000_000,
        }


class Used(msgspec.Struct, frozen=True):
    cpu_seconds: float
    deliveries: int


RUNS = (
    Run("flood", "static-flood", 1_000, 300),
    Run("flood", "static-flood", 10_000, 40),
    Run("brisa", "brisa", 1_000, 300),
    Run("brisa", "brisa", 10_000, 100),
)
LARGE = Run("flood", "static-flood", 100_000, 4)  # without --quick


def main() -> None:
    """In a process of its own."""
    from time import process_time

    import epicast

    run = msgspec.json.decode(sys.argv[1], type=Run)
    epicast.simulate(**{**run.settings, "nodes": 10, "messages": 1})  # everything is imported
    before = process_time()
    summary = epicast.simulate(**run.settings)
    print(msgspec.json.encode(Used(process_time() - before, summary.deliveries)).decode())


if __name__ == "__main__":
    main()
