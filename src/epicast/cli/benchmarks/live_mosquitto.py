"""MQTT: mosquitto, and paho, which is driven by the event loop of the process.

paho reads a message with a handful of calls, whatever drives it. Threads of its own would fight for the interpreter,
and aiomqtt puts a queue on top of it; so the loop calls it whenever its socket is readable, and again while that brings
messages. Quality of service 0, the fastest: a message is sent once and not acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from socket import IPPROTO_TCP, TCP_NODELAY, socket
from typing import Any, cast

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion

from epicast.cli.benchmarks.live_job import TOPIC, Task
from epicast.cli.benchmarks.live_systems import Take

PACED = True  # what does not fit into the queue of a subscriber is thrown away
KEEP_ALIVE_S = 3600
READS_MAX = 64  # at a time, so that others get their turn


def server_arguments(folder: Path, port: int) -> list[str]:
    """Without a limit on what waits for a subscriber: the benchmark sees to that."""
    config = folder / "mosquitto.conf"
    lines = (
        f"listener {port} 127.0.0.1",
        "allow_anonymous true",
        "persistence false",
        "set_tcp_nodelay true",
        "max_queued_messages 0",
        "max_queued_bytes 0",
        "log_type error",
    )
    config.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return ["-c", str(config)]


class Connection:
    """A client that the event loop drives."""

    def __init__(self, address: str) -> None:
        host, _, port = address.partition(":")
        self.client = Client(CallbackAPIVersion.VERSION2)
        self.connected, self.subscribed = asyncio.Event(), asyncio.Event()
        self.client.on_connect = lambda *_: self.connected.set()
        self.client.on_subscribe = lambda *_: self.subscribed.set()
        self.received = 0
        self.client.connect(host, int(port), KEEP_ALIVE_S)
        self.socket = cast(socket, self.client.socket())
        self.socket.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)  # paho leaves it, and then a message may wait for 40 ms
        self.loop = asyncio.get_running_loop()
        self.loop.add_reader(self.socket, self._on_readable)

    def _on_readable(self) -> None:
        for _ in range(READS_MAX):
            before = self.received
            self.client.loop_read()
            if self.received == before:
                return

    async def subscribe(self, take: Take) -> None:
        def on_message(_client: Client, _data: Any, message: MQTTMessage) -> None:
            self.received += 1
            take(message.payload)

        self.client.on_message = on_message
        self.client.subscribe(TOPIC)
        await self.subscribed.wait()

    async def writable(self) -> None:
        future = self.loop.create_future()
        self.loop.add_writer(self.socket, future.set_result, None)
        try:
            await future
        finally:
            self.loop.remove_writer(self.socket)

    def close(self) -> None:
        self.loop.remove_reader(self.socket)
        self.client.disconnect()


class MqttPublisher:
    def __init__(self, address: str, connection: Connection) -> None:
        self.address, self.connection = address, connection

    async def publish(self, payloads: Sequence[bytes]) -> None:
        client = self.connection.client
        for payload in payloads:
            client.publish(TOPIC, payload)
        while client.want_write():
            await self.connection.writable()
            client.loop_write()


@asynccontextmanager
async def publisher(task: Task) -> AsyncIterator[MqttPublisher]:
    async with _connection(task.address) as connection:
        yield MqttPublisher(task.address, connection)


@asynccontextmanager
async def subscriber(task: Task, take: Take) -> AsyncIterator[None]:
    async with _connection(task.address) as connection:
        await connection.subscribe(take)
        yield


@asynccontextmanager
async def _connection(address: str) -> AsyncIterator[Connection]:
    connection = Connection(address)
    try:
        await connection.connected.wait()
        yield connection
    finally:
        connection.close()
