"""JSON that is safe to record, and the one form of it that is compared, stored and hashed.

Two programs that mean the same arguments must write the same bytes, or a retry looks like a new
call and an approval covers what nobody saw. So values come in through one border (`parse` for
text, `checked` for Python values) and go out in one form (`canonical`: RFC 8785, the JSON
Canonicalization Scheme), which is hashed with SHA-256. The rules of the border:

- An object names each key once. Keys and texts are whole Unicode, never half a surrogate pair.
- Numbers are IEEE doubles. 1, 1.0 and 1e0 are one number and come in as the int 1; -0 as 0. A
  number that the canonical form would spell as a whole number outside ±(2**53 - 1) is refused:
  its neighbours are the same double, and two amounts would share one fingerprint.
- Unicode is never folded: é as one character and é as two are two texts.
- Depth and size are bounded.

So `parse(canonical(value)) == value` for all that came in, with the same types: a send after a
crash gets the very arguments of the first send.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias, cast

from landed.core.errors import ProposalError

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A value that JSON can say. Its arrays are lists and tuples; no other sequence is accepted."""

MAX_DEPTH = 64
"""Levels of arrays and objects accepted from outside; a lone number has none."""

MAX_BYTES = 256 * 1024
"""Bytes of UTF-8 accepted from outside in one value."""

RECORD_DEPTH = 2 * MAX_DEPTH
"""Levels that `canonical` writes: an accepted value and the record that is wrapped around it."""

_WHOLE_MAX = 2**53 - 1  # Beyond it, a double cannot tell each whole number from the next.
_EXPONENT_FROM = 1e21  # From here on the canonical form is 1e+21, not digits.
_WEIGHT_BYTES = 25  # "-1.2345678901234567e-100," is the most that one unit of weight can take.
_SHOWN_CHARS = 40  # Of a key or text, in an error.

_TOO_LONG = (
    "this number is outside ±(2**53 - 1), where doubles are no longer exact: "
    "send money as integer minor units, and a longer number as text"
)

_INSTEAD_OF = {
    "Decimal": "send money as integer minor units, or the number as text",
    "bytes": "send it as base64 text",
    "bytearray": "send it as base64 text",
    "set": "send it as a sorted list",
    "frozenset": "send it as a sorted list",
    "datetime": "send it as RFC 3339 text in UTC",
    "date": "send it as text, YYYY-MM-DD",
    "UUID": "send it as text",
}


def parse(text: str | bytes, *, max_depth: int = MAX_DEPTH, max_bytes: int = MAX_BYTES) -> Json:
    """Read one JSON text strictly, into dicts and lists of its own.

    Refuses what two readers could understand differently: a key twice, NaN, half a surrogate
    pair, a whole number outside ±(2**53 - 1), bytes that are not UTF-8, a byte order mark,
    trailing text. Refuses more than `max_depth` levels, and more than `max_bytes` bytes in the
    text or in its canonical form (which spells 1e15 out). Always with a `ProposalError` that names
    the place (`$.lines[2].price`) and what to send instead.
    """
    try:
        value: object = _decoder.decode(_text_within(text, max_bytes))
    except json.JSONDecodeError as error:
        raise ProposalError(
            f"this is not one JSON value (line {error.lineno}, column {error.colno}: {error.msg}): "
            "send exactly one and nothing after it"
        ) from None
    except RecursionError:
        raise ProposalError(f"$: {_too_deep(max_depth)}") from None
    return checked(value, max_depth=max_depth, max_bytes=max_bytes)


def checked(value: object, *, max_depth: int = MAX_DEPTH, max_bytes: int = MAX_BYTES) -> Json:
    """Check a Python value by the rules of `parse`, and return a copy that nobody else can change.

    Mappings become dicts, lists and tuples become lists, and subclasses (the members of a
    `StrEnum`) become their plain value. Anything else, such as a set, bytes, a `Decimal`, a date
    or a key that is not text, is refused with a `ProposalError` that says what to send instead.
    `max_bytes` bounds the canonical form.
    """
    walk = _Walk(max_depth=max_depth, max_bytes=max_bytes)
    plain = walk.start(value)
    # The weight is the least that the bytes can be. Only when the most they can be is too much
    # is the value written out to be measured.
    if walk.weight * _WEIGHT_BYTES > max_bytes and len(canonical(plain)) > max_bytes:
        raise ProposalError(f"$: {_too_big(max_bytes)}")
    return plain


def canonical(value: Json) -> bytes:
    """Write a value in its one form, RFC 8785, as UTF-8.

    Two values give the same bytes exactly when they mean the same: the order of keys and 1.0 for
    1 make no difference, true for 1 does. A value that was not checked yet may be given: what
    `checked` would refuse is refused here, with a `ProposalError`, only that depth is bounded by
    `RECORD_DEPTH` and size is not bounded.
    """
    if _is_simple(value, RECORD_DEPTH):
        try:
            return _encode(value).encode()
        except UnicodeEncodeError:
            pass  # Half a surrogate pair, somewhere; the walk finds it and says where.
    plain = _Walk(max_depth=RECORD_DEPTH, max_bytes=math.inf).start(value)
    return _written(plain).encode()


