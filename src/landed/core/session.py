"""A conversation's own records: inputs, the turns they open, and what reads came back with.

They are born closed: once written, nothing has to be done with them. A session is not a record; it
is the name that its records share.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from landed.core.canonical import Json
from landed.core.changes import Changes, Hold, Kind, Move, Record
from landed.core.contract import Contract
from landed.core.declared import digest_of, values
from landed.core.event import Event
from landed.core.key import Ask, name_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One delivery of the user's words, or of an event, as it came.

    `turn` is the turn it opened; `origin` says who started that: `user`, or a name such as `timer`.
    `delivery` is the sender's id of this delivery, "" where it has none.
    """

    id: str
    tenant: str
    session: str
    principal: str
    text: str
    origin: str
    delivery: str
    turn: str
    at: float

    def ask(self, call_id: str = "", *, send_by: float | None = None) -> Ask:
        """Return the ask of one call made for this input."""
        return Ask(
            tenant=self.tenant,
            principal=self.principal,
            session=self.session,
            input=self.id,
            turn=self.turn,
            call_id=call_id,
            send_by=send_by,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The recorded result of a call without an effect: `answered`, `unanswered` or `dropped`."""

    id: str
    ask: Ask
    tool: str
    contract: str
    arguments: Mapping[str, Json]
    state: str
    result: Json
    why: str
    at: float


def delivery_name(*, tenant: str, delivery: str) -> str:
    """Return the name that one delivery takes for ever, so that it is one input."""
    return name_of("delivery", tenant, delivery)


def opening(received: Input) -> Changes:
    """Return the unit that makes an input durable and opens its turn."""
    whole = _born_closed(
        id=received.id,
        kind=Kind.INPUT,
        tenant=received.tenant,
        session=received.session,
        state="received",
        at=received.at,
        frozen={
            "principal": received.principal,
            "text": received.text,
            "origin": received.origin,
            "delivery": received.delivery,
            "turn": received.turn,
            "at": received.at,
        },
    )
    turn = _born_closed(
        id=received.turn,
        kind=Kind.TURN,
        tenant=received.tenant,
        session=received.session,
        state="opened",
        at=received.at,
        frozen={"input": received.id, "origin": received.origin, "at": received.at},
    )
    takes: tuple[Hold, ...] = ()
    if received.delivery:
        name = delivery_name(tenant=received.tenant, delivery=received.delivery)
        takes = (Hold(name=name, record=received.id),)
    return Changes(moves=(whole, turn), takes=takes)


def input_of(record: Record) -> Input:
    """Read an input back."""
    return Input(
        id=record.id,
        tenant=record.tenant,
        session=record.session,
        **record.frozen,  # type: ignore[arg-type]
    )


def unacted(records: Sequence[Record]) -> tuple[Input, ...]:
    """Return the inputs of a session, oldest first, for whose turn there is no record yet.

    Such an input was acknowledged, so it must not be lost: whoever takes a session over acts on it.
    An answer to a question is acted on by being recorded.
    """
    acted = {str(record.frozen.get("turn", "")) for record in records if record.kind in _ACTS}
    answers = {
        str(record.changing.get("input", ""))
        for record in records
        if record.kind is Kind.QUESTION and record.state in _ANSWERED
    }
    inputs = (input_of(record) for record in records if record.kind is Kind.INPUT)
    return tuple(each for each in inputs if each.turn not in acted and each.id not in answers)


_ANSWERED = frozenset({"yes", "no"})  # Words that only let a question lapse want something else.
_ACTS = frozenset(
    {Kind.OPERATION, Kind.PLAN, Kind.OBSERVATION, Kind.QUESTION, Kind.RELEASE, Kind.MESSAGE}
)


def observing(seen: Observation) -> Changes:
    """Return the unit that keeps an observation."""
    ask = seen.ask
    move = _born_closed(
        id=seen.id,
        kind=Kind.OBSERVATION,
        tenant=ask.tenant,
        session=ask.session,
        state=seen.state,
        at=seen.at,
        frozen={
            "tool": seen.tool,
            "contract": seen.contract,
            "arguments": seen.arguments,
            "input": ask.input,
            "turn": ask.turn,
            "call_id": ask.call_id,
            "principal": ask.principal,
            "result": seen.result,
            "why": seen.why,
            "at": seen.at,
        },
    )
    return Changes(moves=(move,))


def observation_of(record: Record) -> Observation:
    """Read an observation back."""
    kept: dict[str, object] = dict(record.frozen)
    ask = Ask(
        tenant=record.tenant,
        session=record.session,
        input=str(kept.pop("input")),
        turn=str(kept.pop("turn")),
        call_id=str(kept.pop("call_id")),
        principal=str(kept.pop("principal")),
    )
    return Observation(
        id=record.id,
        ask=ask,
        state=record.state,
        **kept,  # type: ignore[arg-type]
    )


def saying(
    *, id: str, tenant: str, session: str, turn: str, text: str, at: float, state: str = "said"
) -> Changes:
    """Return the unit that keeps what the agent told the person.

    `state` is `said` at the end of a turn, `announced` before something is done.
    """
    frozen: dict[str, Json] = {"turn": turn, "text": text, "at": at}
    move = _born_closed(
        id=id,
        kind=Kind.MESSAGE,
        tenant=tenant,
        session=session,
        state=state,
        at=at,
        frozen=frozen,
    )
    return Changes(moves=(move,))


def conversing(*, id: str, tenant: str, session: str, line: str, at: float) -> Changes:
    """Return the unit that keeps one line of a conversation as its model has it.

    The line is text that this library does not read here: a model's own words and calls need not be
    what canonical JSON can hold.
    """
    move = _born_closed(
        id=id,
        kind=Kind.LINE,
        tenant=tenant,
        session=session,
        state="kept",
        at=at,
        frozen={"line": line, "at": at},
    )
    return Changes(moves=(move,))


def contract_id(digest: str) -> str:
    """Return the id of the record that keeps a contract that was seen."""
    return f"contract/{digest}"


def seeing(contract: Contract, *, tool: str, at: float) -> Changes:
    """Return the unit that keeps a contract, so that doubt can be judged by it for ever."""
    move = _born_closed(
        id=contract_id(digest_of(contract)),
        kind=Kind.CONTRACT,
        tenant="",
        session="",
        state="seen",
        at=at,
        frozen={"tool": tool, "contract": values(contract)},
    )
    return Changes(moves=(move,))


def contracts_of(record: Record) -> set[str]:
    """Return the digests of the contracts that a record was made under."""
    if record.kind in (Kind.OPERATION, Kind.OBSERVATION):
        return {str(record.frozen["contract"])}
    if record.kind is Kind.PLAN:
        steps: list[Mapping[str, Json]] = record.frozen["steps"]  # type: ignore[assignment]
        return {str(step["contract"]) for step in steps}
    return set()


def kept_contract(record: Record) -> tuple[str, Mapping[str, object]]:
    """Return the tool's name and the plain values of a contract that was kept."""
    plain: Mapping[str, object] = record.frozen["contract"]  # type: ignore[assignment]
    return str(record.frozen["tool"]), plain


def _born_closed(
    *,
    id: str,
    kind: Kind,
    tenant: str,
    session: str,
    state: str,
    at: float,
    frozen: Mapping[str, Json],
) -> Move:
    record = Record(
        id=id,
        kind=kind,
        tenant=tenant,
        session=session,
        state=state,
        version=1,
        epoch=0,
        worker="",
        open=False,
        frozen=frozen,
        changing={},
    )
    return Move(after=record, event=Event(name=state, record=id, at=at))
