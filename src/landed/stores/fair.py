"""Shares what one claim may take among the tenants: whose turn it is, and how much for each.

Tenants take turns in the order of their names, and a claim begins where the last one ended; within
a tenant the oldest goes first. So one with a hundred thousand records left delays another's single
one by a claim at most, or by as many as there are tenants for the places of one claim.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

Left = tuple[str, str, int]  # Of a record that was left: its id, its tenant, when it was made.


@dataclass(slots=True, eq=False)
class Turns:
    """Where the next claim of one store begins: with the tenant `since`, or the next there is."""

    since: str = ""

    def take(self, found: Iterable[str], limit: int) -> list[str]:
        """Return whose turn it is, at most `limit`, of tenants in the order from `since` round."""
        *turn, following = [*dict.fromkeys(found), ""]
        if len(turn) > limit:
            turn, following = turn[:limit], turn[limit]
        self.since = following
        return turn


@dataclass(slots=True, eq=False)
class Picking:
    """What one claim takes: equal shares, and what some leave of theirs goes to the others."""

    tenants: list[str]
    limit: int
    share: int = 0
    left: dict[str, list[Left]] = field(default_factory=dict[str, list[Left]])

    def __post_init__(self) -> None:
        if self.tenants:
            self.share = -(-self.limit // len(self.tenants))

    def take(self, rows: Iterable[Left]) -> bool:
        """Take the oldest `share` of each of `tenants`; return whether more has to be asked for."""
        for tenant in self.tenants:
            self.left[tenant] = []
        for row in sorted(rows, key=_made):
            if len(of := self.left[row[1]]) < self.share:
                of.append(row)
        missing = self.limit - sum(map(len, self.left.values()))
        self.tenants = [one for one in self.tenants if len(self.left[one]) == self.share]
        if missing <= 0 or not self.tenants:
            return False
        self.share += -(-missing // len(self.tenants))
        return True

    @property
    def picked(self) -> list[str]:
        """The ids of what is taken, the oldest first."""
        ranked = [(rank, row) for of in self.left.values() for rank, row in enumerate(of)]
        chosen = sorted(ranked, key=_in_turn)[: self.limit]
        return [id for id, _, _ in sorted((row for _, row in chosen), key=_made)]


def _made(row: Left) -> int:
    return row[2]


def _in_turn(one: tuple[int, Left]) -> tuple[int, int]:
    rank, row = one
    return rank, _made(row)
