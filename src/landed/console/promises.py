"""What a contract promises, in short: a line for each promise that tells something."""

from collections.abc import Callable, Iterator

from landed.core.contract import Contract, Risk

Say = Callable[..., str]


def promises(contract: Contract, say: Say) -> list[str]:
    """Return the promises of a contract as sentences; `say` are the words of the page."""
    return [*_of_effect(contract, say), *_of_doubt(contract, say), *_of_undo(contract, say)]


def _of_effect(contract: Contract, say: Say) -> Iterator[str]:
    yield say(f"promise.effect.{contract.effect}")
    if contract.risk is Risk.CONFIRM or contract.risk_varies:
        yield say("promise.confirm.varies" if contract.risk_varies else "promise.confirm")
    if contract.permission:
        yield say("promise.permission", permission=contract.permission)
    for rule in contract.unique:
        yield say("promise.unique", rule=rule)


def _of_doubt(contract: Contract, say: Say) -> Iterator[str]:
    yield _keyed(contract, say)
    said = {
        "lookup": contract.lookup,
        "close": contract.close,
        "read_back": contract.read_back,
        "list_effects": contract.list_effects,
    }
    yield from (say(f"promise.{name}") for name, promised in said.items() if promised)
    timed = {
        "settlement_lag": contract.settlement_lag_s or None,
        "refuses_after": contract.refuses_after_s,
        "assume_after": contract.assume_after_s,
        "escalate_after": contract.escalate_after_s,
        "deadline": contract.deadline_s,
    }
    for name, seconds in timed.items():
        if seconds is not None:
            yield say(f"promise.{name}", seconds=f"{seconds:g}")
    yield say("promise.tries", count=contract.max_tries)


def _keyed(contract: Contract, say: Say) -> str:
    if not contract.keyed:
        return say("promise.unkeyed")
    kept = say("promise.for_ever")
    if contract.retention_s is not None:
        kept = say("promise.for_seconds", seconds=f"{contract.retention_s:g}")
    compares = "promise.compares" if contract.compares_payload else "promise.compares.not"
    return say("promise.keyed", name=contract.keyed, kept=kept, compares=say(compares))


def _of_undo(contract: Contract, say: Say) -> Iterator[str]:
    if not contract.undo:
        yield say("promise.undo.none")
    elif contract.undo_within_s is None:
        yield say("promise.undo", tool=contract.undo)
    else:
        seconds = f"{contract.undo_within_s:g}"
        yield say("promise.undo.within", tool=contract.undo, seconds=seconds)
    if contract.correct:
        yield say("promise.correct", tool=contract.correct)
