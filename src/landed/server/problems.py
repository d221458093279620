"""What goes wrong, as problem details (RFC 9457): what it is, and what to do next.

Nobody is told what is not theirs: what a caller may not see reads as what there is not. No value of
a request is repeated, and nothing of ours but the sentence.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict
from starlette.responses import JSONResponse

from landed.core.approval import Problem as Refusal
from landed.core.errors import (
    ApprovalError,
    BusyError,
    ForbiddenError,
    LandedError,
    ProposalError,
    StoreError,
    UsedBeforeError,
)

MEDIA_TYPE = "application/problem+json"
RETRY_S = 1

# What it is ▸ its status, its title.
KINDS: Mapping[str, tuple[int, str]] = {
    "malformed": (400, "The request cannot be read"),
    "cursor": (400, "This is no cursor of this list"),
    "unknown-field": (400, "There is no such field here"),
    "key-missing": (400, "An Idempotency-Key is needed"),
    "key-malformed": (400, "This is no Idempotency-Key"),
    "unauthenticated": (401, "Nobody is known by this token"),
    "forbidden": (403, "This is not for you to do"),
    "elsewhere": (403, "This is not called from there"),
    "absent": (404, "There is no such thing"),
    "no-such-method": (405, "This cannot be done here"),
    "too-slow": (408, "The body took too long"),
    "in-progress": (409, "The first request with this key is still at work"),
    "changed": (409, "The world has moved since the preview"),
    "state": (409, "It cannot be done as it stands"),
    "not-agreed": (409, "A person has to agree first"),
    "expired": (410, "Its time is over"),
    "moved": (412, "The plan is not as you saw it"),
    "fingerprint": (412, "This is not the fingerprint of what was shown"),
    "too-large": (413, "The body is too large"),
    "not-json": (415, "The body is to be JSON"),
    "invalid": (422, "What was asked for does not fit"),
    "key-used": (422, "This Idempotency-Key was used before, for something else"),
    "match-missing": (428, "An If-Match is needed"),
    "ours": (500, "Something is wrong here"),
    "busy": (503, "Too much is in hand here"),
    "store": (503, "The store cannot do this now"),
}

# Of a yes, or of a plan token, that was not taken.
_REFUSED: Mapping[str, str] = {
    Refusal.ABSENT: "absent",
    Refusal.MISMATCH: "absent",
    Refusal.EXPIRED: "expired",
    Refusal.FINGERPRINT: "fingerprint",
    Refusal.NOT_AGREED: "not-agreed",
}
_STORE = "nothing of it was written; ask again in a moment"


class ProblemError(Exception):
    """A problem of one of the `KINDS`, with what is to be said beside it."""

    def __init__(
        self, kind: str, detail: str = "", *, headers: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.more = kind, detail, more
        self.headers = dict(headers or {})


class Moved(BaseModel):
    """One fact that moved: in which step, what it was when it was shown, and what it is now."""

    step: int
    field: str
    was: Any
    now: Any


class Problem(BaseModel):
    """What went wrong, for code by its `type`, for a person by its `detail`."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str = ""
    errors: list[dict[str, str]] | None = None
    changed: list[Moved] | None = None
    plan_id: str | None = None
    plan_created_at: str | None = None
    problem: str | None = None
    again: str | None = None


def absent() -> ProblemError:
    """Return the one answer for all that there is not, and for all that is somebody else's."""
    return ProblemError("absent", "there is nothing of that name, or it is not yours")


def response_of(error: ProblemError) -> JSONResponse:
    """Return a problem as it goes over the wire."""
    status, title = KINDS[error.kind]
    body = {
        "type": f"urn:landed:problem:{error.kind}",
        "title": title,
        "status": status,
        "detail": error.detail or title,
        **error.more,
    }
    headers = {"Cache-Control": "no-store", **error.headers}
    return JSONResponse(body, status_code=status, headers=headers, media_type=MEDIA_TYPE)


def of_ours(error: LandedError) -> ProblemError:
    """Return what an error of ours is to whoever calls over HTTP."""
    match error:
        case ApprovalError():
            kind = _REFUSED.get(error.problem, "state")
            if kind == "absent":
                return absent()
            return ProblemError(kind, str(error), problem=error.problem, again=error.again)
        case UsedBeforeError():
            return ProblemError("key-used", str(error))
        case ForbiddenError():
            return ProblemError("forbidden", str(error))
        case BusyError():
            wait = {"Retry-After": str(math.ceil(error.retry_after_s))}
            return ProblemError("busy", str(error), headers=wait)
        case ProposalError():
            return ProblemError("invalid", str(error))
        case StoreError():
            return ProblemError("store", _STORE, headers={"Retry-After": str(RETRY_S)})
        case _:
            return ProblemError("ours", "it was written to the log")


# What is missing or malformed in a header of that name.
_HEADERS = {"idempotency-key": "key-missing", "if-match": "match-missing"}


def of_validation(errors: Sequence[Mapping[str, Any]]) -> ProblemError:
    """Return why a request does not fit, without what was in it."""
    for error in errors:
        where = tuple(map(str, error["loc"]))
        if (
            where[:1] == ("header",)
            and error["type"] == "missing"
            and where[-1].lower() in _HEADERS
        ):
            return ProblemError(_HEADERS[where[-1].lower()])
    told = [
        {"field": ".".join(map(str, error["loc"][:8])), "says": str(error["msg"])[:200]}
        for error in errors[:20]
    ]
    kinds = {str(error["type"]) for error in errors}
    kind = "malformed" if "json_invalid" in kinds else "invalid"
    if "extra_forbidden" in kinds:
        kind = "unknown-field"
    return ProblemError(kind, errors=told)


def documented(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """Return the problems that a route may answer with, for its OpenAPI."""
    found: dict[int | str, dict[str, Any]] = {}
    schema = {"$ref": "#/components/schemas/Problem"}
    for kind in sorted(kinds, key=lambda one: KINDS[one][0]):
        status, title = KINDS[kind]
        before = found.get(status)
        said = f"{before['description']}; {title}" if before else title
        found[status] = {"description": said, "content": {MEDIA_TYPE: {"schema": schema}}}
    return found
