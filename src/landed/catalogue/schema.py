"""The schema of a contract file: strict, so that a typo is an error and never a promise lost.

title = "Stripe, API v1"
service = "stripe"

[sources.keys]                        # Pages, by a name of ours.
url = "https://docs.stripe.com/…"
checked = 2026-11-30
says = "the gist of it"

[calls.refund]                        # Is `stripe.refund`; fields of `Contract`, and others.
request = "POST /v1/refunds"
effect = "irreversible"
keyed = "Idempotency-Key"
retention_s = 86400

[calls.refund.ways]                   # How to ask, in words.
lookup = "…"

[calls.refund.facts]                  # Per field its source, or that nobody could verify it.
keyed = "keys"
retention_s = { source = "https://…", checked = 2026-11-30 }
compares_payload = { verified = false, why = "…" }
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from datetime import date, datetime
from difflib import get_close_matches
from typing import cast
from urllib.parse import urlsplit

from landed.catalogue.entry import BESIDE, FACTUAL, Entry, Fact
from landed.core.contract import Contract
from landed.core.declared import from_values
from landed.core.errors import ContractError

Table = Mapping[str, object]

TOP = ("title", "service", "sources", "calls")
SOURCE = ("url", "checked", "says")
FACT = ("source", "checked", "verified", "says", "why")
HINTS = ("idempotent", "read_only", "destructive")
WAYS = ("lookup", "close", "read_back", "key")
KEY_IN = ("header", "body", "path")

# Promises that only code can keep: they are given to the tool, never to a file.
BY_CODE = ("preview", "risk_varies", "look_alike", "prepare")
FIELDS = tuple(one.name for one in fields(Contract) if one.name not in BY_CODE)
CALL = (*FIELDS, *BESIDE, "request", "ways", "arguments", "hints", "facts", "notes")


def read(text: str, *, origin: str) -> dict[str, Entry]:
    """Return the entries of a contract file, by name; their contracts are not yet checked.

    Raises `ContractError`; the sentence names file, table and key, and the closest name there is.
    """
    try:
        every = cast("Table", tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ContractError(f"contract file {origin} is no TOML: {error}") from None
    return _File(origin).entries(every)


def closest(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean …?" for a name that is nearly one of those known, else nothing."""
    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


