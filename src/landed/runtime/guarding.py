"""Keeps whoever watches from doing harm: what raises is logged once, and hears nothing more."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from landed.core.absorb import Question
from landed.core.changes import Move
from landed.core.onlooker import NO_HEADERS, NOBODY, Noticed, Onlooker
from landed.core.operation import Operation
from landed.core.outcome import LookOutcome, SendOutcome
from landed.core.store import Fact

log = logging.getLogger("landed")

R = TypeVar("R")


@dataclass(slots=True, eq=False)
class Guarded(Onlooker):
    """An onlooker that may raise whatever it likes; after the first time it is left out."""

    inner: Onlooker

    def __post_init__(self) -> None:
        self.reads_every_s = self.inner.reads_every_s

    def asked(self, id: str) -> None:
        """Pass it on."""
        self._tell(lambda: self.inner.asked(id), None)

    def stored(self, moves: Sequence[Move]) -> None:
        """Pass them on."""
        self._tell(lambda: self.inner.stored(moves), None)

    def leaves(
        self, operation: Operation, question: Question | None, *, at: float
    ) -> Mapping[str, str]:
        """Pass it on; no headers where that fails."""
        return self._tell(lambda: self.inner.leaves(operation, question, at=at), NO_HEADERS)

    def came_back(
        self,
        operation: Operation,
        question: Question | None,
        outcome: SendOutcome | LookOutcome,
        *,
        at: float,
        bug: str = "",
    ) -> None:
        """Pass it on."""
        self._tell(lambda: self.inner.came_back(operation, question, outcome, at=at, bug=bug), None)

    def noticed(self, what: Noticed) -> None:
        """Pass it on."""
        self._tell(lambda: self.inner.noticed(what), None)

    def wrote(self, units: int, seconds: float) -> None:
        """Pass it on."""
        self._tell(lambda: self.inner.wrote(units, seconds), None)

    def counted(self, facts: Sequence[Fact], *, at: float) -> None:
        """Pass it on."""
        self._tell(lambda: self.inner.counted(facts, at=at), None)

    def end(self) -> None:
        """Pass it on."""
        self._tell(self.inner.end, None)

    def _tell(self, tell: Callable[[], R], otherwise: R) -> R:
        try:
            return tell()
        except Exception as error:
            log.warning("telemetry failed and is left out from now on: %r", error)
            self.inner = NOBODY
            return otherwise


def guarded(onlooker: Onlooker | None) -> Onlooker:
    """Return an onlooker that can do no harm; NOBODY where there is none."""
    if onlooker is None or onlooker is NOBODY:
        return NOBODY
    return onlooker if isinstance(onlooker, Guarded) else Guarded(onlooker)
