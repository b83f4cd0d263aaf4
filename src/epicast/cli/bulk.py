"""`epicast bulk`: how balls and bins do in systems that are too large for the event engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from epicast.cli.options import option
from epicast.core.errors import ConfigError, EpicastError

if TYPE_CHECKING:
    from epicast.sim.bulk.sizes import Size, SizesConfig

SIZES = "100,1000,10000,100000,1000000"


def bulk(
    nodes: Annotated[
        str, option("System", "N,N,...", "How many processes; several sizes, with commas between.")
    ] = SIZES,
    period: Annotated[str, option("System", "TIME", "Of a round.")] = "125ms",
    c: Annotated[float, option("System", "C", "An event is passed on for C log2 N rounds.", "--c")] = 1.25,
    go_on: Annotated[
        bool,
        option("System", None, "Pass an event on also in a round that brought a copy of the last round.", "--go-on"),
    ] = False,
    payload: Annotated[int, option("System", "BYTES", "The size of a message.")] = 1000,
    entry_bytes: Annotated[int, option("System", "BYTES", "What a ball holds of an event besides its payload.")] = 40,
    latency: Annotated[str, option("Network", "MODEL", "constant, uniform or quantiles.")] = "quantiles planetlab-epto",
    loss: Annotated[float, option("Network", "SHARE", "Of transmissions that are lost.")] = 0.0,
    seeds: Annotated[int, option("Run", "N", "How many events at each size, each with a seed of its own.")] = 5,
    seed: Annotated[int, option("Run", "N", "The first of the seeds. Same seeds, same numbers.")] = 7,
    out: Annotated[Path | None, option("Output", "FILE.html", "Write a page with figures, too.")] = None,
    as_json: Annotated[bool, option("Output", None, "Print one JSON object.", "--json")] = False,
    quiet: Annotated[bool, option("Output", None, "No progress.", "--quiet", "-q")] = False,
) -> None:
    """Spread single events by EpTO's balls and bins, among up to millions of processes.

    Tells how long an event takes until processes have it, and until they deliver it in total order with global and with
    logical clocks, and what each process sends for it. A million processes take about twenty seconds for each event.
    """
    from epicast.cli import bulk_view
    from epicast.cli.output import console, print_json
    from epicast.cli.progress import progress
    from epicast.sim.bulk.sizes import SizesConfig, measure

    settings = {"nodes": _numbers(nodes), "period_us": period, "c": c, "go_on": go_on, "payload_bytes": payload}
    settings |= {"entry_bytes": entry_bytes, "latency": latency, "loss": loss, "seeds": seeds, "seed": seed}
    config = SizesConfig.load(settings)
    write = None if out is None else _page_writer(out)
    with progress("balls and bins", quiet=quiet) as report:
        sizes = measure(config, report)
    if write is not None:
        write(config, sizes)
    if as_json:
        print_json(bulk_view.as_dict(config, sizes, out))
    else:
        console().print(bulk_view.view(config, sizes, out))


def _numbers(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise ConfigError(f"--nodes: expected whole numbers with commas between, like 100,1000; got {text!r}") from None


def _page_writer(out: Path) -> Callable[[SizesConfig, list[Size]], None]:
    """Whatever can be wrong with the page is found before the work begins."""
    from epicast.trace.files import one_line

    if out.suffix != ".html" or out.is_dir():
        raise ConfigError(f"--out: expected the name of a file that ends in .html, got {str(out)!r}")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        from epicast.cli.bulk_page import write
    except OSError as error:
        raise EpicastError(f"cannot write {out}: {one_line(error)}") from None
    except ModuleNotFoundError as error:
        raise EpicastError(f"figures need {error.name}: pip install 'epicast[pipeline]'") from None
    return partial(write, out)
