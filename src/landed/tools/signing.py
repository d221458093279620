"""Signs what goes out as a webhook, and verifies what comes in as one, by Standard Webhooks.

Three headers carry it: `webhook-id` names the event and is the same for each try,
`webhook-timestamp` is when this try was made, and `webhook-signature` is a list of `v1,<base64>`,
one for each secret so that secrets can be changed without a gap. Signed is `id.timestamp.body`, by
HMAC-SHA256, over the *bytes* of the body: whoever parses and writes it again has another body.

The scheme is that of the Standard Webhooks specification 1.0.0
(https://github.com/standard-webhooks/standard-webhooks, `spec/standard-webhooks.md`). Its
asymmetric signatures (`v1a`) are passed over, as are versions to come.
"""

import base64
import hmac
import re
import secrets as chance
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256

from landed.core.errors import ContractError, ProposalError

ID = "webhook-id"
TIMESTAMP = "webhook-timestamp"
SIGNATURE = "webhook-signature"

_OURS = frozenset({ID, TIMESTAMP, SIGNATURE})

SECRET_PREFIX = "whsec_"
SECRET_MIN_BYTES, SECRET_MAX_BYTES = 24, 64

SECRETS_MAX = 8
"""Secrets of one receiver or sender at a time."""

SIGNATURES_MAX = 32
"""Signatures looked at in one request."""

HEADER_MAX_CHARS = 4096
"""Characters of one of the three headers."""

TOLERANCE_S = 300.0
"""Seconds by which the sender's clock may differ from ours, and for which a request is good."""

REMEMBERED_MAX = 10_000
"""Ids that a verifier remembers."""

# No dot: `a.1` and `2.b` would sign the same bytes as `a` and `1.2.b`.
_ID = re.compile(r"[!-\-/-~]{1,256}")
_TIMESTAMP = re.compile(r"[0-9]{1,12}")

Headers = Iterable[tuple[str, str]]
"""The names and values of a request's headers, in any case; most servers have them as `items()`."""


@dataclass(frozen=True, slots=True)
class Secret:
    """What both sides know. Its text is `whsec_` and base64; it is in no representation."""

    key: bytes = field(repr=False)

    @classmethod
    def read(cls, text: str) -> "Secret":
        """Read `whsec_…`; `ContractError`, without the text, for what is none."""
        try:
            if not text.startswith(SECRET_PREFIX):
                raise ValueError
            key = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
        except ValueError:  # Also what `binascii` raises, and base64 outside ASCII.
            raise ContractError("a webhook secret is `whsec_` and base64") from None
        if not SECRET_MIN_BYTES <= len(key) <= SECRET_MAX_BYTES:
            raise ContractError(
                f"a webhook secret has {SECRET_MIN_BYTES} to {SECRET_MAX_BYTES} bytes"
            )
        return cls(key)


def new_secret(random_bytes: Callable[[int], bytes] = chance.token_bytes) -> str:
    """Return a new secret as `whsec_…`, of 32 bytes."""
    return SECRET_PREFIX + base64.b64encode(random_bytes(32)).decode()


def secrets_of(texts: str | Sequence[str]) -> tuple[Secret, ...]:
    """Read one secret or several, the current one first; `ContractError` for none or too many."""
    each = (texts,) if isinstance(texts, str) else tuple(texts)
    if not 0 < len(each) <= SECRETS_MAX:
        raise ContractError(f"a webhook has 1 to {SECRETS_MAX} secrets")
    return tuple(Secret.read(text) for text in each)


def sign(
    secrets: Sequence[Secret], *, webhook_id: str, timestamp: int, body: bytes
) -> dict[str, str]:
    """Return the three headers. `timestamp` is whole seconds since the epoch, of this try.

    Raises `ProposalError` for an id that cannot be one: it is 1 to 256 printable characters of
    ASCII without a space or a dot.
    """
    if not is_id(webhook_id):
        raise ProposalError("a webhook id is 1 to 256 characters of ASCII, no space and no dot")
    written = str(timestamp)
    signatures = [_signature(each, webhook_id, written, body) for each in secrets]
    return {
        ID: webhook_id,
        TIMESTAMP: written,
        SIGNATURE: b" ".join(signatures).decode("ascii"),
    }


def is_id(text: str) -> bool:
    """Say whether a webhook may be called that."""
    return _ID.fullmatch(text) is not None


