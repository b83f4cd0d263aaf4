"""The documentation names every setting with its default, every message, every column; and what it points at exists."""

import re
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from epicast.core.config import Config, field_types, parse_duration_us
from epicast.core.records import Kind
from epicast.dissemination.balls import Balls, BallsConfig
from epicast.dissemination.brisa import Brisa, BrisaConfig
from epicast.dissemination.emergent import Emergent, EmergentConfig
from epicast.dissemination.flood import Flood, FloodConfig
from epicast.dissemination.gaps import Gaps, GapsConfig
from epicast.dissemination.gossip import Gossip, GossipConfig
from epicast.live.config import Limits
from epicast.membership.clon import Clon, ClonConfig
from epicast.membership.cyclon import Cyclon, CyclonConfig
from epicast.membership.hyparview import HyParView, HyParViewConfig
from epicast.membership.scamp import Scamp, ScampConfig
from epicast.ordering.by_topic import ByTopicConfig
from epicast.ordering.causal import Causal, CausalConfig
from epicast.ordering.epto import EptoConfig
from epicast.ordering.epto_ids import EptoIdsConfig
from epicast.ordering.fifo import Fifo, FifoConfig
from epicast.sim.fault_schedule import FaultConfig
from epicast.sim.latency import MODELS
from epicast.sim.network import NetworkConfig
from epicast.sim.scenario import JoinsConfig, Scenario
from epicast.sim.summary import Summary
from epicast.sim.workload import WorkloadConfig
from epicast.trace.schema import KIND_TEXTS, TABLES, TEXT
from tests.tidy.commands import documents
from tests.tidy.source import ROOT, shown

Rows = list[list[str]]
SIMULATOR = ROOT / "docs" / "simulator.md"
HYPARVIEW, SCAMP, CYCLON, CLON, BRISA, FLOOD, GOSSIP, EMERGENT, EPTO, FIFO, CAUSAL = (
    ROOT / "docs" / "protocols" / f"{name}.md"
    for name in (
        *("hyparview", "scamp", "cyclon", "clon", "brisa", "flood", "gossip", "emergent"),
        *("epto", "fifo", "causal"),
    )
)
CONFIGS: list[tuple[type[Config], Path]] = [
    (GapsConfig, ROOT / "docs" / "orders.md"),
    (Scenario, SIMULATOR),
    (JoinsConfig, SIMULATOR),
    (NetworkConfig, SIMULATOR),
    (WorkloadConfig, SIMULATOR),
    (FaultConfig, SIMULATOR),
    (Limits, ROOT / "docs" / "live.md"),
    (HyParViewConfig, HYPARVIEW),
    (ScampConfig, SCAMP),
    (CyclonConfig, CYCLON),
    (ClonConfig, CLON),
    (BrisaConfig, BRISA),
    (FloodConfig, FLOOD),
    (GossipConfig, GOSSIP),
    (EmergentConfig, EMERGENT),
    (BallsConfig, EPTO),
    (EptoConfig, EPTO),
    (EptoIdsConfig, EPTO),
    (FifoConfig, FIFO),
    (CausalConfig, CAUSAL),
    (ByTopicConfig, ROOT / "docs" / "orders.md"),
]
PROTOCOLS: list[tuple[Any, Path]] = [
    (Fifo, FIFO),
    (Causal, CAUSAL),
    (Gaps, ROOT / "docs" / "orders.md"),
    (HyParView, HYPARVIEW),
    (Scamp, SCAMP),
    (Cyclon, CYCLON),
    (Clon, CLON),
    (Brisa, BRISA),
    (Flood, FLOOD),
    (Gossip, GOSSIP),
    (Emergent, EMERGENT),
    (Balls, EPTO),
]


def table(text: str, name: str) -> Rows:
    """The rows of the table that follows `<!-- name -->`, without their heading; bare of back-quotes."""
    match = re.search(rf"^<!-- {re.escape(name)} -->\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert match, f"no table after <!-- {name} -->"
    rows = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in match[1].splitlines()]
    return rows[2:]


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


# Settings


@pytest.mark.parametrize(("config", "document"), CONFIGS, ids=lambda value: getattr(value, "__name__", ""))
def test_every_setting_is_documented_with_its_default(config: type[Config], document: Path) -> None:
    documented = {row[0]: row[1] for row in table(read(document), f"keys: {config.__name__}")}
    known = {field.name: field for field in msgspec.structs.fields(config)}
    assert list(documented) == list(known)
    wrong = {key: cell for key, cell in documented.items() if not means(cell, known[key])}
    assert not wrong, f"defaults that are others in the code: {wrong}"


def means(cell: str, field: msgspec.structs.FieldInfo) -> bool:
    """Does the text of a cell stand for the default of the field?"""
    if field.required:
        return cell == "required"
    default = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    if isinstance(default, Config):
        return cell == "a table"
    if default in (None, (), {}, ""):
        return cell == "nothing"
    if isinstance(default, bool):
        return cell == str(default).lower()
    if isinstance(default, str):
        return cell == f'"{default}"'
    if field.name.endswith("_us") and default:
        return bool(parse_duration_us(cell) == default)
    if isinstance(default, tuple):
        return cell == ", ".join(map(str, default))
    return bool(float(cell.replace(",", "")) == default)


