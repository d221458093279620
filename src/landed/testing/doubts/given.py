"""The far sides of these scenarios in a line each: how they are set, and what goes wrong there."""

from collections.abc import Callable, Mapping
from typing import Any

from landed.core.tool import Tool
from landed.testing.doubts.places import Bank, Place, Wallet
from landed.testing.sim import World
from landed.testing.worlds.chain import Chain
from landed.testing.worlds.faults import Fault, Kind
from landed.testing.worlds.payments import Payments


def on_refund(kind: Kind, **more: Any) -> Fault:
    """Return what happens to one request for a refund."""
    return Fault(path="/refunds", kind=kind, **more)


LOST = (on_refund("lose_reply"),)


def no_lookup(times: int | None) -> tuple[Fault, ...]:
    """Return the faults of a service that cannot be asked `times` times, or (None) never."""
    every = [None] if times is None else [*range(1, times + 1)]
    return tuple(Fault(path="/keys/*", method="GET", nth=nth, kind="drop") for nth in every)


def bank(
    *faults: Fault,
    reads: str = "",
    promises: Mapping[str, object] | None = None,
    around: Callable[[Tool], Tool] = lambda tool: tool,
    **settings: Any,
) -> Callable[[World], Place]:
    """Return what makes a payments service with these faults and settings."""

    def made(world: World) -> Place:
        return Bank(
            world=world,
            settings=Payments(**settings),
            faults=faults,
            reads=reads,
            promises=promises or {},
            around=around,
        )

    return made


def wallet(*faults: Fault, **settings: Any) -> Callable[[World], Place]:
    """Return what makes a chain with a block every 15 seconds."""
    how = Chain(block_s=15.0, **settings)
    return lambda world: Wallet(world=world, settings=how, faults=faults)