def fingerprint(value: Json, *, domain: str) -> str:
    """Return the name of a value: `sha256:` and 64 hex digits.

    Any language can compute it: RFC 8785 + SHA-256. The hash is over the line
    `landed/<domain>/v1`, a line feed, and the canonical form. `domain` (letters a to z and
    hyphens) says what is hashed, so that one kind of fingerprint never passes for another; with
    other characters it is a `ValueError`. Otherwise the errors are those of `canonical`.
    """
    return digest(canonical(value), domain=domain)


def digest(body: bytes, *, domain: str) -> str:
    """Return the `fingerprint` of a value whose canonical bytes are at hand."""
    return "sha256:" + hashlib.sha256(_prefix(domain) + body).hexdigest()


@lru_cache(maxsize=64)
def _prefix(domain: str) -> bytes:
    if re.fullmatch("[a-z-]+", domain) is None:
        raise ValueError(f"a domain is letters a to z and hyphens, not {domain!r}")
    return f"landed/{domain}/v1\n".encode()


# The way out. There are two writers: the C encoder wherever `_is_simple` says that it writes RFC
# 8785, and the short one in Python for the rest, once `_Walk` has made the value plain. Neither
# looks for cycles, because both walks end at a depth.


_encode = json.JSONEncoder(
    sort_keys=True,
    ensure_ascii=False,
    check_circular=False,
    allow_nan=False,
    separators=(",", ":"),
).encode


def _is_simple(value: object, levels: int) -> bool:
    """Say whether the C encoder surely writes the canonical form; any doubt is a no.

    It sorts keys by code point, which is the order by UTF-16 unit while no key leaves the Basic
    Multilingual Plane. It writes `repr` of a float, which is the ECMAScript form from 1e-4 up to
    2**53 unless the number is whole. Its escapes are the canonical ones everywhere.
    """
    if type(value) is str or value is None or type(value) is bool:
        return True
    if type(value) is int:
        return -_WHOLE_MAX <= value <= _WHOLE_MAX
    if type(value) is float:
        return 1e-4 <= abs(value) <= _WHOLE_MAX and not value.is_integer()
    return levels > 0 and _holds_simple(value, levels - 1)


def _holds_simple(value: object, levels: int) -> bool:
    if type(value) is dict:
        members = cast("dict[object, object]", value)
        for key in members:
            if type(key) is not str or not (key.isascii() or max(key) <= "\uffff"):
                return False
        items: Iterable[object] = members.values()
    elif type(value) is list or type(value) is tuple:
        items = cast("Sequence[object]", value)
    else:
        return False
    for item in items:
        if type(item) is str:
            continue  # Most items are, and a call for each of them would be felt.
        if not _is_simple(item, levels):
            return False
    return True


def _written(plain: Json) -> str:
    if type(plain) is dict:
        members = cast("dict[str, Json]", plain)
        keys = sorted(members, key=_utf16_units)
        return "{" + ",".join(f"{_encode(key)}:{_written(members[key])}" for key in keys) + "}"
    if type(plain) is list:
        return "[" + ",".join(map(_written, cast("list[Json]", plain))) + "]"
    return _ecmascript(plain) if type(plain) is float else _encode(plain)


def _utf16_units(key: str) -> bytes:
    return key.encode("utf-16-be")


def _ecmascript(number: float) -> str:
    """Spell a float as ECMAScript does, if it is not whole or has an exponent there.

    `repr` finds the same shortest digits. It differs in two places: it turns to an exponent two
    decimals earlier, and it pads the exponent to two digits.
    """
    text = repr(number)
    mantissa, _, exponent = text.partition("e")
    if exponent in ("-05", "-06"):
        sign = "-" if number < 0 else ""
        zeros = "0.0000" if exponent == "-05" else "0.00000"
        return sign + zeros + mantissa.removeprefix("-").replace(".", "")
    return text.replace("e-0", "e-")


# The way in: one walk that copies, counts and refuses.


