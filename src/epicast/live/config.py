"""What can be set on a live node. Every limit is here, with what happens at it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from epicast.core.config import Config, Duration, PositiveDuration

Bytes = Annotated[int, msgspec.Meta(ge=1024, le=1 << 30)]
HeaderBytes = Annotated[int, msgspec.Meta(ge=1024, le=(1 << 16) - 1)]  # their length has two bytes in an envelope
Size = Annotated[int, msgspec.Meta(ge=1, le=1 << 20)]

DRESS_BYTES = 4096  # of a frame besides payload and headers: topic, certificate, signature, clocks
FRAGMENTS_MAX = 1 << 16  # pieces of a message
PIECE_BYTES = 256  # what a piece costs besides its content, while it waits for the others

TraceLevel = Literal["full", "deliveries"]
Policy = Literal["block", "drop-oldest", "drop-newest", "disconnect"]


class Limits(Config):
    """Of one node."""

    frame_bytes: Bytes = 1 << 20  # a longer frame ends the connection
    message_bytes: Bytes = 1 << 26  # of a published payload; above, an error at the publisher
    fragment_bytes: Bytes = 1 << 18  # a longer payload is split into pieces of this size
    header_bytes: HeaderBytes = 1 << 14  # of the headers of a message; above, an error at the publisher
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
    first_us: PositiveDuration = (
        5_000_000  # a node among its own seeds that hears of no other process for so long is the first
    )

    far_delay_us: Duration = 0  # what goes to other areas is held back for so long, to try out long distances

    subscriber_messages: Size = 65_536  # waiting for one subscriber; above, its policy says what happens
    subscriber_bytes: Bytes = 1 << 26
    subscriptions: Size = 4096

    def check(self) -> None:
        from epicast.core.errors import ConfigError

        if self.peer_queue_high_bytes >= self.peer_queue_bytes:
            raise ConfigError("peer_queue_high_bytes: expected less than peer_queue_bytes")
        if self.fragment_bytes + self.header_bytes + DRESS_BYTES > self.frame_bytes:
            raise ConfigError(
                f"fragment_bytes: expected at least {DRESS_BYTES} + header_bytes = {DRESS_BYTES + self.header_bytes} "
                "less than frame_bytes"
            )
        if self.message_bytes > self.fragment_bytes * FRAGMENTS_MAX:
            raise ConfigError(f"message_bytes: expected at most {FRAGMENTS_MAX} times fragment_bytes")
        if self.message_bytes + -(-self.message_bytes // self.fragment_bytes) * PIECE_BYTES > self.reassembly_bytes:
            raise ConfigError(
                f"reassembly_bytes: expected at least message_bytes, and {PIECE_BYTES} more for each of its pieces"
            )
