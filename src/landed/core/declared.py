"""A contract as plain values: how it is written to a record or a TOML file, read, and digested."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import cast

from landed.core.canonical import Json, fingerprint
from landed.core.contract import (
    Contract,
    Effect,
    Freshness,
    Interrupt,
    LookAlike,
    OnExpiry,
    Order,
    Risk,
    WhenUnknown,
    WhileUnknown,
)
from landed.core.errors import ContractError


def values(contract: Contract) -> dict[str, Json]:
    """Return the contract as plain values: what is digested, recorded and written to TOML."""
    plain: dict[str, Json] = {}
    for each in fields(contract):
        plain[each.name] = _plain(getattr(contract, each.name))
    return plain


def _plain(value: object) -> Json:
    """Return a field as JSON keeps it: lists for tuples, fresh objects for mappings."""
    match value:
        case Mapping():
            return {str(name): _plain(each) for name, each in value.items()}  # pyright: ignore
        case tuple() | list():
            return [_plain(each) for each in value]  # pyright: ignore
        case None | bool() | int() | float() | str():
            return value
        case _:
            raise TypeError(f"a contract holds plain values, not {value!r}")


def digest_of(contract: Contract) -> str:
    """Return the digest an operation stores to name the contract it was made under."""
    return fingerprint(values(contract), domain="contract")


# How a plain value becomes a field again, for the fields that are not plain themselves.
_READERS: Mapping[str, Callable[[object], object]] = {
    "effect": lambda value: Effect(str(value)),
    "risk": lambda value: Risk(str(value)),
    "when_unknown": lambda value: WhenUnknown(str(value)),
    "look_alike": lambda value: LookAlike(str(value)),
    "freshness": lambda value: Freshness(str(value)),
    "on_expiry": lambda value: OnExpiry(str(value)),
    "tolerates": lambda value: _texts(value),
    "unique": lambda value: _texts(value),
    "accepts": lambda value: _templates(value),
    "on_interrupt": lambda value: Interrupt(str(value)),
    "order": lambda value: Order(str(value)),
    "while_unknown": lambda value: WhileUnknown(str(value)),
    "refusals": lambda value: _codes(value),
    "target": lambda value: _texts(value),
    "identity": lambda value: None if value is None else _texts(value),
    "says": lambda value: _says(value),
    "undo_arguments": lambda value: _templates(value),
    "correct_arguments": lambda value: _templates(value),
}


def _codes(value: object) -> tuple[int, ...]:
    codes = _tuple(value)
    if all(type(code) is int for code in codes):
        return cast("tuple[int, ...]", codes)
    raise ValueError(f"status codes are wanted, not {value!r}")


def _texts(value: object) -> tuple[str, ...]:
    texts = _tuple(value)
    if all(isinstance(text, str) for text in texts):
        return cast("tuple[str, ...]", texts)
    raise ValueError(f"a list of texts is wanted, not {value!r}")


def _templates(value: object) -> Mapping[str, str]:
    if isinstance(value, Mapping):
        named = {str(name): str(each) for name, each in value.items()}  # pyright: ignore
        if named == value:
            return named
    raise ValueError(f"a table of texts by name is wanted, not {value!r}")


def _says(value: object) -> Mapping[str, Mapping[str, str]]:
    if isinstance(value, Mapping):
        words = cast("Mapping[object, object]", value)
        return {str(language): _templates(each) for language, each in words.items()}
    raise ValueError(f"a table of words per language is wanted, not {value!r}")


def _as_default(name: str, value: object) -> object:
    """Return a value that is of the kind its field's default is of, else raise `ValueError`."""
    kind = _KINDS[name]
    whole = not isinstance(value, bool) or kind == (bool,)
    if whole and isinstance(value, kind):
        return value
    wanted = " or ".join("nothing" if k is type(None) else k.__name__ for k in kind)
    raise ValueError(f"{wanted} is wanted, not {value!r}")


_NUMBER = (int, float)
_BY_DEFAULT: Mapping[type, tuple[type, ...]] = {
    bool: (bool,),
    str: (str,),
    int: (int,),
    float: _NUMBER,
    type(None): (*_NUMBER, type(None)),
}


def _tuple(value: object) -> tuple[object, ...]:
    if isinstance(value, list | tuple):
        return tuple(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    raise ValueError(f"a list is wanted, not {value!r}")


def from_values(plain: Mapping[str, object], *, tool: str) -> Contract:
    """Read a contract from plain values; the reverse of `values`.

    Raises `ContractError` for a field that does not exist or a value that does not fit.
    """
    known = {each.name for each in fields(Contract)}
    unknown = sorted(set(plain) - known)
    if unknown:
        raise ContractError(
            f"contract of {tool}: there is no field {unknown[0]!r}; the fields are"
            f" {', '.join(sorted(known))}"
        )
    if "effect" not in plain:
        raise ContractError(
            f"contract of {tool}: say what it does to the world: effect='none', 'reversible' or"
            " 'irreversible'"
        )
    read: dict[str, object] = {}
    for name, value in plain.items():
        reader = _READERS.get(name)
        try:
            read[name] = reader(value) if reader else _as_default(name, value)
        except ValueError as error:
            raise ContractError(f"contract of {tool}: {name}: {error}") from None
    return Contract(**read)  # type: ignore[arg-type]


_KINDS: Mapping[str, tuple[type, ...]] = {
    each.name: _BY_DEFAULT[type(each.default)]
    for each in fields(Contract)
    if each.name not in _READERS
}
