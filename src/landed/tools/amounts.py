"""Exact amounts and instants in a tool's arguments: never a float, never a time without offset.

A double cannot hold 0.1, so an amount that came as a float is another amount. Which arguments are
amounts is seen in what pydantic read: wherever it made a `Decimal`, the value that it made it from
is looked at, through models, dataclasses, lists, tables and unions. A `datetime` without an offset
is another instant on every machine, and twice a year it is two or none on the same one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import TYPE_CHECKING, cast

from landed.core.canonical import Json

if TYPE_CHECKING:
    from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
    from pydantic_core.core_schema import DecimalSchema

DIGITS_MAX = 40
"""Digits of an amount, and places its point may be moved by; 1E+1000000 would fill a record."""

PATTERN = r"^-?[0-9]+(\.[0-9]+)?$"

_EXACT_TO = 2**53 - 1


def inexact(given: object, read: object, where: str = "") -> Iterator[str]:
    """Yield what is wrong with the numbers and times that were given, each with its place.

    `read` is what pydantic made of `given`. A float is no amount, unless it is a whole number: 12,
    12.0 and 1.2e1 are one number in JSON. true is no number at all.
    """
    read = _unwrapped(read)
    if isinstance(read, Decimal):
        if isinstance(given, float) and not (given.is_integer() and abs(given) <= _EXACT_TO):
            yield (
                f"{where}: {given!r} is a float, which holds no exact amount; write the amount as"
                ' text, "12.50", or in cents'
            )
        elif _too_long(read):
            yield f"{where}: an amount has at most {DIGITS_MAX} digits"
    elif _is_naive(read):
        yield (
            f"{where}: {given} has no offset, so it is another instant on every machine; write it"
            " with Z or with its offset, as in 2026-11-27T18:00:00+01:00"
        )
    elif isinstance(given, bool) and type(read) in (int, float):
        yield f"{where}: {str(given).lower()} is no number; write the number"
    for name, value, part in _parts(given, read):
        yield from inexact(value, part, f"{where}.{name}" if where else str(name))


def in_one_form(stored: Json, read: object) -> Json:
    """Return stored arguments with each amount in its one form.

    That is the shortest plain text: no exponent, no sign of a zero, no zeros after the last digit
    that counts. "12.5", "12.50" and "1.25e1" are one amount and are stored as "12.5", so that the
    same call is found again however its amount was written.
    """
    if isinstance(_unwrapped(read), Decimal) and isinstance(stored, str):
        return _short(stored)
    changed = {name: in_one_form(value, part) for name, value, part in _json_parts(stored, read)}
    if not changed:
        return stored
    if isinstance(stored, Mapping):
        return {name: changed.get(name, value) for name, value in stored.items()}
    return [changed.get(n, value) for n, value in enumerate(cast("Sequence[Json]", stored))]


def _short(text: str) -> str:
    try:
        plain = format(Decimal(text), "f")
    except InvalidOperation:
        return text  # Written by a serializer of the author's own, who decides on its form.
    if "." in plain:
        plain = plain.rstrip("0").rstrip(".")
    return "0" if plain == "-0" else plain


def _is_naive(read: object) -> bool:
    return isinstance(read, datetime) and read.utcoffset() is None


def _too_long(amount: Decimal) -> bool:
    _, digits, exponent = amount.as_tuple()
    return len(digits) > DIGITS_MAX or abs(cast("int", exponent)) > DIGITS_MAX


def _json_parts(stored: Json, read: object) -> Iterator[tuple[str | int, Json, object]]:
    return cast("Iterator[tuple[str | int, Json, object]]", _parts(stored, read))


def _parts(given: object, read: object) -> Iterator[tuple[str | int, object, object]]:
    """Yield the parts of a value beside what each was read as, as far as that can be told."""
    if isinstance(given, Mapping):
        members = _members(read)
        for name, value in cast("Mapping[str, object]", given).items():
            if name in members:
                yield name, value, members[name]
    elif isinstance(given, list | tuple):
        items = enumerate(cast("Sequence[object]", given))
        beside = _items(read, len(given))  # pyright: ignore[reportUnknownArgumentType]
        yield from ((n, value, part) for (n, value), part in zip(items, beside, strict=False))


def _items(read: object, count: int) -> Sequence[object]:
    read = _unwrapped(read)
    if isinstance(read, set | frozenset):
        # A set has no order: what one of its members is stands for each that was given.
        members = cast("set[object]", read)
        one = next((each for each in members if isinstance(each, Decimal) or _is_naive(each)), None)
        return [one] * count
    if isinstance(read, Sequence) and not isinstance(read, str | bytes):
        return cast("Sequence[object]", read)
    return ()


def _members(read: object) -> Mapping[str, object]:
    from pydantic import BaseModel

    read = _unwrapped(read)
    if isinstance(read, BaseModel):
        return {
            name: getattr(read, field)
            for field, told in type(read).model_fields.items()
            for name in (field, told.alias, told.validation_alias, told.serialization_alias)
            if isinstance(name, str)
        }
    if isinstance(read, Mapping):
        return {str(name): each for name, each in cast("Mapping[object, object]", read).items()}
    if is_dataclass(read) and not isinstance(read, type):
        return {one.name: getattr(read, one.name) for one in fields(read)}
    return {}


def _unwrapped(read: object) -> object:
    """Return what a `RootModel` holds; it stands for that in JSON."""
    is_root = getattr(type(read), "__pydantic_root_model__", False)
    return cast("object", getattr(read, "root")) if is_root else read  # noqa: B009


@cache
def schemas() -> "type[GenerateJsonSchema]":
    """Return the maker of JSON Schemas in which an amount is text."""
    from pydantic.json_schema import GenerateJsonSchema

    class Schemas(GenerateJsonSchema):
        def decimal_schema(self, schema: "DecimalSchema") -> "JsonSchemaValue":
            given = cast("Mapping[str, object]", schema)
            bounds = [f"{words} {given[name]}" for name, words in _BOUNDS if name in given]
            told = ", ".join(['an exact amount as text, such as "12.50"', *bounds])
            return {"type": "string", "pattern": PATTERN, "description": told}

    return Schemas


_BOUNDS = (("gt", "more than"), ("ge", "at least"), ("lt", "less than"), ("le", "at most"))
