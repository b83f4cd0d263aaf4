"""What can be set on a live node. Every limit is here, with what happens at it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from epicast.core.config import Config, Duration, PositiveDuration

Bytes = Annotated[int, msgspec.Meta(ge=1024, le=1 << 30)]
Size = Annotated[int, msgspec.Meta(ge=1, le=1 << 20)]

Policy = Literal["block", "drop-oldest", "drop-newest", "disconnect"]


class Limits(Config):
    """Of one node."""

    frame_bytes: Bytes = 1 << 20  # a longer frame ends the connection
    message_bytes: Bytes = 1 << 26  # of a published payload; above, an error at the publisher
    fragment_bytes: Bytes = 1 << 18  # a longer payload is split into pieces of this size
    header_bytes: Bytes = 1 << 14  # of the headers of a message; above, an error at the publisher
    reassembly_bytes: Bytes = 1 << 27  # of messages that are not whole yet; at the cap the oldest is given up
    reassembly_us: PositiveDuration = 30_000_000  # a message not whole by then is given up

    peer_queue_bytes: Bytes = 1 << 25  # waiting for one peer; above, it is cut as too slow
    peer_queue_high_bytes: Bytes = 1 << 20  # above, publishers wait, and relays stop reading from whom it comes
    lag_us: PositiveDuration = 1_500_000  # who needs longer for what waits for it, while others keep up, is slow
    slow_us: PositiveDuration = 5_000_000  # a peer that is slow for so long is cut
    stall_us: PositiveDuration = 5_000_000  # so is one that takes nothing for so long while bytes wait for it

    local_sockets: bool = True  # links within this machine are Unix sockets (Linux, without TLS), which are quicker
    local_socket_bytes: Bytes = 1 << 19  # what the system may hold on such a link; by TCP, a quarter of it more to send

    connections: Size = 1024  # further ones are refused
    handshakes: Size = 256  # under way at a time; further ones are closed at once
    handshakes_per_address: Size = 64
    handshake_bytes: Bytes = 4096
    handshake_us: PositiveDuration = 5_000_000
    idle_us: PositiveDuration = 15_000_000  # a connection that nobody holds and nobody uses is closed
    backoff_us: PositiveDuration = 200_000  # after a failed connection; doubles with each, with jitter
    backoff_max_us: PositiveDuration = 10_000_000
    seeds_us: PositiveDuration = 20_000_000  # how often a seed is looked up again once we have neighbours

    far_delay_us: Duration = 0  # what goes to other areas is held back for so long, to try out long distances

    subscriber_messages: Size = 65_536  # waiting for one subscriber; above, its policy says what happens
    subscriber_bytes: Bytes = 1 << 26
    subscriptions: Size = 4096

    def check(self) -> None:
        from epicast.core.errors import ConfigError

        if self.peer_queue_high_bytes >= self.peer_queue_bytes:
            raise ConfigError("peer_queue_high_bytes: expected less than peer_queue_bytes")
        if self.fragment_bytes + 4096 > self.frame_bytes:
            raise ConfigError("fragment_bytes: expected at least 4096 less than frame_bytes")
