"""References: `$n` in a step's arguments stands for what step n of the same plan makes.

One grammar, `$` and a number, and nothing after it: `$1.email` or `$../7` is no reference. It may
stand only where the tool's contract says that a parameter takes one (`accepts`), only for an
earlier step, and only for the type of thing that this step makes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from landed.core.canonical import Json
from landed.core.contract import Contract
from landed.core.errors import ProposalError

_FORM = re.compile(r"\$([1-9][0-9]{0,3})")


def step_named(value: Json) -> int | None:
    """Return the number of the step that a value refers to, None for a value of its own."""
    match = _FORM.fullmatch(value) if isinstance(value, str) else None
    return int(match[1]) if match else None


def referred(arguments: Mapping[str, Json], accepts: Mapping[str, str]) -> dict[str, int]:
    """Return which parameters are filled from which step (numbered from 1)."""
    found = {name: step_named(arguments.get(name)) for name in accepts}
    return {name: number for name, number in found.items() if number is not None}


def check_references(
    number: int, tool: str, arguments: Mapping[str, Json], contracts: Sequence[Contract]
) -> None:
    """Raise `ProposalError`, naming step and field, for a reference that can't be.

    `contracts` are those of the plan's steps, in order; `number` counts from 1.
    """
    if wrong := misplaced(number, tool, arguments):
        raise ProposalError(wrong[0])
    check_fields(number, tool, arguments, contracts)


def check_fields(
    number: int, tool: str, arguments: Mapping[str, Json], contracts: Sequence[Contract]
) -> None:
    """Do the same for the fields of a step alone, whatever stands inside their values."""
    accepts = contracts[number - 1].accepts
    for name, value in arguments.items():
        where = f"step {number} ({tool}): {name}"
        if name in accepts:
            _check_one(where, number, value, accepts[name], contracts)
        elif step_named(value) is not None:
            takes = ", ".join(sorted(accepts)) or "none of its fields"
            raise ProposalError(
                f"{where} is {value!r}, but takes no reference to a step; of {tool} {takes} may"
            )


def misplaced(number: int, tool: str, arguments: Mapping[str, Json]) -> list[str]:
    """Say which references of a step stand inside another value, where none is ever filled in."""
    return [
        f"step {number} ({tool}): {place} is {value!r}, but a reference stands only in a field of"
        " its own, never inside another value"
        for name, argument in arguments.items()
        for place, value in _inside(name, argument)
    ]


def _inside(where: str, value: Json) -> Iterator[tuple[str, str]]:
    inside: list[tuple[str, Json]] = []
    if isinstance(value, Mapping):
        inside = [(f"{where}.{name}", each) for name, each in value.items()]
    elif isinstance(value, list):
        inside = [(f"{where}[{n}]", each) for n, each in enumerate(value)]
    for place, each in inside:
        if isinstance(each, str) and step_named(each) is not None:
            yield place, each
        yield from _inside(place, each)


def _check_one(
    where: str, number: int, value: Json, wanted: str, contracts: Sequence[Contract]
) -> None:
    named = step_named(value)
    if named is None:
        if isinstance(value, str) and value.startswith("$"):
            raise ProposalError(
                f"{where} is {value!r}, which is no reference; write $ and the number of an earlier"
                " step, and nothing else"
            )
        return
    if named >= number:
        raise ProposalError(
            f"{where} refers to step {named}, which is not before it; a step can use only what an"
            " earlier one makes"
        )
    makes = contracts[named - 1].makes_type
    if makes != wanted:
        raise ProposalError(
            f"{where} wants {_one(wanted)}, but step {named} makes {_one(makes)}; refer to a step"
            f" that makes {_one(wanted)}, or give its id"
        )


def _one(what: str) -> str:
    if not what:
        return "nothing that can be referred to"
    return f"{'an' if what[0] in 'aeiou' else 'a'} {what}"


def resolved(
    arguments: Mapping[str, Json], accepts: Mapping[str, str], made: Mapping[int, Json]
) -> dict[str, Json]:
    """Return the arguments with what earlier steps made, by step number.

    Raises `ProposalError` where a step made nothing that has an id.
    """
    filled = dict(arguments)
    for name, number in referred(arguments, accepts).items():
        id = made.get(number)
        if id is None:
            raise ProposalError(f"step {number} made nothing that {name} could refer to")
        filled[name] = id if isinstance(id, str) else str(id)
    return filled


def known_by(
    arguments: Mapping[str, Json], accepts: Mapping[str, str], identities: Sequence[str]
) -> dict[str, Json]:
    """Return the arguments with each reference as the identity of the step that it means.

    So that two steps that say `$1` are the same thing only where their first steps are.
    """
    named = referred(arguments, accepts)
    return {**arguments, **{name: f"$({identities[n - 1]})" for name, n in named.items()}}
