"""Plays a world into a run folder that keeps what happened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epicast.sim.summary import Summary
    from epicast.sim.world import Progress, World


def play_into(
    folder: Path,
    world: World,
    command: Sequence[str],
    *,
    clock: Callable[[], float] | None = None,
    on_progress: Progress | None = None,
    overwrite: bool = False,
) -> Summary:
    """The run folder is complete only if the run came to its end: whatever happens, it never lies about that."""
    from epicast.trace.run import RunFolder

    open_run = RunFolder.create(
        folder,
        scenario=world.scenario.as_dict(),
        scenario_text=world.scenario.to_toml(),
        seed=world.seed,
        level=world.engine.level,
        engine="compiled" if world.engine.compiled else "pure",
        command=command,
        promises=world.stack.promises,
        overwrite=overwrite,
    )
    with open_run as run:
        world.sinks.append(run.events(world.names).write)
        world.on_snapshot = run.write_snapshot
        summary = world.run(clock, on_progress)
        run.write_nodes(world.nodes_table())
        if summary.interrupted:
            run.fail("interrupted")
        else:
            run.finish(summary.as_dict(), summary.trace_digest or "")
    return summary
