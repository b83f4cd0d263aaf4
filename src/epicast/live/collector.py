"""The metrics of a node as Prometheus' client wants them; the only module that needs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

from epicast import __version__
from epicast.live.metrics import METRICS, Metric, samples

if TYPE_CHECKING:
    from epicast.live.node import Node

Family = CounterMetricFamily | GaugeMetricFamily


class NodeCollector(Collector):
    def __init__(self, node: Node) -> None:
        self._node = node

    def collect(self) -> Iterator[Family | InfoMetricFamily]:
        yield self._info()
        found = samples(self._node)
        for metric in METRICS:
            if metric.name in found:
                family = _family(metric)
                for label, value in found[metric.name]:
                    family.add_metric([label] if metric.label else [], value)
                yield family

    def _info(self) -> InfoMetricFamily:
        node = self._node
        labels = {
            "id": node.id,
            "address": node.address,
            "cluster": node.cluster,
            "stack": node._stack.name,
            "area": node._area,
            "version": __version__,
        }
        return InfoMetricFamily("epicast_node", METRICS[0].text, value=labels)


def _family(metric: Metric) -> Family:
    make = CounterMetricFamily if metric.counter else GaugeMetricFamily
    return make(metric.name, metric.text, labels=[metric.label] if metric.label else [])
