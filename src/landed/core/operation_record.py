"""An operation as a store holds it, and back: what never changes, and what any event may."""

from landed.core.canonical import Json
from landed.core.changes import Kind, Record
from landed.core.key import Ask
from landed.core.operation import CHANGING, Evidence, Operation, Source, State

_ASK_FIELDS = ("principal", "input", "turn", "call_id", "send_by")


def to_record(operation: Operation, *, made: int = 0, last: int = 0) -> Record:
    """Return the operation as a store holds it; what has its default value is left out.

    `made` and `last` are the journal positions it is known to have, 0 for one that is new.
    """
    fields = operation.__dict__
    frozen = fields.get(_FROZEN)
    if frozen is None:
        # It never changes, so it is kept beside the fields, and copied along with them.
        frozen = fields[_FROZEN] = _frozen(operation)
    changing: dict[str, Json] = {
        name: fields[name] for name, default in CHANGING.items() if fields[name] != default
    }
    if operation.evidence:
        changing["evidence"] = [
            {"source": e.source, "at": e.at, "says": e.says, "position": e.position, "by": e.by}
            for e in operation.evidence
        ]
    return Record(
        id=operation.id,
        kind=Kind.OPERATION,
        tenant=operation.tenant,
        session=operation.session,
        state=operation.state,
        version=operation.version,
        epoch=operation.epoch,
        worker=operation.worker,
        open=operation.open,
        frozen=frozen,
        changing=changing,
        made=made,
        last=last,
    )


_FROZEN = "_frozen"


def _frozen(operation: Operation) -> dict[str, Json]:
    ask = operation.ask
    return {
        "tool": operation.tool,
        "arguments": operation.arguments,
        "turn": operation.turn,
        "key": operation.key,
        "contract": operation.contract,
        "identity": operation.identity,
        "names": operation.names,
        "made_at": operation.made_at,
        "send_by": operation.send_by,
        "plan": operation.plan,
        "undoes": operation.undoes,
        "retries": operation.retries,
        "unique": operation.unique,
        "ask": {name: getattr(ask, name) for name in _ASK_FIELDS},
    }


def from_record(record: Record) -> Operation:
    """Read an operation back; the reverse of `to_record`."""
    frozen: dict[str, object] = dict(record.frozen)
    changing: dict[str, object] = dict(record.changing)
    asked: dict[str, object] = frozen.pop("ask")  # type: ignore[assignment]
    evidence: list[dict[str, object]] = changing.pop("evidence", [])  # type: ignore[assignment]
    for name in ("names", "unique"):
        frozen[name] = tuple(frozen[name])  # type: ignore[arg-type]
    if "unsent" in changing:
        changing["unsent"] = tuple(changing["unsent"])  # type: ignore[arg-type]
    return Operation(
        id=record.id,
        tenant=record.tenant,
        session=record.session,
        state=State(record.state),
        version=record.version,
        epoch=record.epoch,
        worker=record.worker,
        ask=Ask(tenant=record.tenant, session=record.session, **asked),  # type: ignore[arg-type]
        evidence=tuple(
            Evidence(**{**each, "source": Source(str(each["source"]))})  # type: ignore[arg-type]
            for each in evidence
        ),
        **frozen,  # type: ignore[arg-type]
        **changing,  # type: ignore[arg-type]
    )