class Problem(StrEnum):
    """Why a request is not believed. For the log: the sender is told that it is refused."""

    MALFORMED = "malformed"
    OLD = "old"
    FUTURE = "future"
    FORGED = "forged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A request that its sender signed. `sent_at` is when, seconds since the epoch.

    Take it by `rt.receive(…, delivery=…)`, then tell the verifier by `taken`.
    """

    webhook_id: str
    sent_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A request that its sender signed, of an event that was taken already.

    Answer as if it were the first (a 2xx), and do nothing: a sender that did not hear our yes is
    right to send again, and somebody who replays a request gains nothing by the answer.
    """

    webhook_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A request that is not believed. Answer 401, or 400 where it is malformed, and no reason."""

    problem: Problem
    reason: str


class Verifier:
    """Says whether a request came from whoever shares the secrets, just now, and is new.

    secrets     `whsec_…`, one or several: during a change of secrets the old one stays for a while
    tolerance_s how far the timestamp may be from `now`, either way
    remembers   how many ids of events that were taken are kept

    What it remembers is in this process's memory, and bounded: it spares work, and it ends a replay
    within the tolerance. **The lasting one is the durable inbox**: `rt.receive(…, delivery=id)`
    takes one delivery id as one input, after a restart and in another process too. So an id is
    remembered only by `taken`, which is called after `receive` returned. An event whose `receive`
    failed is not lost: the sender tries again, and is believed again.

    Use one verifier for each sender: two senders may use the same ids.
    """

    def __init__(
        self,
        secrets: str | Sequence[str],
        *,
        tolerance_s: float = TOLERANCE_S,
        remembers: int = REMEMBERED_MAX,
    ) -> None:
        self._secrets = secrets_of(secrets)
        self._tolerance_s = tolerance_s
        self._remembers = remembers
        self._taken: OrderedDict[str, float] = OrderedDict()

    def verify(
        self, headers: Headers, body: bytes, *, now: float
    ) -> Verified | Replayed | Rejected:
        """Judge one request by its headers and the raw bytes of its body.

        The signature is judged before the age, so that only a real sender learns anything about
        our clock.
        """
        read = _read(headers)
        if isinstance(read, str):
            return Rejected(problem=Problem.MALFORMED, reason=read)
        webhook_id, timestamp, signatures = read
        if not self._signed(webhook_id, timestamp, signatures, body):
            return Rejected(problem=Problem.FORGED, reason="no signature is by a secret we know")
        age_s = now - int(timestamp)
        if age_s > self._tolerance_s:
            return Rejected(problem=Problem.OLD, reason=f"sent {age_s:.0f} s ago")
        if -age_s > self._tolerance_s:
            return Rejected(problem=Problem.FUTURE, reason=f"sent {-age_s:.0f} s from now")
        if webhook_id in self._taken:
            return Replayed(webhook_id=webhook_id)
        return Verified(webhook_id=webhook_id, sent_at=int(timestamp))

    def taken(self, webhook_id: str, *, now: float) -> None:
        """Remember that an event was received durably."""
        self._taken.setdefault(webhook_id, now)
        # What was sent as far in the future as is allowed stays good for twice the tolerance.
        good_s = 2 * self._tolerance_s
        while self._taken:
            oldest = next(iter(self._taken))
            if len(self._taken) <= self._remembers and now - self._taken[oldest] <= good_s:
                return
            del self._taken[oldest]

    def _signed(
        self, webhook_id: str, timestamp: str, signatures: Sequence[bytes], body: bytes
    ) -> bool:
        # All are compared, each in constant time: how long it takes says nothing about which. Those
        # of other versions begin otherwise, and so are no match.
        matches = [
            hmac.compare_digest(_signature(secret, webhook_id, timestamp, body), given)
            for secret in self._secrets
            for given in signatures
        ]
        return any(matches)


def _signature(secret: Secret, webhook_id: str, timestamp: str, body: bytes) -> bytes:
    signed = b".".join((webhook_id.encode("ascii"), timestamp.encode("ascii"), body))
    return b"v1," + base64.b64encode(hmac.digest(secret.key, signed, sha256))


def _read(headers: Headers) -> tuple[str, str, list[bytes]] | str:
    """Return the three headers, the last as its parts, or what is wrong with them."""
    found = [(name.lower(), value) for name, value in headers if name.lower() in _OURS]
    ours = dict(found)
    if len(found) != len(_OURS) or len(ours) != len(_OURS):
        return "a header of the three is missing, or there twice"
    if any(len(value) > HEADER_MAX_CHARS or not value.isascii() for value in ours.values()):
        return "a header of the three is too long, or not ASCII"
    if not is_id(ours[ID]):
        return f"{ID} is no id"
    if not _TIMESTAMP.fullmatch(ours[TIMESTAMP]):
        return f"{TIMESTAMP} is no whole number of seconds"
    given = ours[SIGNATURE].split(" ")
    if len(given) > SIGNATURES_MAX:
        return f"{SIGNATURE} has more than {SIGNATURES_MAX} signatures"
    return ours[ID], ours[TIMESTAMP], [each.encode() for each in given]
