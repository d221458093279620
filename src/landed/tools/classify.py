"""What an exception or a status code says about the effect: refused, never left, or nothing.

Only three things may be believed blindly: that a service refused before any effect, that it asked
to come back later, and that nothing left this machine. All else is an answer that was lost. The
errors of other libraries are known by their names, so that none of those need be installed.
"""

import time
from collections.abc import Callable
from operator import attrgetter

from landed.core.contract import Contract
from landed.core.errors import NotSentError, RefusedError
from landed.core.outcome import AnswerLost, NotSent, Refused, SendOutcome

REASON_MAX_CHARS = 300

TOO_MANY = 429
WAIT_MIN_S = 1.0
"""The wait after a 429 that names no time, and the shortest."""

Unanswered = Refused | NotSent | AnswerLost

Classifier = Callable[[Exception, Contract], SendOutcome]
"""Says what an exception of a tool's own code proves. `RefusedError` and `NotSentError` never get
there: they are the author's word, and are taken as such."""

_HTTPX = ("httpx", "httpx2")

# Raised before a byte of the request is written. Not here: what `requests`, `urllib` and `aiohttp`
# raise when they cannot connect, because those follow redirects by themselves, and the connection
# that failed may be the one *after* the effect.
NEVER_LEFT = frozenset(
    [
        *(
            f"{library}.{name}"
            for library in _HTTPX
            for name in (
                "ConnectError",
                "ConnectTimeout",
                "InvalidURL",
                "PoolTimeout",
                "ProxyError",
                "UnsupportedProtocol",
            )
        ),
        "builtins.ConnectionRefusedError",
        "socket.gaierror",
    ]
)

# Raised for a reply: where its status is, the redirects that led to it, and its headers.
STATUS_ERRORS = {
    **dict.fromkeys(
        ("httpx.HTTPStatusError", "httpx2.HTTPStatusError", "requests.exceptions.HTTPError"),
        ("response.status_code", "response.history", "response.headers"),
    ),
    "aiohttp.client_exceptions.ClientResponseError": ("status", "history", "headers"),
}


def nothing_proven(error: Exception, contract: Contract) -> SendOutcome:
    """Take every exception for a lost answer, as is right for code that one cannot see into.

    A function may have sent before it failed: a second request, or a retry of its own after a
    time-out. Then neither "connection refused" nor a 404 says anything about the first.
    """
    return AnswerLost(reason=described(error))


def one_request(error: Exception, contract: Contract) -> Unanswered:
    """Believe what an HTTP client raised, for code that makes *one* request and no other.

    That is a promise: one request per call, no retries in the function or its client, redirects
    off (httpx does not follow them unless told to). Then a connection that was never made is *not
    sent*, as is a 429, a status of the contract's `refusals` is *refused*, and all else is *answer
    lost*.
    """
    names = [f"{each.__module__}.{each.__qualname__}" for each in type(error).__mro__]
    if not NEVER_LEFT.isdisjoint(names):
        return NotSent(reason=described(error))
    for name in names:
        if name in STATUS_ERRORS:
            return _of_reply(error, contract, *STATUS_ERRORS[name])
    return AnswerLost(reason=described(error))


def of_error(error: Exception, contract: Contract, raises: Classifier) -> SendOutcome:
    """Return the outcome of a send whose code raised `error`; never raises itself."""
    match error:
        case RefusedError():
            return Refused(reason=bounded(str(error)) or "no reason was given")
        case NotSentError():
            return NotSent(reason=bounded(str(error)) or "no reason was given")
        case _:
            try:
                return raises(error, contract)
            except Exception as own:
                return AnswerLost(reason=f"{described(error)}; classifying it: {described(own)}")


def of_status(
    status: int, contract: Contract, *, says: str = "", wait_s: float | None = None
) -> Unanswered:
    """Return what a status that is no yes says, with the service's own words `says`, bounded.

    A 429 that is no refusal of the contract is *not sent*: nobody has looked at the call, and the
    same one goes again after `wait_s` (its `Retry-After`, where it has one). A 503 leaves doubt
    also with a `Retry-After`: a proxy says it of a request that it may have passed on.
    """
    if status in contract.refusals:
        return Refused(reason=bounded(f"{status} {says}"))
    if status == TOO_MANY:
        wait_s = max(wait_s or 0.0, WAIT_MIN_S)
        return NotSent(reason=bounded(f"429, asked to wait {wait_s:g} s: {says}"), wait_s=wait_s)
    return AnswerLost(reason=bounded(f"{status} {says}"))


def described(error: BaseException) -> str:
    """Return an exception as one bounded line of text."""
    return bounded(f"{type(error).__name__}: {error}".removesuffix(": "))


def bounded(text: str) -> str:
    """Return `text` as one line without control characters, of at most REASON_MAX_CHARS."""
    start = text[: 2 * REASON_MAX_CHARS]
    line = " ".join("".join(c if c.isprintable() else " " for c in start).split())
    if len(line) <= REASON_MAX_CHARS and len(start) == len(text):
        return line
    return line[: REASON_MAX_CHARS - 1] + "…"


def _of_reply(
    error: Exception, contract: Contract, status: str, history: str, headers: str
) -> Unanswered:
    try:
        code: object = attrgetter(status)(error)
        redirected = bool(attrgetter(history)(error))
    except AttributeError:
        return AnswerLost(reason=described(error))
    # After a redirect the refusal speaks of the second request, and nothing of the first.
    if redirected or not isinstance(code, int):
        return AnswerLost(reason=described(error))
    return of_status(code, contract, says=str(error), wait_s=_wait_s(error, headers))


def _wait_s(error: Exception, headers: str) -> float | None:
    # Here, for it reads dates, which few programs ever need.
    from landed.tools.retry_after import retry_after_s

    try:
        header: object = attrgetter(headers)(error)["Retry-After"]
    except (AttributeError, LookupError, TypeError):
        return None
    return retry_after_s(header, time.time()) if isinstance(header, str) else None
