"""Reads a `Retry-After`: how long a service asks to be left alone."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from landed.core.pacing import RETRY_AFTER_MAX_S


def retry_after_s(header: str, now: float) -> float | None:
    """Read a `Retry-After`: seconds, or a date (RFC 9110 §10.2.3), here with `now` in UTC.

    Returns the wait from now, 0 to RETRY_AFTER_MAX_S; None for what is neither.
    """
    text = header.strip()
    if re.fullmatch(r"[0-9]{1,12}", text):
        return min(float(text), RETRY_AFTER_MAX_S)
    try:
        at = parsedate_to_datetime(text)
        there = at if at.tzinfo else at.replace(tzinfo=UTC)
        wait_s = (there - datetime.fromtimestamp(now, UTC)).total_seconds()
    except (ValueError, OverflowError, TypeError):
        return None
    return min(max(wait_s, 0.0), RETRY_AFTER_MAX_S)
