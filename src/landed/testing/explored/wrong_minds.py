"""Wrong designs of a change of mind, each wrong in one thing; the second explorer catches them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from landed.core.absorb import CameBack, Moved, absorb
from landed.core.arrival import Answered
from landed.core.contract import Contract, Order
from landed.core.next import what_next
from landed.core.operation import Operation
from landed.core.question import QuestionState
from landed.core.revision import Revision, pair
from landed.core.rules import RULES, Rules
from landed.core.scope import Next, Scope
from landed.core.undo import Release, ReleaseState
from landed.testing.designs import (
    cancel_is_cancelled,
    key_of_step,
    lost_is_refused,
    releases_anything,
)
from landed.testing.explored.minds_properties import (
    FORGOTTEN,
    NEGLECTED,
    RELEASED_FIRST,
    SENT_UNRECORDED,
    STUCK,
    TWO_CANCELS,
    UNAGREED,
    UNDID_REPLACEMENT,
    UNPAIRED,
)
from landed.testing.explored.minds_world import Driver
from landed.testing.variants import never_asks


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongMind:
    """A wrong design, and the promise that it breaks in the world of `case`."""

    case: str
    breaks: str
    rules: Rules = RULES
    driver: Driver = field(default_factory=Driver)


# What is undone, and when.


def release_first(scope: Scope, rules: Rules, now: float) -> Next:
    """Give back what is held before there is anything in its place."""
    contracts = {
        digest: replace(contract, order=Order.RELEASE_FIRST) if contract.undo else contract
        for digest, contract in scope.contracts.items()
    }
    return what_next(replace(scope, contracts=contracts), rules, now)


def owes_nothing(*arguments: object, **named: object) -> Revision:
    """Forget, in a change of mind, what is held already."""
    revise: Callable[..., Revision] = pair
    return replace(revise(*arguments, **named), released=())


def undo_lost_is_no(operation: Operation, contract: Contract, back: CameBack) -> Moved | None:
    """Take no answer to a cancellation for a no, and cancel anew."""
    rule = lost_is_refused if operation.undoes else absorb
    return rule(operation, contract, back)


# What a person agreed to.


def _with_releases(scope: Scope, change: Callable[[Release], Release]) -> Scope:
    return replace(scope, releases={id: change(each) for id, each in scope.releases.items()})


def agreed_once(scope: Scope, rules: Rules, now: float) -> Next:
    """Take a yes to one price for a yes to the next."""

    def change(owed: Release) -> Release:
        return replace(owed, agreed=owed.agreed or owed.tries > 0)

    return what_next(_with_releases(scope, change), rules, now)


def asks_nobody(scope: Scope, rules: Rules, now: float) -> Next:
    """Undo at any price."""

    def change(owed: Release) -> Release:
        return replace(owed, agreed=owed.agreed or owed.state is ReleaseState.DUE)

    return what_next(_with_releases(scope, change), rules, now)


def hears_late(scope: Scope, rules: Rules, now: float) -> Next:
    """Take a yes that comes late for the answer to whatever is asked now."""
    last = scope.questions.get(scope.last_question)
    if last is None or last.state is not QuestionState.OPEN:
        return what_next(scope, rules, now)
    arrivals = tuple(
        replace(each, question=last.id) if isinstance(each, Answered) else each
        for each in scope.arrivals
    )
    return what_next(replace(scope, arrivals=arrivals), rules, now)


WRONG_MINDS: Mapping[str, WrongMind] = {
    "release-first": WrongMind(
        case="free", breaks=RELEASED_FIRST, driver=Driver(what_next=release_first)
    ),
    "release-not-recorded": WrongMind(
        case="free", breaks=NEGLECTED, rules=Rules(pair=owes_nothing)
    ),
    "release-lost": WrongMind(case="free", breaks=FORGOTTEN, driver=Driver(adopts_releases=False)),
    "coarse-key": WrongMind(case="lenient", breaks=UNPAIRED, rules=Rules(key_for=key_of_step)),
    # To compare what comes under a key is no help when it is looked up after a crash.
    "coarse-key-compared": WrongMind(
        case="free", breaks=UNPAIRED, rules=Rules(key_for=key_of_step)
    ),
    "undo-the-replacement": WrongMind(
        case="lenient",
        breaks=UNDID_REPLACEMENT,
        rules=Rules(key_for=key_of_step, returned_the_same=releases_anything),
    ),
    "consent-not-bound": WrongMind(
        case="fee", breaks=UNAGREED, driver=Driver(what_next=agreed_once)
    ),
    "consent-not-asked": WrongMind(
        case="fee", breaks=UNAGREED, driver=Driver(what_next=asks_nobody)
    ),
    "consent-heard-late": WrongMind(
        case="fee", breaks=UNAGREED, driver=Driver(what_next=hears_late)
    ),
    "undo-twice": WrongMind(case="fee", breaks=TWO_CANCELS, rules=Rules(absorb=undo_lost_is_no)),
    "stopped-is-cancelled": WrongMind(
        case="free", breaks=UNPAIRED, driver=Driver(what_next=cancel_is_cancelled)
    ),
    "never-asks": WrongMind(case="nobody-can-tell", breaks=STUCK, rules=Rules(doubt=never_asks)),
    "send-before-commit": WrongMind(
        case="free", breaks=SENT_UNRECORDED, driver=Driver(sends_first=True)
    ),
}
