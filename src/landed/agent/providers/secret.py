"""A key: it is looked up when a request is made, sent in a header, and shown nowhere else."""

import os
import re
from collections.abc import Awaitable, Callable, Iterable
from inspect import isawaitable
from typing import cast

from landed.core.errors import ContractError

Key = str | Callable[[], str | Awaitable[str]] | None
"""The name of an environment variable, a function that returns the key, or None for no key."""

MASKED_MIN_CHARS = 4
"""Shorter values are no secrets, and masking them would only spoil the text."""

_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,99}")
_SENDABLE = re.compile(r"[!-~]+")


class KeyMissingError(Exception):
    """There is no key, or none that a header can carry; the text never repeats it."""


def check_key(key: Key) -> Key:
    """Return the key as given. Raises `ContractError` for one that looks like the secret itself."""
    if isinstance(key, str) and not _NAME.fullmatch(key):
        raise ContractError(
            "key= is the name of an environment variable (CAPITALS_LIKE_THIS) or a function that "
            "returns the key; the key itself does not belong in the program"
        )
    return key


async def secret_of(key: Key) -> str:
    """Return the secret, "" where there is none to send. Raises `KeyMissingError`."""
    if key is None:
        return ""
    if isinstance(key, str):
        found = os.environ.get(key, "").strip()
        if not found:
            raise KeyMissingError(f"the environment has no {key}")
    else:
        found = await _called(key)
    if not _SENDABLE.fullmatch(found):
        raise KeyMissingError("the key is empty, or has characters that no header can carry")
    return found


async def _called(key: Callable[[], str | Awaitable[str]]) -> str:
    try:
        given = key()
        found = cast("str | None", await given if isawaitable(given) else given)
    except Exception as error:
        # Its text may hold the secret that could not be used.
        raise KeyMissingError(f"the key's function raised {type(error).__name__}") from None
    # A function that looks somewhere and finds nothing returns None, whatever its type says.
    return "" if found is None else str(found).strip()


def masked(text: str, secrets: Iterable[str]) -> str:
    """Return the text with every secret in it replaced by ***."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= MASKED_MIN_CHARS:
            text = text.replace(secret, "***")
    return text