class _RefusedError(Exception):
    """What JSON cannot say, and the steps that lead there, the innermost first."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.steps: list[str | int] = []

    def __str__(self) -> str:
        return f"${''.join(map(_step, reversed(self.steps)))}: {self.args[0]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repeated:
    """Stands for an object that named `key` twice, until the walk comes by and knows where."""

    key: str


class _Walk:
    """One pass over a value from outside; `weight` counts its values and their characters."""

    __slots__ = ("max_bytes", "max_depth", "weight")

    def __init__(self, *, max_depth: int, max_bytes: float) -> None:
        self.max_depth = max_depth
        self.max_bytes = max_bytes
        self.weight = 0

    def start(self, value: object) -> Json:
        try:
            return self._plain(value, 0)
        except _RefusedError as refused:
            raise ProposalError(str(refused)) from None

    def _plain(self, value: object, depth: int) -> Json:
        self.weight += 1
        if type(value) is str:
            self.weight += len(value)
            return value if value.isascii() else _whole_text(value)
        if value is None or type(value) is bool:
            return value
        if type(value) is int and -_WHOLE_MAX <= value <= _WHOLE_MAX:
            return value
        if type(value) is dict or isinstance(value, Mapping):
            return self._object(cast("Mapping[object, object]", value), depth + 1)
        if isinstance(value, (list, tuple)):
            return self._array(cast("Sequence[object]", value), depth + 1)
        return _rare(value)

    def _object(self, members: Mapping[object, object], depth: int) -> Json:
        self._stay_within(depth)
        plain: dict[str, Json] = {}
        for key, item in members.items():
            name = key if type(key) is str and key.isascii() else _name(key)
            self.weight += 1 + len(name)
            try:
                plain[name] = self._plain(item, depth)
            except _RefusedError as refused:
                refused.steps.append(name)
                raise
        return plain

    def _array(self, items: Sequence[object], depth: int) -> Json:
        self._stay_within(depth)
        plain: list[Json] = []
        for index, item in enumerate(items):
            try:
                plain.append(self._plain(item, depth))
            except _RefusedError as refused:
                refused.steps.append(index)
                raise
        return plain

    def _stay_within(self, depth: int) -> None:
        # Asked before each container is opened, so that a value that holds itself, or one list a
        # million times over, ends here.
        if depth > self.max_depth:
            raise _RefusedError(_too_deep(self.max_depth))
        if self.weight > self.max_bytes:
            raise _RefusedError(_too_big(self.max_bytes))


def _rare(value: object) -> Json:
    """Take what few values are: floats and subclasses; refuse what JSON does not have."""
    match value:
        case float():
            return _real_number(float(value))
        case int():
            return _whole_number(int(value))
        case str():
            # Not str(value): for a member of (str, Enum) that is the name of the member.
            return _whole_text(str.__str__(value))
        case _Repeated():
            raise _RefusedError(f"the key {_shown(value.key)} appears twice: send each key once")
        case _:
            kind = type(value).__name__
            advice = _INSTEAD_OF.get(kind, "send text, a number, a list or an object")
            raise _RefusedError(f"JSON has no {kind}: {advice}")


def _name(key: object) -> str:
    if not isinstance(key, str):
        raise _RefusedError(f"the keys of an object are text, not {type(key).__name__}: quote it")
    return _whole_text(str.__str__(key))


def _whole_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _RefusedError(
            f"the text {_shown(text)} holds half of a surrogate pair: send whole characters"
        ) from None
    return text


def _whole_number(number: int) -> int:
    if not -_WHOLE_MAX <= number <= _WHOLE_MAX:
        raise _RefusedError(_TOO_LONG)
    return number


def _real_number(number: float) -> int | float:
    if math.isnan(number):
        raise _RefusedError("JSON has no NaN: leave it out or send null")
    if math.isinf(number):
        raise _RefusedError(_TOO_LONG)
    if number.is_integer() and abs(number) < _EXPONENT_FROM:
        return _whole_number(int(number))
    return number


def _too_deep(max_depth: int) -> str:
    return f"this is nested deeper than {max_depth} levels: send it flatter"


def _too_big(max_bytes: float) -> str:
    return f"this is more than {max_bytes} bytes: send less in one value"


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if step.isascii() and step.isidentifier() and len(step) <= _SHOWN_CHARS:
        return f".{step}"
    return f"[{_shown(step)}]"


def _shown(text: str) -> str:
    cut = text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "..."
    return json.dumps(cut)  # In ASCII, so that half a surrogate pair can be printed.


# Text is read by the standard library. What that would let pass is left standing in the value, for
# the walk to refuse and say where.


def _text_within(text: str | bytes, max_bytes: int) -> str:
    if len(text) > max_bytes:
        raise ProposalError(f"$: {_too_big(max_bytes)}")
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            raise ProposalError(f"byte {error.start} is not UTF-8: send UTF-8") from None
    elif len(text.encode("utf-8", "surrogatepass")) > max_bytes:
        raise ProposalError(f"$: {_too_big(max_bytes)}")
    if text.startswith("\ufeff"):
        raise ProposalError("the text starts with a byte order mark: send it without")
    return text


def _members(pairs: list[tuple[str, object]]) -> object:
    members: dict[str, object] = {}
    for key, item in pairs:
        if key in members:
            return _Repeated(key=key)
        members[key] = item
    return members


def _digits(text: str) -> int | float:
    # A sign and 16 digits hold every accepted number. More are not read, for that takes a time
    # that grows with their square.
    return int(text) if len(text) <= 17 else math.inf


_decoder = json.JSONDecoder(object_pairs_hook=_members, parse_int=_digits)
