"""What is asked for in a chaos run: scripts of verbs as values, the same for the same seed."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

TENANTS = 3
SHARED_SESSIONS = 8
ORDERS_MAX = 400
CENTS_MAX = 9_999
PAID_CENTS = 10**12  # No order is ever paid back in full: a refusal here would prove nothing.


class Do(StrEnum):
    """What a script does; each is carried out by one function of `chaos.acting`."""

    REFUND = "refund"
    SHARED = "shared"
    LET_GO = "let_go"
    PLAN = "plan"
    REVISE = "revise"
    UNDO = "undo"
    STOP = "stop"


# How often each is drawn, and how many operations it comes to when nothing goes wrong.
_DRAWN: Mapping[Do, tuple[int, int]] = {
    Do.REFUND: (8, 1),
    Do.SHARED: (4, 1),
    Do.LET_GO: (4, 1),
    Do.PLAN: (6, 3),
    Do.REVISE: (5, 3),
    Do.UNDO: (4, 4),
    Do.STOP: (3, 3),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One thing that one user wants.

    `number` counts from 0, `session` and `tenant` say where it is asked for. `orders` are the
    orders that it may refund, `cents` how much, `after_s` the moment at which a change of mind
    comes (seconds after the first call). `hard` says how it is stopped.
    """

    number: int
    do: Do
    tenant: str
    session: str
    orders: tuple[str, ...]
    cents: int
    after_s: float
    hard: bool

    def mark(self, call: str) -> str:
        """Return what a call of this script is known by in the services' own ledgers."""
        return f"{self.number}.{call}"

    @property
    def operations(self) -> int:
        """How many operations it comes to when nothing goes wrong."""
        return _DRAWN[self.do][1]


def scripts(*, seed: int, operations: int) -> tuple[Script, ...]:
    """Return scripts that come to at least so many operations; the same for the same arguments."""
    return tuple(_drawn(random.Random(seed), operations))


def order_names(operations: int) -> tuple[str, ...]:
    """Return the orders of a load: few enough that some scripts meet at one."""
    return tuple(f"O{n}" for n in range(max(8, min(ORDERS_MAX, operations // 25))))


def _drawn(chance: random.Random, operations: int) -> Iterator[Script]:
    orders = order_names(operations)
    number, left = 0, operations
    while left > 0:
        (do,) = chance.choices(tuple(_DRAWN), [weight for weight, _ in _DRAWN.values()])
        own = f"s{number}"
        shared = f"shared-{chance.randrange(SHARED_SESSIONS)}"
        script = Script(
            number=number,
            do=do,
            tenant=f"t{chance.randrange(TENANTS)}",
            session=shared if do is Do.SHARED else own,
            orders=tuple(chance.sample(orders, 2)),
            cents=chance.randint(1, CENTS_MAX),
            after_s=chance.random() * 0.6,
            hard=chance.random() < 0.5,
        )
        yield script
        left -= script.operations
        number += 1
