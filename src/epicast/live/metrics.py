"""Metrics of a node for Prometheus. They are counted anyway; a scrape reads them.

`METRICS` says which there are. Labels are bounded: neighbours are few, and of the reasons that peers can make up
only the most frequent are told apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from epicast.core.errors import EpicastError
from epicast.live.status import counted, status

if TYPE_CHECKING:
    from epicast.live.node import Node

REASONS_MAX = 20
REASON_LENGTH_MAX = 60
OTHER = "other"


class Metric(NamedTuple):
    name: str  # as it is scraped
    text: str
    label: str = ""
    counted_as: str = ""  # the node's counter, or the beginning of the names of several, of which the rest is the label

    @property
    def counter(self) -> bool:
        return self.name.endswith("_total")


METRICS = (
    Metric("epicast_node_info", "Always 1; the labels say id, address, cluster, stack, area and version", "several"),
    Metric("epicast_start_time_seconds", "When the process started, Unix time"),
    Metric("epicast_joined", "1 if the node has neighbours, or is the first and needs none"),
    Metric("epicast_neighbours", "Processes in the active view whose connection is up"),
    Metric("epicast_connections", "Connections that are up, to neighbours and others"),
    Metric("epicast_known_processes", "Processes in the passive view"),
    Metric("epicast_neighbour_round_trip_seconds", "Of keep-alives, smoothed", "peer"),
    Metric("epicast_neighbour_queue_bytes", "Waiting to be written", "peer"),
    Metric("epicast_neighbour_sent_bytes_total", "Written to the connection", "peer"),
    Metric("epicast_neighbour_received_bytes_total", "Read from the connection", "peer"),
    Metric("epicast_sent_bytes_total", "Written to all connections: to the own area (near) or others (far)", "area"),
    Metric("epicast_published_messages_total", "Published here", counted_as="published"),
    Metric("epicast_delivered_messages_total", "New here, one's own included", counted_as="delivered"),
    Metric("epicast_duplicates_total", "Payloads that were here already", counted_as="duplicates"),
    Metric("epicast_dropped_messages_total", "Messages of any kind that went nowhere", "reason", "dropped: "),
    Metric("epicast_given_up_messages_total", "Messages with pieces that never came", "reason", "messages given up: "),
    Metric("epicast_gaps_total", "Times that messages were given up: no neighbour has them", counted_as="record gap"),
    Metric("epicast_subscriptions", "Open subscriptions"),
    Metric("epicast_subscriber_waiting_messages", "In the queues of all subscribers"),
    Metric("epicast_subscriber_lost_messages_total", "Lost by slow subscribers", counted_as="lost by subscribers"),
    Metric("epicast_subscriptions_failed_total", "Ended by an error of their own", counted_as="subscriptions failed"),
    Metric("epicast_congested", "1 while publishers wait for a neighbour"),
    Metric("epicast_reassembly_bytes", "Of messages in pieces that are not whole yet"),
    Metric("epicast_flows", "Trees that this process is part of"),
    Metric("epicast_flows_without_parent", "Trees in which this process has no parent and might have one"),
    Metric("epicast_parent_changes_total", "New parents, lost ones included", counted_as="record parent"),
    Metric("epicast_repairs_total", "Parents that were found again", counted_as="record repair"),
    Metric("epicast_links_up_total", "Links that a protocol holds and that came up", counted_as="record link_up"),
    Metric("epicast_links_down_total", "Links that a protocol holds and that went", counted_as="record link_down"),
    Metric("epicast_connections_ended_total", "Connections that ended", "reason", "ended: "),
    Metric("epicast_connections_refused_total", "Connections beyond the limits", counted_as="connections refused"),
    Metric("epicast_greetings_refused_total", "Processes that do not belong here", "reason", "refused: "),
    Metric("epicast_dials_failed_total", "Connections that did not come about", counted_as="dials failed"),
    Metric("epicast_dials_refused_total", "Not made: a peer named too many processes", counted_as="dials refused"),
    Metric("epicast_handshakes_failed_total", "Connections that ended ungreeted", counted_as="handshakes failed"),
    Metric("epicast_slow_peers_cut_total", "Peers that did not take what was sent", counted_as="slow peers cut"),
    Metric("epicast_nonsense_total", "Peers that sent what is no message", counted_as="nonsense"),
    Metric(
        "epicast_membership_messages_refused_total",
        "Sent by peers that send too many",
        counted_as="membership messages refused",
    ),
    Metric("epicast_peers_held_back_total", "Turns that a peer lost to its own upkeep", counted_as="peers held back"),
    Metric("epicast_protocol_nonsense_total", "Messages that made no sense", counted_as="record nonsense"),
    Metric("epicast_bad_envelopes_total", "Payloads that could not be opened", counted_as="bad envelopes"),
    Metric("epicast_bad_signatures_total", "Messages whose signature is not good", counted_as="bad signatures"),
    Metric("epicast_replays_total", "Signed messages that came before", counted_as="replays"),
    Metric("epicast_trace_rows_lost_total", "Rows of the trace for which there was no room"),
)  # fmt: skip

Samples = list[tuple[str, float]]  # label and value


def samples(node: Node) -> dict[str, Samples]:
    """By the name of the metric. The info is not among them."""
    told, counts = status(node), counted(node)
    found = {metric.name: _counted(counts, metric) for metric in METRICS if metric.counted_as}
    found.update({name: [("", float(value))] for name, value in _gauges(told).items()})
    for name, key, scale in _NEIGHBOUR:
        rows = [(each["id"], each[key]) for each in told["neighbours"] if each["up"] and each[key] is not None]
        found[name] = [(peer, value * scale) for peer, value in rows]
    found["epicast_sent_bytes_total"] = list(told["sent_bytes"].items())
    if told["trace"] is not None:
        found["epicast_trace_rows_lost_total"] = [("", told["trace"]["rows_lost"])]
    return found


_NEIGHBOUR = (
    ("epicast_neighbour_round_trip_seconds", "round_trip_ms", 1e-3),
    ("epicast_neighbour_queue_bytes", "queue_bytes", 1),
    ("epicast_neighbour_sent_bytes_total", "sent_bytes", 1),
    ("epicast_neighbour_received_bytes_total", "received_bytes", 1),
)


def _gauges(told: Mapping[str, Any]) -> dict[str, float]:
    queues = told["queues"]
    return {
        "epicast_start_time_seconds": told["started_us"] / 1e6,
        "epicast_joined": told["joined"],
        "epicast_neighbours": sum(each["up"] for each in told["neighbours"]),
        "epicast_connections": told["connections"],
        "epicast_known_processes": len(told["known"]),
        "epicast_subscriptions": told["subscriptions_total"],
        "epicast_subscriber_waiting_messages": queues["subscribers_messages"],
        "epicast_congested": queues["congested"],
        "epicast_reassembly_bytes": queues["reassembly_bytes"],
        "epicast_flows": told["flows_total"],
        "epicast_flows_without_parent": told["flows_without_parent"],
    }


def _counted(counters: Mapping[str, int], metric: Metric) -> Samples:
    if not metric.label:
        return [("", counters.get(metric.counted_as, 0))]
    reasons: Counter[str] = Counter()
    for name, count in counters.items():
        if name.startswith(metric.counted_as):
            reasons[_reason(name.removeprefix(metric.counted_as))] += count
    told = reasons.most_common(REASONS_MAX)
    rest = reasons.total() - sum(count for _, count in told)
    return [*told, (OTHER, rest)] if rest else list(told)


def _reason(text: str) -> str:
    """Up to the first colon: behind it are particulars."""
    head = text.partition(":")[0][:REASON_LENGTH_MAX]
    return "".join(letter if letter.isprintable() else "?" for letter in head) or OTHER


def exposition(node: Node, accept: str = "") -> tuple[str, bytes]:
    """The content type that suits the scraper, and the text."""
    try:
        from prometheus_client import CollectorRegistry, ProcessCollector
        from prometheus_client.exposition import choose_encoder
    except ImportError:
        raise EpicastError("metrics are not installed: pip install 'epicast[live]'") from None
    from epicast.live.collector import NodeCollector

    registry = CollectorRegistry(auto_describe=False)
    registry.register(NodeCollector(node))
    ProcessCollector(registry=registry)
    encode, content_type = choose_encoder(accept)
    return content_type, encode(registry)


def names(metrics: Iterable[Metric] = METRICS) -> list[str]:
    return [metric.name for metric in metrics]