def test_a_default_is_recognised() -> None:
    class Example(Config):
        name: str
        period_us: int = 1_500_000
        count: int = 65_536
        on: bool = True

    name, period_us, count, on = msgspec.structs.fields(Example)
    assert means("required", name)
    assert means("1.5s", period_us)
    assert not means("1s", period_us)
    assert means("65,536", count)
    assert means("true", on)


def test_every_latency_model_is_documented() -> None:
    assert [row[0] for row in table(read(SIMULATOR), "latency models")] == list(MODELS)


def test_every_kind_of_fault_is_documented() -> None:
    kinds = get_args(field_types(FaultConfig)["kind"])
    assert tuple(row[0] for row in table(read(SIMULATOR), "fault kinds")) == kinds


# Messages


@pytest.mark.parametrize(("protocol", "document"), PROTOCOLS, ids=lambda value: getattr(value, "__name__", ""))
def test_every_message_is_documented_with_its_fields(protocol: Any, document: Path) -> None:
    found = [(name, tag, re.findall(r"\w+", fields)) for name, tag, fields, *_ in table(read(document), "messages")]
    expected = [
        (kind.__name__, str(kind.__struct_config__.tag), list(kind.__struct_fields__)) for kind in protocol.handles
    ]
    assert found == expected


# The trace and the summary


@pytest.mark.parametrize("name", TABLES)
def test_every_column_of_the_trace_is_documented_with_its_type(name: str) -> None:
    found = [tuple(row[:2]) for row in table(read(SIMULATOR), f"columns: {name}")]
    assert found == [(column.name, "string" if column.type == TEXT else str(column.type)) for column in TABLES[name]]


def test_every_kind_of_row_is_documented_with_its_level() -> None:
    found = [tuple(row[:2]) for row in table(read(SIMULATOR), "kinds of rows")]
    assert found == [(text, "full" if code < Kind.PUBLISH else "deliveries") for code, text in KIND_TEXTS.items()]


def test_every_number_of_a_summary_is_documented() -> None:
    assert [row[0] for row in table(read(SIMULATOR), "fields: Summary")] == [field.name for field in fields(Summary)]


def test_every_target_of_the_benchmark_has_its_row() -> None:
    targets = import_module("epicast.cli.benchmarks.verdict").TARGETS
    assert [row[0] for row in table(read(SIMULATOR), "bench")] == list(targets)


# What the documents point at


def test_links_lead_somewhere() -> None:
    dead = [
        f"{shown(path)}: {target}"
        for path in documents(ROOT)
        for target in re.findall(r"\]\(([^)\s]+)\)", read(path))
        if "://" not in target and not (path.parent / target.partition("#")[0]).exists()
    ]
    assert not dead, "\n" + "\n".join(dead)


def test_headings_that_are_linked_exist() -> None:
    dead = [
        f"{shown(path)}: {target}#{anchor}"
        for path in documents(ROOT)
        for target, anchor in re.findall(r"\]\(([^)\s#:]*)#([\w-]+)\)", read(path))
        if anchor not in anchors(read(path.parent / target if target else path))
    ]
    assert not dead, "\n" + "\n".join(dead)


def anchors(text: str) -> list[str]:
    """As forges make them: lower case, blanks as hyphens, no punctuation."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_tests_that_are_named_exist() -> None:
    source = "\n".join(read(path) for path in (ROOT / "tests").rglob("test_*.py"))
    known = set(re.findall(r"^def (test_\w+)", source, re.MULTILINE))
    named = {
        (shown(path), name) for path in documents(ROOT) for name in re.findall(r"`(test_\w+)`(?!\.py)", read(path))
    }
    assert {each for each in named if each[1] not in known} == set()


def test_files_that_are_named_exist() -> None:
    pattern = re.compile(r"`((?:src|tests|docs|requirements)/[\w./-]*\w)`")
    missing = {
        (shown(path), name)
        for path in documents(ROOT)
        for name in pattern.findall(read(path))
        if not (ROOT / name).exists()
    }
    assert missing == set()


def test_every_family_of_tests_is_explained() -> None:
    families = {path.name for path in (ROOT / "tests").iterdir() if any(path.rglob("*.py"))}
    text = read(ROOT / "docs" / "hacking.md")
    assert {family for family in families if f"| `tests/{family}` |" not in text} == set()


def test_documents_that_are_named_by_number_are_in_the_bibliography() -> None:
    listed = set(re.findall(r"^\| (\d{3}) \|", read(ROOT / "docs" / "bibliography.md"), re.MULTILINE))
    named = {
        (shown(path), number)
        for path in documents(ROOT)
        for number in re.findall(r"\b[Dd]ocument (\d{3})\b", " ".join(read(path).split()))
    }
    assert named
    assert {each for each in named if each[1] not in listed} == set()
    assert listed == {"000", "001", "002", "003", "004"}
