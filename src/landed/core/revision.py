"""A change of mind: what is kept, released, corrected and added. The runtime reads no words.

Calls are paired by tool and identity. Equal: kept, never sent again. Changed: the old one is
released once the new one holds, or, when it cannot be taken back, corrected. An old call that is
left out is a question, unless it is named in `drop`: what a model forgets to repeat is not thereby
cancelled.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from landed.core.contract import Contract, Effect, filled
from landed.core.errors import ProposalError
from landed.core.key import name_of
from landed.core.operation import Operation, State
from landed.core.plan import At, Place, Step

# What never happened, or was taken back, owes nothing.
NOTHING_OWED = frozenset({State.FAILED, State.WITHDRAWN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """An operation whose release is owed; `step` is what replaces it, None where nothing does."""

    operation: Operation
    step: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """What a change of mind comes to.

    `steps` and `places` are the new plan's. `kept` are operations that are wanted as they are,
    `released` those whose undo is owed, `left_out` those about which the person is asked, and
    `given_up` all that is no longer wanted.
    """

    steps: tuple[Step, ...]
    places: tuple[Place, ...]
    kept: tuple[Operation, ...]
    released: tuple[Released, ...]
    left_out: tuple[Operation, ...]
    given_up: tuple[Operation, ...]


Contracts = Callable[[str], Contract]


def already_revised(turn: str, by: str) -> ProposalError:
    """Return what is wrong with a second revision of a turn."""
    return ProposalError(f"{turn} was revised already, by {by}: revise that turn")


def revised_name(*, tenant: str, turn: str) -> str:
    """Return the name that a turn's one revision takes for ever: the next one revises that."""
    return name_of("revised", tenant, turn)


def pair(
    old: Sequence[Operation],
    wanted: Sequence[Step],
    *,
    contract_of: Contracts,
    drop: frozenset[str] = frozenset(),
    seen: Mapping[tuple[str, str], Place] | None = None,
    replaced_by: Mapping[str, str] | None = None,
) -> Revision:
    """Compare what was done with what is wanted now.

    `old` are the operations of the revised turn that are not undone, `wanted` the steps of the new
    plan, `drop` the operations that the user gave up in so many words, `seen` the reads that were
    made already, by tool and identity, `replaced_by` what stands in for an operation that a change
    of mind before this one gave up: it waits for what replaces that now, and where it is wanted
    after all, what stood in for it is released.
    """
    owing = [operation for operation in old if operation.state not in NOTHING_OWED]
    steps, kept = _keep(owing, wanted)
    rest = [operation for operation in owing if operation.id not in kept]
    chain = _among(owing, replaced_by or {})
    open_to = [o for o in rest if o.id not in drop]
    changed = _replace([o for o in open_to if o.id not in chain], steps)
    both = [(step, changed.get(n)) for n, step in enumerate(steps)]
    steps = [_with_old(step, before, contract_of=contract_of) for step, before in both]
    place_of = {**kept, **{operation.id: n for n, operation in changed.items()}}
    step_of = {o.id: n for o in open_to if (n := _waits_for(o.id, chain, place_of)) is not None}
    given_up = [o for o in rest if o.id in step_of or o.id in drop]
    return Revision(
        steps=tuple(steps),
        places=tuple(_place(step, seen or {}) for step in steps),
        kept=tuple(o for o in owing if o.id in kept),
        released=tuple(
            Released(operation=o, step=step_of.get(o.id))
            for o in given_up
            if contract_of(o.contract).undo
        ),
        left_out=tuple(o for o in rest if o not in given_up),
        given_up=tuple(given_up),
    )


def _keep(owing: Sequence[Operation], wanted: Sequence[Step]) -> tuple[list[Step], dict[str, int]]:
    """Let each wanted step take the operation that is the same call already."""
    free: dict[tuple[str, str], list[Operation]] = {}
    for operation in owing:
        free.setdefault((operation.tool, operation.identity), []).append(operation)
    kept: dict[str, int] = {}
    steps: list[Step] = []
    for n, step in enumerate(wanted):
        same = free.get((step.tool, step.identity), [])
        if same and not step.reads:
            kept[same[0].id] = n
            step = replace(step, keeps=same.pop(0).id)
        steps.append(step)
    return steps, kept


def _among(owing: Sequence[Operation], replaced_by: Mapping[str, str]) -> dict[str, str]:
    """Return what stands in for what, as far as it may have an effect itself."""
    ids = {operation.id for operation in owing}
    return {before: after for before, after in replaced_by.items() if after in ids}


def _waits_for(id: str, chain: Mapping[str, str], place_of: Mapping[str, int]) -> int | None:
    """Return the step that replaces an operation, or what stood in for it, or what it stood for."""
    last = id
    for _ in range(len(chain) + 1):
        if last in place_of:
            return place_of[last]
        last = chain.get(last, last)
    stood_for = (before for before, after in chain.items() if after == id)
    return next((place_of[before] for before in stood_for if before in place_of), None)


def _replace(waiting: Sequence[Operation], steps: Sequence[Step]) -> dict[int, Operation]:
    """Pair what is left of each tool, in order: step number to the operation it replaces."""
    replaced: dict[int, Operation] = {}
    left = list(waiting)
    for n, step in enumerate(steps):
        if step.keeps or step.reads:
            continue
        old = next((o for o in left if o.tool == step.tool), None)
        if old is not None:
            left.remove(old)
            replaced[n] = old
    return replaced


def _with_old(step: Step, old: Operation | None, *, contract_of: Contracts) -> Step:
    if old is None:
        return step
    if contract_of(old.contract).undo:
        return replace(step, replaces=old.id)
    return replace(step, corrects=old.id)


def _place(step: Step, seen: Mapping[tuple[str, str], Place]) -> Place:
    if step.keeps:
        return Place(at=At.OUT, record=step.keeps)
    if step.reads and (step.tool, step.identity) in seen:
        return seen[step.tool, step.identity]
    return Place()


def corrected(step: Step, old: Operation, contract: Contract) -> Step:
    """Return the step as the correction of `old`, or as it is where that had no effect."""
    landed = old.state in (State.CONFIRMED, State.ASSUMED, State.ACCEPTED)
    if not landed or contract.effect is not Effect.IRREVERSIBLE:
        return step
    arguments = {
        **step.arguments,
        **filled(contract.correct_arguments, arguments=step.arguments, result=old.result),
    }
    return replace(step, tool=contract.correct or step.tool, arguments=arguments)
