"""The headers by which a request may come again: its key, what it saw, and how long it waits.

`Idempotency-Key` is the one of draft-ietf-httpapi-idempotency-key-header-07, quoted or not. There
is no table of keys: a key is the call id of an ask, so the plan that it made is the store of its
result. It is kept for as long as that record, and its name for ever: no key is good for a second
thing, whenever it comes. It is the caller's own within a tenant and a route.
"""

import re
from typing import Annotated

from fastapi import Header

from landed.core.key import name_of
from landed.core.value import PlanValue
from landed.server.problems import ProblemError

KEY_MAX = 255  # characters
WAIT_S = 25.0  # how long an answer is waited for, where nothing is said
WAIT_MAX_S = 30.0

_QUOTED = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')
_BARE = re.compile(r"[\x21\x23-\x7e]+")
_WAIT = re.compile(r"wait\s*=\s*([0-9]{1,6})")

KeyHeader = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        max_length=2 * KEY_MAX + 2,
        description="Names this request for ever: the same again gets what the first came to.",
    ),
]
MatchHeader = Annotated[
    str,
    Header(
        alias="If-Match",
        max_length=1000,
        description="The ETag of the plan as you saw it, or *.",
    ),
]
PreferHeader = Annotated[
    str,
    Header(alias="Prefer", max_length=1000, description="respond-async, or wait=SECONDS (7240)."),
]


def key_of(header: str) -> str:
    """Return the key that a header names; raises `ProblemError` for none."""
    given = header.strip()
    quoted = _QUOTED.fullmatch(given)
    key = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else given
    if not (quoted or _BARE.fullmatch(given)) or not 0 < len(key) <= KEY_MAX:
        raise ProblemError(
            "key-malformed", f"a key is 1 to {KEY_MAX} printable characters, in quotes or not"
        )
    return key


def call_id(principal: str, route: str, key: str) -> str:
    """Return the call id that a key of somebody's is, on one route."""
    return name_of("http", principal, route, key)


def patience_s(prefer: str) -> float:
    """Return how long an answer is waited for."""
    wanted = prefer.lower()
    if found := _WAIT.search(wanted):
        return min(float(found[1]), WAIT_MAX_S)
    return 0.0 if "respond-async" in wanted else WAIT_S


def etag_of(value: PlanValue) -> str:
    """Return the strong validator of a plan: it is another after whatever happens to the plan."""
    return f'"{value.version}-{value.fingerprint.rpartition(":")[2][:16]}"'


def require_match(header: str, value: PlanValue) -> None:
    """Raise `ProblemError` where the plan is not as the caller saw it."""
    seen = [each.strip() for each in header.split(",")]
    if "*" not in seen and etag_of(value) not in seen:
        raise ProblemError(
            "moved", "get the plan again and look at it", headers={"ETag": etag_of(value)}
        )
