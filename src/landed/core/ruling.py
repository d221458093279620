"""A person's ruling, folded into the records: it is evidence, with a name and a note.

Nothing is rewritten by it: what was settled stays settled, and the case beside it is closed.
"""

from collections.abc import Mapping

from landed.core.arrival import CaseRuled, Ruled
from landed.core.case import BY_STATE, CaseEvent, Ruling, may
from landed.core.draft import Draft
from landed.core.operation import Happened, Operation, Source, State
from landed.core.undo import made_result

NOT_THAT = "that cannot be said of it as it stands"


def rule(draft: Draft, arrival: Ruled) -> None:
    """Settle an operation that cannot be found out, or leave it open with a note."""
    operation = draft.operations[arrival.operation]
    if arrival.ruling not in BY_STATE.get(operation.state, ()):
        draft.answer(arrival, NOT_THAT)
        return
    rule_it = _leave if arrival.ruling in (Ruling.HOLD, Ruling.LIFT) else _settle
    rule_it(draft, arrival, operation, _EVENTS[arrival.ruling])


def _settle(draft: Draft, arrival: Ruled, operation: Operation, event: Happened) -> None:
    if operation.state is State.UNKNOWN:
        operation = draft.move(operation, Happened.GAVE_UP, "a person was asked")
    held: dict[str, object] = {}
    if event is Happened.RULED_LANDED and arrival.made:
        held["result"] = made_result(draft.contract_of(operation), arrival.made)
    says = f"{arrival.by} said so: {arrival.note}" if arrival.note else f"{arrival.by} said so"
    draft.move(operation, event, says, source=Source.PERSON, by=arrival.by, **held)


def _leave(draft: Draft, arrival: Ruled, operation: Operation, event: Happened) -> None:
    lifted = event is Happened.LIFTED or operation.lifted
    says = arrival.note or f"{arrival.by} leaves it open"
    draft.move(operation, event, says, source=Source.PERSON, by=arrival.by, lifted=lifted)


# What is signed off is a case that is a record of its own.
_EVENTS: Mapping[Ruling, Happened] = {
    Ruling.LANDED: Happened.RULED_LANDED,
    Ruling.ABSENT: Happened.RULED_ABSENT,
    Ruling.HOLD: Happened.NOTED,
    Ruling.LIFT: Happened.LIFTED,
}


def rule_case(draft: Draft, arrival: CaseRuled) -> None:
    """Close a case that is a record of its own, or note on it that it stays open."""
    case = draft.cases[arrival.case]
    if arrival.ruling not in may(case):
        draft.answer(arrival, NOT_THAT)
        return
    stays = arrival.ruling is Ruling.HOLD
    draft.move_case(
        case,
        CaseEvent.NOTED if stays else CaseEvent.CLOSED,
        ruling=arrival.ruling,
        by=arrival.by,
        note=arrival.note,
        at=draft.now,
    )