class _File:
    """Reads the tables of one file, and says in which one something is wrong."""

    def __init__(self, origin: str) -> None:
        self._origin = origin

    def entries(self, every: Table) -> dict[str, Entry]:
        self._only(every, TOP, table="")
        self._text(every, "title", table="")
        service = self._text(every, "service", table="")
        if not service or "." in service or service.strip() != service:
            raise self._wrong("", "service must be a name without dots and blanks around it")
        sources = self._sources(every)
        calls = self._table(every, "calls", table="")
        if not calls:
            raise self._wrong("", "there is no [calls.NAME], so it has no contract in it")
        return {f"{service}.{name}": self._entry(service, name, calls, sources) for name in calls}

    def _sources(self, every: Table) -> dict[str, Fact]:
        named = self._table(every, "sources", table="")
        return {name: self._source(name, named) for name in named}

    def _source(self, name: str, named: Table) -> Fact:
        at = f"sources.{name}"
        table = self._table(named, name, table="sources")
        self._only(table, SOURCE, table=at)
        return Fact(
            source=self._url(table, "url", table=at),
            checked=self._day(table, table=at),
            says=self._text(table, "says", table=at),
        )

    def _entry(self, service: str, call: str, calls: Table, sources: Mapping[str, Fact]) -> Entry:
        name, at = f"{service}.{call}", f"calls.{call}"
        table = self._table(calls, call, table="calls")
        self._by_code(table, at)
        self._only(table, CALL, table=at)
        facts = self._facts(table, at, sources)
        plain = {"service": service, **{key: table[key] for key in FIELDS if key in table}}
        return Entry(
            name=name,
            contract=self._contract(plain, name, at),
            stated=tuple(key for key in FIELDS if key in plain),
            request=self._text(table, "request", table=at),
            key_in=self._key_in(table, at),
            key_max=self._whole(table, "key_max", at),
            replays_failures=self._flag(table, "replays_failures", at),
            cancel_by_key=self._text(table, "cancel_by_key", table=at),
            ways=self._texts(table, "ways", at, known=WAYS),
            arguments=self._texts(table, "arguments", at),
            hints=self._hints(table, at),
            facts=facts,
            unverified=_unverified(table, facts),
            notes=self._notes(table, at),
            origin=self._origin,
        )

    def _by_code(self, table: Table, at: str) -> None:
        for name in BY_CODE:
            if name in table:
                raise self._wrong(at, f"{name} needs code: give it to the tool, not to the file")

    def _contract(self, plain: Table, name: str, at: str) -> Contract:
        try:
            return from_values(plain, tool=name)
        except ContractError as error:
            raise self._wrong(at, str(error)) from None

    def _facts(self, call: Table, at: str, sources: Mapping[str, Fact]) -> dict[str, Fact]:
        at = f"{at}.facts"
        table = self._table(call, "facts", table=at.removesuffix(".facts"))
        self._only(table, (*FACTUAL, *BESIDE), table=at)
        return {key: self._fact(table, key, at, sources) for key in table}

    def _fact(self, table: Table, key: str, at: str, sources: Mapping[str, Fact]) -> Fact:
        told = table[key]
        if isinstance(told, str):
            if told not in sources:
                near = closest(told, sources)
                raise self._wrong(at, f"{key} names {told!r}, which is not in [sources]{near}")
            return sources[told]
        inner, at = self._table(table, key, table=at), f"{at}.{key}"
        self._only(inner, FACT, table=at)
        unsure = self._flag(inner, "verified", at) is False
        page = self._page(inner, at, sources) if "source" in inner or not unsure else Fact()
        return replace(page, verified=not unsure, why=self._text(inner, "why", table=at))

    def _page(self, inner: Table, at: str, sources: Mapping[str, Fact]) -> Fact:
        named = sources.get(self._text(inner, "source", table=at))
        return named or Fact(
            source=self._url(inner, "source", table=at),
            checked=self._day(inner, table=at),
            says=self._text(inner, "says", table=at),
        )

    def _key_in(self, table: Table, at: str) -> str:
        told = self._text(table, "key_in", table=at)
        if told and told not in KEY_IN:
            raise self._wrong(at, f"key_in must be one of {', '.join(KEY_IN)}, not {told!r}")
        return told

    def _hints(self, call: Table, at: str) -> dict[str, bool]:
        table = self._table(call, "hints", table=at)
        self._only(table, HINTS, table=f"{at}.hints")
        return {key: bool(self._flag(table, key, f"{at}.hints")) for key in table}

    def _notes(self, table: Table, at: str) -> tuple[str, ...]:
        told = table.get("notes", [])
        if not isinstance(told, list):
            raise self._wrong(at, f"notes must be a list of texts, not {told!r}")
        notes = cast("list[object]", told)
        if not all(isinstance(one, str) for one in notes):
            raise self._wrong(at, f"notes must be a list of texts, not {told!r}")
        return tuple(" ".join(str(one).split()) for one in notes)

    # One value of one table.

    def _table(self, outer: Table, key: str, *, table: str) -> Table:
        told = outer.get(key, {})
        if not isinstance(told, Mapping):
            raise self._wrong(table, f"{key} must be a table, not {told!r}")
        return cast("Table", told)

    def _texts(
        self, outer: Table, key: str, at: str, *, known: tuple[str, ...] = ()
    ) -> dict[str, str]:
        table, at = self._table(outer, key, table=at), f"{at}.{key}"
        if known:
            self._only(table, known, table=at)
        return {name: self._text(table, name, table=at) for name in table}

    def _text(self, outer: Table, key: str, *, table: str) -> str:
        told = outer.get(key, "")
        if not isinstance(told, str):
            raise self._wrong(table, f"{key} must be a text, not {told!r}")
        return " ".join(told.split())

    def _flag(self, outer: Table, key: str, table: str) -> bool | None:
        told = outer.get(key)
        if told is not None and not isinstance(told, bool):
            raise self._wrong(table, f"{key} must be true or false, not {told!r}")
        return told

    def _whole(self, outer: Table, key: str, table: str) -> int | None:
        told = outer.get(key)
        if told is None:
            return None
        if type(told) is not int or told < 1:
            raise self._wrong(table, f"{key} must be a whole number above 0, not {told!r}")
        return told

    def _url(self, outer: Table, key: str, *, table: str) -> str:
        told = self._text(outer, key, table=table)
        parts = urlsplit(told)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise self._wrong(table, f"{key} must be the URL of a page, not {told!r}")
        return told

    def _day(self, outer: Table, *, table: str) -> date:
        told = outer.get("checked")
        if not isinstance(told, date) or isinstance(told, datetime):
            raise self._wrong(
                table, f"checked must be the day it was read, as 2026-11-30, not {told!r}"
            )
        return told

    def _only(self, told: Table, known: tuple[str, ...], *, table: str) -> None:
        for key in told:
            if key not in known:
                near = closest(key, known) or f"; it may have {', '.join(known)}"
                raise self._wrong(table, f"there is no key {key!r}{near}")

    def _wrong(self, table: str, text: str) -> ContractError:
        where = f"[{table}] " if table else ""
        return ContractError(f"contract file {self._origin}: {where}{text}")


def _unverified(table: Table, facts: Mapping[str, Fact]) -> tuple[str, ...]:
    """Return what is stated without a source, and what is said to be unverified."""
    return tuple(
        key
        for key in (*FACTUAL, *BESIDE)
        if (key in facts and not facts[key].verified) or (key in table and key not in facts)
    )
