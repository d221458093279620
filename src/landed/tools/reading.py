"""What a JSON reply says: whether it is a yes with a result, and what a question learnt."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from landed.core.canonical import Json, parse
from landed.core.contract import Contract
from landed.core.errors import ProposalError
from landed.core.outcome import (
    Absent,
    Acknowledged,
    AnswerLost,
    Found,
    LookOutcome,
    NoAnswer,
    NotYet,
    Prepared,
    SendOutcome,
)
from landed.tools.classify import bounded, of_status
from landed.tools.exchange import Reply
from landed.tools.routes import MISSING, Missing, at

# The statuses that say yes. Not 206 or 207: a part of an answer, and many answers in one.
YES = frozenset({200, 201, 202, 203, 204, 205})
ACCEPTED = 202
MAY_BE_EMPTY = frozenset({202, 204, 205})
CONFLICTS = frozenset({409, 412})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Where replies say what, as dotted names (`booking.id`); "" is the whole reply.

    *Of a yes:* `requires` names what it must have, without which it is a lost answer; `yes_result`
    where what it made is, `yes_position` where the service's own number of the write ("" for none).

    *Of a lookup, close or read-back:* `found` must be true or false there (null: not yet), and
    where it is "" a 200 says *found*. `result` is what the reply to the send would have said;
    `position` may be absent. `absent_on` are statuses that say *nothing there*, none by default: a
    404 may as well come from a proxy, a mistyped path or a service that forgot, and an answer that
    is wrongly taken for a no makes a second effect. `not_yet_on` are those that say *ask later*.

    *Of both:* `position_header`, which goes before a position in the body; an ETag may be one.

    *Of a prepare:* `keeps` says what is kept, by name: a field or `header:ETag`; all must be there.
    """

    requires: tuple[str, ...] = ()
    yes_result: str = ""
    yes_position: str = ""
    found: str = "found"
    result: str = "result"
    position: str = "position"
    absent_on: tuple[int, ...] = ()
    not_yet_on: tuple[int, ...] = (202, 409, 425)
    position_header: str = ""
    keeps: Mapping[str, str] = field(default_factory=lambda: {"etag": "header:ETag"})


class NotSaidError(Exception):
    """The reply does not say what it must; what it lacks is the text."""


def outcome_of(
    reply: Reply, reading: Reading, contract: Contract, *, rests_on: str = ""
) -> SendOutcome:
    """Return what the reply to a send says; `rests_on` is the version that it depends on."""
    if reply.status not in YES:
        moved = reply.headers.get("location")
        says = f"redirects to {moved}, not followed" if moved else reply.says
        if rests_on and reply.status in CONFLICTS and reply.status in contract.refusals:
            now = f", and is {etag} now" if (etag := reply.headers.get("etag")) else ""
            says = f"it has changed since it was {rests_on}{now}: {says}"
        return of_status(reply.status, contract, says=says, wait_s=reply.wait_s)
    try:
        body = body_of(reply, may_be_empty=reply.status in MAY_BE_EMPTY)
        for path in reading.requires:
            _there(body, path)
        result = _there(body, reading.yes_result) if body is not None else None
        position = position_of(reply, body, reading.yes_position, reading)
    except NotSaidError as error:
        return AnswerLost(reason=bounded(f"{reply.status} but {error}: {reply.says}"))
    return Acknowledged(result=result, position=position, accepted=reply.status == ACCEPTED)


def answer_of(reply: Reply, reading: Reading) -> LookOutcome:
    """Return what the reply to a lookup, close or read-back says."""
    said = by_status(reply, reading)
    if said is not None:
        return said
    try:
        return _answer(reply, reading)
    except NotSaidError as error:
        return NoAnswer(reason=bounded(f"{reply.status} but {error}: {reply.says}"))


def kept_of(reply: Reply, reading: Reading) -> Prepared | NoAnswer:
    """Return what is kept of the reply to a `prepare`.

    All of it must be there: a send that rests on a version that nobody said would rest on nothing.
    """
    if reply.status != 200:
        return NoAnswer(reason=bounded(f"{reply.status} {reply.says}"))
    try:
        return Prepared(value={name: _kept(reply, where) for name, where in reading.keeps.items()})
    except NotSaidError as error:
        return NoAnswer(reason=bounded(f"{reply.status} but {error}: {reply.says}"))


def _kept(reply: Reply, where: str) -> Json:
    kind, _, name = where.partition(":")
    value = reply.headers.get(name.lower()) if kind == "header" else _there(body_of(reply), where)
    if value is None or value == "":
        raise NotSaidError(f"it has no {name or where}")
    return value


def by_status(reply: Reply, reading: Reading) -> LookOutcome | None:
    """Return what the status alone says to a question; None for a 200, whose body says it."""
    if reply.status in reading.absent_on:
        return Absent()
    if reply.status in reading.not_yet_on:
        return NotYet(reason=bounded(f"{reply.status} {reply.says}"))
    if reply.status != 200:
        return NoAnswer(reason=bounded(f"{reply.status} {reply.says}"))
    return None


def _answer(reply: Reply, reading: Reading) -> LookOutcome:
    body = body_of(reply)
    found = _there(body, reading.found) if reading.found else True
    position = position_of(reply, body, reading.position, reading)
    if found is None:
        return NotYet(reason=bounded(reply.says))
    if found is False:
        return Absent(position=position)
    if found is True:
        return Found(result=_there(body, reading.result), position=position)
    raise NotSaidError(f"{reading.found!r} is neither true nor false")


def body_of(reply: Reply, *, may_be_empty: bool = False) -> Json:
    """Return the JSON of a reply, or raise `NotSaidError`."""
    if may_be_empty and not reply.body:
        return None
    try:
        body = parse(reply.body)
    except ProposalError as error:
        raise NotSaidError(f"its body cannot be read ({error})") from None
    # A number that was cut short is still a number; an object or an array is whole or nothing.
    if not isinstance(body, Mapping | list):
        raise NotSaidError("its body is no object or array")
    return body


def _there(body: Json, path: str) -> Json:
    value = at(body, path)
    if isinstance(value, Missing):
        raise NotSaidError(f"it has no {path!r}")
    return value


def position_of(reply: Reply, body: Json, path: str, reading: Reading) -> int | None:
    """Return the position, None where there is none; a wrong one would settle what it must not."""
    header = reply.headers.get(reading.position_header.lower())
    if header is not None:
        header = header.removeprefix("W/").strip('"')
        if not (header.isascii() and header.isdigit() and len(header) < 20):
            raise NotSaidError(f"{reading.position_header} is no position")
        return int(header)
    value = at(body, path) if path else MISSING
    if isinstance(value, Missing) or value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise NotSaidError(f"{path!r} is no position")
    return value
