"""The messages and settings of CLON beyond Scamp's; see `clon.py`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec

from epicast.core.config import Duration, PositiveDuration, Probability
from epicast.core.errors import ConfigError
from epicast.core.ids import NodeId, Place
from epicast.membership.distances import DISTANCE_MAX
from epicast.membership.hyparview_messages import MembershipMessage
from epicast.membership.scamp_messages import ScampConfig

WALK_MAX = 64
SHARE_BITS_MAX = 30

Wanted = Annotated[int, msgspec.Meta(ge=0, le=1024)]


class NodeInfo(MembershipMessage, tag=23):
    """How many neighbours of each kind a process has, on a walk to somebody who compares."""

    hops_left: Annotated[int, msgspec.Meta(ge=0, le=WALK_MAX)]
    counts: Annotated[tuple[Annotated[int, msgspec.Meta(ge=0)], ...], msgspec.Meta(max_length=DISTANCE_MAX + 1)]


class ContactWanted(MembershipMessage, tag=24):
    """A newcomer to everyone on its local network: who is there? Answer with a chance of one in 2 ** `rarity`."""

    local_call: ClassVar[bool] = True
    rarity: Annotated[int, msgspec.Meta(ge=0, le=SHARE_BITS_MAX)] = 0


class Contact(MembershipMessage, tag=25):
    """To a newcomer: somebody to subscribe with, the sender itself or one from farther away."""

    peer: NodeId
    place: Place


class ClonConfig(ScampConfig):
    wanted: Annotated[tuple[Wanted, ...], msgspec.Meta(min_length=1, max_length=DISTANCE_MAX + 1)] = (
        7,
        2,
    )  # by distance
    target_degree: Annotated[int, msgspec.Meta(ge=0, le=1024)] = 9  # document 001: 9 for a thousand processes
    hops_max: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 128  # of a copy; after half of them Scamp's rule decides
    # Document 001's factors on the perceived size of the view, near and far, in place of the rule of shares.
    factors: Annotated[tuple[Annotated[float, msgspec.Meta(ge=0.0, le=1000.0)], ...], msgspec.Meta(max_length=2)] = ()
    balance_interval_us: Duration = 10_000_000  # our guess; 0: degrees are left as they are
    balance_walk: Annotated[int, msgspec.Meta(ge=1, le=WALK_MAX)] = 6  # the reference's
    balance_kinds: bool = True  # a link that is given up finds a place of its own kind (E-CLON-18)
    # Ask the local network for contacts: before the seeds, or only where there are none.
    discovery: Literal["never", "first", "without-seeds"] = "never"
    discovery_wait_us: PositiveDuration = 200_000  # for answers to one call; our guess: well above a local round trip
    reply: Literal["asked", "always", "share", "size", "size-and-areas"] = "asked"  # who answers a newcomer
    reply_share: Probability = 0.05  # with `share`; document 001 looks at 5 %
    areas: Annotated[int, msgspec.Meta(ge=1)] = 5  # with `size-and-areas`
    size_offset: Annotated[float, msgspec.Meta(ge=0.0)] = 6.0  # with `size...`: the size is 10 ** (view - this)
    far_contacts: Probability = 0.5  # answers that name somebody from another area; document 001's

    def check(self) -> None:
        super().check()
        if not sum(self.wanted):
            raise ConfigError("wanted: expected at least one neighbour")
        if len(self.factors) not in (0, 2):
            raise ConfigError(f"factors: expected one for near and one for far, got {list(self.factors)}")
