"""The journal: every event in order, each entry linked to the one before it.

A link covers the *digest* of the body, so that a body can be erased while the chain still proves
what is left. With a secret the links are HMACs: whoever can edit the file still cannot make links.
The idea of chaining digests rather than bodies is that of Certificate Transparency's leaf hashes.
"""

import hashlib
import hmac
import json
from dataclasses import dataclass, replace

from landed.core.canonical import Json, digest
from landed.core.changes import Body, Move, Record
from landed.core.erased import ERASED
from landed.core.errors import StoreError

GENESIS = ""

# Bodies were checked when they came in and only their bytes are digested, so the plain encoder of
# the standard library is enough here; it is five times faster than the canonical form.
_encode = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, separators=(",", ":"), allow_nan=False
).encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the journal, as stored.

    `before` is the position of the same record's previous event (0 for its first). `body` is the
    JSON of what the event wrote, None once it was erased; `hash` is the link.
    """

    seq: int
    id: str
    version: int
    before: int
    event: str
    state: str
    at: float
    body: bytes | None
    body_digest: str
    prev: str
    hash: str


def body_of(move: Move) -> bytes:
    """Return what the journal keeps of a move.

    A first event holds what never changes, and what may change under `now` where that is not empty;
    every later event holds the whole changeable part. So two rows load a record. An erasure is like
    a first event: what is left of the record begins with it.
    """
    after = move.after
    if after.version > 1 and move.event.name != ERASED:
        return _encode(after.changing).encode()
    first = {**after.frozen, "now": after.changing} if after.changing else after.frozen
    return _encode(first).encode()


def bodies(made: bytes, last: bytes | None) -> tuple[Body, Body]:
    """Return the frozen and the changing part from a record's first and latest body.

    `last` is None when the record has had only its first event. Where it was erased, its erasure
    stands for the first.
    """
    frozen: dict[str, Json] = json.loads(made)
    now = frozen.pop("now", {})
    frozen.pop(ERASED, None)
    changing: Body = json.loads(last) if last is not None else now  # type: ignore[assignment]
    return frozen, changing


def as_of(record: Record, entry: Entry) -> Record:
    """Return `record` as it was right after one of its events, whose body is still there."""
    body: dict[str, Json] = json.loads(entry.body or b"{}")
    whole = entry.version == 1 or entry.event == ERASED
    changing: Body = body.get("now", {}) if whole else body  # type: ignore[assignment]
    return replace(
        record, state=entry.state, version=entry.version, changing=changing, last=entry.seq
    )


def body_digest(body: bytes) -> str:
    """Return the digest that a link covers in place of the body."""
    return digest(body, domain="journal-body")


def link(
    *,
    prev: str,
    seq: int,
    id: str,
    version: int,
    before: int,
    event: str,
    state: str,
    at: float,
    body_digest: str,
    secret: bytes = b"",
) -> str:
    """Return the hash of one entry, over the entry before it; an HMAC when there is a secret."""
    line = "\n".join(
        (prev, str(seq), id, str(version), str(before), event, state, repr(at), body_digest)
    ).encode()
    if secret:
        return hmac.new(secret, line, hashlib.sha256).hexdigest()
    return hashlib.sha256(line).hexdigest()


def verify(entry: Entry, *, secret: bytes = b"", older: tuple[bytes, ...] = ()) -> None:
    """Raise `StoreError` when an entry does not carry its own link or its own body.

    `older` are secrets that links were made with before `secret` took over; those stay good.
    """
    linked = any(
        hmac.compare_digest(_link_of(entry, each), entry.hash) for each in (secret, *older)
    )
    intact = entry.body is None or body_digest(entry.body) == entry.body_digest
    if not intact or not linked:
        raise StoreError(
            f"journal entry {entry.seq} of {entry.id} was edited after it was written; "
            "nothing is done with that record until a person has compared it with a backup"
        )


def _link_of(entry: Entry, secret: bytes) -> str:
    return link(
        prev=entry.prev,
        seq=entry.seq,
        id=entry.id,
        version=entry.version,
        before=entry.before,
        event=entry.event,
        state=entry.state,
        at=entry.at,
        body_digest=entry.body_digest,
        secret=secret,
    )
