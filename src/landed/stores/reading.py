"""From stored rows to records: each is checked against its own journal before it is believed."""

from landed.core.changes import Kind, Record
from landed.core.erased import ERASED
from landed.core.errors import StoreError
from landed.core.journal import Entry, bodies, verify
from landed.core.keeping import Kept
from landed.stores.driver import Row

_RECORD = 11  # The columns of a record in the view `loaded`; those of two entries follow.
_ENTRY = 11
_EVENT = _RECORD + 4  # What the first of the two entries tells of.
_AT = _RECORD + _ENTRY + 6  # When the second of them happened.


def entry(row: Row) -> Entry:
    """Return a journal entry from its columns, as it was found."""
    seq, id, version, before, event, state, at, body, digest, prev, hash = row
    return Entry(
        seq=seq,
        id=id,
        version=version,
        before=before,
        event=event,
        state=state,
        at=at,
        body=body,
        body_digest=digest,
        prev=prev,
        hash=hash,
    )


def record(row: Row, secrets: tuple[bytes, ...]) -> Record:
    """Return a record from the columns of the view `loaded`; one of `secrets` made its links.

    Raises `StoreError` when the row does not agree with its first or latest journal entry, when one
    of these does not carry its link, or when a body was erased.
    """
    id, kind, tenant, session, state, version, epoch, worker, is_open, made, last = row[:_RECORD]
    begins = made if row[_EVENT] != ERASED else row[_RECORD]  # An erasure stands for the first.
    first = _checked(row[_RECORD : _RECORD + _ENTRY], id, begins, secrets)
    latest = first
    if last != begins:
        latest = _checked(row[_RECORD + _ENTRY :], id, last, secrets)
    if latest.event == ERASED:
        first = latest  # It was written, and the earlier bodies have not been let go of yet.
    is_first = first.version == 1 or first.event == ERASED
    if not is_first or (latest.version, latest.state) != (version, state):
        raise _edited(id)
    frozen, changing = bodies(_body(first), _body(latest) if latest is not first else None)
    return Record(
        id=id,
        kind=Kind(kind),
        tenant=tenant,
        session=session,
        state=state,
        version=version,
        epoch=epoch,
        worker=worker,
        open=bool(is_open),
        frozen=frozen,
        changing=changing,
        made=made,
        last=last,
    )


def kept(row: Row, secrets: tuple[bytes, ...]) -> Kept:
    """Return a record with when it last moved, and whether its details are gone."""
    found = record(row, secrets)
    is_erased = row[_EVENT] == ERASED and row[_RECORD] == found.last
    return Kept(record=found, at=row[_AT], is_erased=is_erased)


def _checked(columns: Row, id: str, seq: int, secrets: tuple[bytes, ...]) -> Entry:
    if columns[:2] != (seq, id):
        raise _edited(id)
    found = entry(columns)
    verify(found, secret=secrets[0], older=secrets[1:])
    return found


def _body(entry: Entry) -> bytes:
    if entry.body is None:
        raise StoreError(f"what {entry.id} was about was erased; it cannot be acted upon any more")
    return entry.body


def _edited(id: str) -> StoreError:
    return StoreError(
        f"record {id} does not agree with its journal: it was edited outside landed. Nothing is "
        "done with it until a person has compared it with a backup"
    )
