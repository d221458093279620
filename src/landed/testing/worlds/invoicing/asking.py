"""What a request to the invoicing service must say; anything else is refused with a 400."""

from collections.abc import Callable, Sequence
from typing import cast

from landed.testing.worlds.far_side import Json, ProblemError, count, is_text
from landed.testing.worlds.invoicing import figures

IDS_MAX = 100

LINE = ("what", "quantity", "unit_price", "unit_cents")


def draft_asked(body: Json) -> Json:
    """Check what a draft is to be."""
    return {"contact": text_asked(body, "contact"), "lines": lines_asked(body)}


def lines_asked(body: Json) -> list[Json]:
    """Check lines, and return them as they were written; the refusal says which one is wrong."""
    lines = body.get("lines")
    try:
        figures.lines_of(lines)
    except ValueError as error:
        raise ProblemError(400, "bad-lines", str(error)) from None
    # Pricing them has shown that they are objects.
    written = cast("Sequence[Json]", lines)
    return [{name: one[name] for name in LINE if one.get(name) is not None} for one in written]


def contact_asked(body: Json) -> Json:
    """Check the facts of a contact that are given; each but the name may be null."""
    given: Json = {}
    for name in ("name", "email", "tax_id"):
        if name in body:
            is_null = name != "name" and body[name] is None
            given[name] = None if is_null else text_asked(body, name)
    if "terms_days" in body:
        given["terms_days"] = None if body["terms_days"] is None else days_asked(body, "terms_days")
    return given


def void_asked(body: Json) -> Json:
    """Check which invoice is voided; the reason may be empty."""
    reason = body.get("reason", "")
    if not is_text(reason):
        raise ProblemError(400, "bad-reason", "reason must be one line of text")
    return {"invoice": text_asked(body, "invoice"), "reason": reason}


def payment_asked(body: Json) -> Json:
    """Check a payment; without `cents` it is all that is open."""
    return {
        "invoice": text_asked(body, "invoice"),
        "cents": None if body.get("cents") is None else _cents(body),
        "notify_customer": _flag(body.get("notify_customer", False), "notify_customer"),
    }


def reminder_asked(body: Json) -> Json:
    """Check a reminder."""
    days_before = days_asked(body, "days_before")
    return {"invoice": text_asked(body, "invoice"), "days_before": days_before}


def expense_asked(body: Json) -> Json:
    """Check an expense."""
    return {"what": text_asked(body, "what"), "cents": _cents(body)}


def switch_asked(body: Json) -> Json:
    """Check which way a switch goes."""
    return {"on": _flag(body.get("on"), "on")}


def one_asked(name: str) -> Callable[[Json], Json]:
    """Return the check of a body that says one id."""
    return lambda body: {name: text_asked(body, name)}


def many_asked(name: str) -> Callable[[Json], Json]:
    """Return the check of a body that lists ids."""

    def asked(body: Json) -> Json:
        ids = body.get(name)
        listed = cast("list[object]", ids) if isinstance(ids, list) else []
        texts = [id for id in listed if isinstance(id, str) and is_text(id)]
        if not 0 < len(set(texts)) == len(listed) <= IDS_MAX:
            rule = f"{name} must be a list of 1 to {IDS_MAX} different ids"
            raise ProblemError(400, f"bad-{name}", rule)
        return {name: texts}

    return asked


def text_asked(body: Json, name: str) -> str:
    """Return a text that must be there."""
    value = body.get(name)
    if not isinstance(value, str) or not value or not is_text(value):
        rule = f"{name} must be one line of text"
        raise ProblemError(400, f"bad-{name.replace('_', '-')}", rule)
    return value


def days_asked(body: Json, name: str) -> int:
    """Return a number of days."""
    days = count(body.get(name), name)
    if days > figures.TERMS_MAX_DAYS:
        rule = f"{name} must be at most {figures.TERMS_MAX_DAYS}"
        raise ProblemError(400, f"bad-{name.replace('_', '-')}", rule)
    return days


def _cents(body: Json) -> int:
    cents = count(body.get("cents"), "cents")
    if not 0 < cents <= figures.CENTS_MAX:
        raise ProblemError(400, "bad-cents", "cents must be more than nothing")
    return cents


def _flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise ProblemError(400, f"bad-{name.replace('_', '-')}", f"{name} must be true or false")
    return value
