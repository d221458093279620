"""A restaurant for the tests of the chat: bookings are lines of a ledger, each with its key.

`LANDED_LEDGER` names the ledger. While `<ledger>.gate` is there, a pipe, the booking that was just
written down is not answered until somebody writes to it.
"""

import json
import os
from pathlib import Path

import landed
from landed.core.tool import Call


def ledger() -> Path:
    return Path(os.environ["LANDED_LEDGER"])


def booked() -> list[dict[str, str]]:
    if not ledger().exists():
        return []
    return [json.loads(line) for line in ledger().read_text().splitlines()]


def look(call: Call) -> landed.Found | landed.Absent:
    ids = [line["id"] for line in booked() if line["key"] == call.key]
    return landed.Found(result={"id": ids[0]}) if ids else landed.Absent()


@landed.tool(
    effect="reversible",
    keyed="key",
    compares_payload=True,
    lookup=look,
    says={"en": {"confirmed": "booked {id} ({day})"}},
)
def book(day: str, key: str) -> dict[str, str]:
    """Book a table for a day."""
    id = next((line["id"] for line in booked() if line["key"] == key), f"R{len(booked()) + 1}")
    with ledger().open("a") as file:
        file.write(json.dumps({"id": id, "day": day, "key": key}) + "\n")
    gate = ledger().with_suffix(".gate")
    if gate.exists():
        gate.read_text()
    return {"id": id}


@landed.tool(
    effect="irreversible", keyed="key", risk="confirm", says={"en": {"confirmed": "texted {to}"}}
)
def text(to: str, key: str) -> str:
    """Send a text."""
    with ledger().open("a") as file:
        file.write(json.dumps({"id": f"to {to}", "day": "", "key": key}) + "\n")
    return "sent"


@landed.tool(effect="irreversible", risk="safe")
def fax(to: str) -> str:
    """Send a fax: whether it arrives is never known."""
    gate = ledger().with_suffix(".gate")
    if gate.exists():
        gate.read_text()
    raise TimeoutError("nobody answers")


tools = (book, text, fax)
