"""Where contract files come from: the ones that ship with the library, and one of your own."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from landed.catalogue.entry import Entry
from landed.catalogue.schema import closest, read
from landed.core.contract import check
from landed.core.errors import ContractError

FILE_BYTES_MAX = 1_000_000


@cache
def contracts() -> Mapping[str, Entry]:
    """Return every entry of the catalogue, by name (`stripe.refund`)."""
    found: dict[str, Entry] = {}
    for origin, text in shipped().items():
        found |= checked(read(text, origin=origin))
    return MappingProxyType(found)


def contract(name: str) -> Entry:
    """Return one entry of the catalogue.

    Raises `ContractError` for a name that is not there: a foreign tool without a contract is
    irreversible, unkeyed and asks (`landed.core.contract.UNDECLARED`).
    """
    every = contracts()
    if name not in every:
        raise ContractError(
            f"the catalogue has no {name!r}{closest(name, every)}; `landed contract list` shows"
            " what it has, and landed.catalogue.from_toml reads a file of yours"
        )
    return every[name]


def from_toml(path: str | Path) -> Mapping[str, Entry]:
    """Return the entries of your own file, by name.

    Raises `ContractError` for a file that cannot be read, does not follow the schema (the sentence
    names file, table and key), or has a contract that contradicts itself.
    """
    return MappingProxyType(checked(read(text_of(path), origin=str(path))))


def shipped() -> dict[str, str]:
    """Return the text of each file of the catalogue, by its name."""
    room = files("landed.catalogue")
    named = {each.name: each for each in room.iterdir() if each.name.endswith(".toml")}
    return {name: named[name].read_text("utf-8") for name in sorted(named)}


def text_of(path: str | Path) -> str:
    """Return the text of a file; raises `ContractError` where there is none, or too much of it."""
    try:
        with Path(path).open("rb") as file:
            raw = file.read(FILE_BYTES_MAX + 1)
        text = raw.decode("utf-8")
    except OSError as error:
        raise ContractError(f"contract file {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ContractError(f"contract file {path} is not UTF-8: {error.reason}") from None
    if len(raw) > FILE_BYTES_MAX:
        raise ContractError(f"contract file {path} is longer than {FILE_BYTES_MAX} bytes")
    return text


def checked(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """Return the entries with their contracts checked, or raise `ContractError`."""
    return {name: _checked(entry) for name, entry in entries.items()}


def _checked(entry: Entry) -> Entry:
    try:
        return replace(entry, contract=check(entry.contract, tool=entry.name))
    except ContractError as error:
        raise ContractError(f"contract file {entry.origin}: {error}") from None
