"""The courier: a far side that takes its time, jams, and does not always say what became of it.

It remembers keys, and can be asked about them and told to refuse them; about what went abroad it
knows nothing yet, whenever it is asked.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from landed.core.canonical import Json
from landed.core.errors import RefusedError
from landed.core.outcome import Absent, Found, LookOutcome, NotYet
from landed.core.preview import Preview, Previewing
from landed.core.tool import Call, Tool
from landed.tools.function import tool

SECONDS_MAX = 60
DEADLINE_S = 90.0
ABROAD = "abroad"
THICK = "on thick paper"
"""What the printer jams at, the first time that it is given to it."""

ASKED_FOR_S = 86_400.0
"""How long it is asked about a parcel before a person is."""

PRINTED = {
    "en": {
        "confirmed": "printed the statement of {month} ({id})",
        "unknown": "I may have printed the statement of {month}: {why}",
        "failed": "the statement of {month} was not printed: {why}",
    },
    "es": {
        "confirmed": "impreso el extracto de {month} ({id})",
        "unknown": "puede que haya impreso el extracto de {month}: {why}",
        "failed": "no se imprimió el extracto de {month}: {why}",
    },
}
SHREDDED = {
    "en": {"confirmed": "shredded {id}", "failed": "{id} was not shredded: {why}"},
    "es": {"confirmed": "destruido {id}", "failed": "no se destruyó {id}: {why}"},
}
SENT = {
    "en": {
        "confirmed": "sent {what} to {to} ({id})",
        "unknown": "I may have sent {what} to {to}: {why}",
        "undecided": "I may have sent {what} to {to}, and nobody could tell me",
        "failed": "{what} was not sent to {to}: {why}",
    },
    "es": {
        "confirmed": "enviado {what} a {to} ({id})",
        "unknown": "puede que haya enviado {what} a {to}: {why}",
        "undecided": "puede que haya enviado {what} a {to}, y nadie supo decírmelo",
        "failed": "no se envió {what} a {to}: {why}",
    },
}


@dataclass(slots=True, eq=False)
class Courier:
    """What it did, by the key it came with, and what it has jammed at."""

    jammed: set[str] = field(default_factory=set[str])
    done: dict[str, dict[str, Json]] = field(default_factory=dict[str, dict[str, Json]])
    shut: set[str] = field(default_factory=set[str])
    begun: int = 0

    async def print(self, key: str, month: str, seconds: int) -> Mapping[str, Json]:
        """Print a statement, in so many seconds; refused before any ink where it jams."""
        if month.endswith(THICK) and month not in self.jammed:
            self.jammed.add(month)
            raise RefusedError("the printer is jammed")
        await asyncio.sleep(min(seconds, SECONDS_MAX))
        return self._did(key, {"month": month, "what": f"statement {month}"})

    async def send(self, key: str, what: str, to: str) -> Mapping[str, Json]:
        """Send a parcel; from abroad no answer comes."""
        sent = self._did(key, {"what": what, "to": to})
        if to.endswith(ABROAD):
            raise ConnectionResetError("connection reset by peer")
        return sent

    async def take_back(self, key: str, id: str) -> Mapping[str, Json]:
        """Shred a statement."""
        return self._did(key, {"shredded": id})

    def looked(self, call: Call) -> LookOutcome:
        """Say what became of a key, as far as it is known here."""
        did = self.done.get(call.key)
        if did is not None and str(did.get("to", "")).endswith(ABROAD):
            return NotYet()
        return Absent() if did is None else Found(result=did)

    def closed(self, call: Call) -> LookOutcome:
        """Refuse a key from now on, and say what became of it."""
        self.shut.add(call.key)
        return self.looked(call)

    def _did(self, key: str, what: Mapping[str, Json]) -> Mapping[str, Json]:
        if key in self.shut:
            raise RefusedError("that key is closed")
        if key not in self.done:
            self.begun += 1
            self.done[key] = {"id": f"S{self.begun}", **what}
        return self.done[key]


def courier_tools(courier: Courier) -> tuple[Tool, ...]:
    """Return its tools: print a statement, shred one, send a parcel, or a postcard."""
    return (*_printing(courier), _sending(courier), _posting(courier))


def _printing(courier: Courier) -> tuple[Tool, ...]:
    async def print_preview(asked: Previewing) -> Preview:
        return Preview(summary=f"print the statement of {asked.arguments['month']}")

    @tool(
        effect="reversible",
        service="courier",
        keyed="key",
        compares_payload=True,
        lookup=courier.looked,
        close=courier.closed,
        target=("statement/{month}",),
        undo="shred_statement",
        undo_arguments={"id": "{result.id}"},
        makes_type="statement",
        on_interrupt="stop_and_resolve",
        deadline_s=DEADLINE_S,
        says=PRINTED,
        preview=print_preview,
    )
    async def print_statement(month: str, key: str, seconds: int = 0) -> Mapping[str, Json]:
        """Print the statement of a month; it takes as many seconds as it is given."""
        return await courier.print(key, month, seconds)

    @tool(
        effect="irreversible",
        service="courier",
        keyed="key",
        compares_payload=True,
        lookup=courier.looked,
        close=courier.closed,
        says=SHREDDED,
    )
    async def shred_statement(id: str, key: str) -> Mapping[str, Json]:
        """Shred a printed statement."""
        return await courier.take_back(key, id)

    return print_statement, shred_statement


def _sending(courier: Courier) -> Tool:
    async def sees(asked: Previewing) -> Preview:
        return Preview(summary=f"send {asked.arguments['what']} to {asked.arguments['to']}")

    @tool(
        effect="irreversible",
        service="courier",
        keyed="key",
        compares_payload=False,
        lookup=courier.looked,
        target=("parcel/{what}",),
        makes_type="parcel",
        escalate_after_s=ASKED_FOR_S,
        says=SENT,
        preview=sees,
    )
    async def send_parcel(what: str, to: str, key: str) -> Mapping[str, Json]:
        """Send a parcel to somebody; what is sent abroad is heard of late."""
        return await courier.send(key, what, to)

    return send_parcel


def _posting(courier: Courier) -> Tool:
    @tool(effect="irreversible", service="courier", escalate_after_s=0.0, says=SENT)
    async def send_postcard(what: str, to: str) -> Mapping[str, Json]:
        """Send a postcard, of which nobody can tell afterwards whether it went."""
        return await courier.send(f"postcard {what} {to}", what, to)

    return send_postcard
