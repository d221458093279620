"""The tools by which an agent reaches the invoicing service; their contracts are its promises."""

from collections.abc import Awaitable, Mapping, Sequence
from functools import partial

import httpx2

from landed.core.canonical import Json
from landed.core.preview import Preview, Previewing
from landed.testing.invoicing_contracts import TOOLS, Row
from landed.testing.invoicing_previews import Previews
from landed.testing.invoicing_words import says
from landed.testing.worlds.invoicing import Invoicing
from landed.tools.foresight import PreviewOf
from landed.tools.http import HttpTool
from landed.tools.promises import Promises
from landed.tools.reading import Reading

DEADLINE_S = 5.0

CONTACTS: tuple[Mapping[str, Json], ...] = (
    {"name": "Marta", "email": "marta@example.com", "tax_id": "12345678Z", "terms_days": 30},
    {"name": "Bruno", "email": None, "tax_id": "87654321X", "terms_days": 30},
    {"name": "Carla", "email": "carla@example.com", "tax_id": "11223344B", "terms_days": None},
)
"""One contact of whom all is known, one without an email address, one without terms."""


def invoicing_tools(
    url: str,
    settings: Invoicing | None = None,
    *,
    transport: httpx2.AsyncBaseTransport | None = None,
    replaced: Mapping[str, Mapping[str, object]] | None = None,
) -> list[HttpTool]:
    """Return the tools of the invoicing service at `url`, which behaves as `settings` say.

    The first three only read. `replaced` are single promises, by the name of the tool, that a demo
    or a test wants otherwise.
    """
    kept, readers = settings or Invoicing(), _readers(url, transport)
    previews = _previews(readers)
    acting = [
        HttpTool(
            name=name,
            effect=row.effect,
            url=f"{url}{row.path}",
            arguments=row.arguments,
            description=row.description,
            lookup=f"{url}/keys/{{key}}" if kept.can_look_up else "",
            close=f"{url}/keys/{{key}}/close" if kept.can_close else "",
            reading=Reading(requires=("id",), position_header="X-Position"),
            sent_at_header="X-Sent-At",
            transport=transport,
            **_promised(name, row, kept, previews, (replaced or {}).get(name, {})),
        )
        for name, row in TOOLS.items()
    ]
    return [*readers, *acting]


def sending_preview(tools: Sequence[HttpTool]) -> PreviewOf:
    """Return the preview of a tool that mails the invoice in its argument `invoice`.

    It asks for the address where the customer has none, and where `to` is not theirs. `tools` are
    those of `invoicing_tools`.
    """
    return _previews(tools).sending


async def fill(url: str, *, transport: httpx2.AsyncBaseTransport | None = None) -> dict[str, str]:
    """Add those of `CONTACTS` that are missing; returns the ids of all contacts, by name."""
    client = httpx2.AsyncClient(transport=transport, base_url=url)
    try:
        books = (await client.get("/books")).raise_for_status().json()
        ids: dict[str, str] = {one["name"]: one["id"] for one in books["contacts"]}
        for contact in CONTACTS:
            if (name := str(contact["name"])) not in ids:
                made = await client.post("/contacts", json=dict(contact))
                ids[name] = made.raise_for_status().json()["id"]
    finally:
        if transport is None:  # One that was given is closed by whoever made it.
            await client.aclose()
    return ids


def _promised(
    name: str, row: Row, kept: Invoicing, previews: Previews, replaced: Mapping[str, object]
) -> Promises:
    promises: Promises = {
        **_kept(kept),
        "says": says(name),
        "preview": partial(row.preview, previews),
        **row.promises,
    }
    if row.look_alike is not None:
        promises["look_alike"] = partial(row.look_alike, previews)
    promises.update(replaced)  # type: ignore[typeddict-item]
    return promises


def _kept(settings: Invoicing) -> Promises:
    """What the service promises about every request that carries a key.

    A step that was started is finished, whatever comes between: half an invoice is nobody's wish.
    """
    return {
        "service": "invoicing",
        "keyed": "Idempotency-Key",
        "key_form": "{session}:{operation}",
        "compares_payload": settings.strict,
        "retention_s": settings.retention_s,
        "refuses_after_s": settings.refuses_after_s,
        "on_interrupt": "finish",
        "deadline_s": DEADLINE_S,
    }


def _readers(url: str, transport: httpx2.AsyncBaseTransport | None) -> tuple[HttpTool, ...]:
    """Return the tools without effect; they are also what the previews read with."""

    def found(asked: Previewing) -> Awaitable[Preview]:
        return _previews((contacts, records, similar)).contact(asked)

    read = partial(
        HttpTool, effect="none", service="invoicing", transport=transport, deadline_s=DEADLINE_S
    )
    contacts = read(
        name="find_contact",
        url=f"GET {url}/contacts/find",
        arguments={"name": str},
        description="Find one contact by name.",
        permission="contact.read",
        makes_type="contact",
        preview=found,
        says={"en": {"answered": "{name} is {id}"}, "es": {"answered": "{name} es {id}"}},
    )
    records = read(
        name="read_record",
        url=f"GET {url}/records/{{id}}",
        arguments={"id": str},
        description="Read one contact, draft, invoice, payment, reminder, expense or collection.",
        permission="record.read",
    )
    similar = read(
        name="find_similar",
        url=f"GET {url}/similar",
        arguments={"contact": str, "total_cents": int},
        description="Find what was drafted or issued for that customer and total just now.",
        permission="record.read",
    )
    return contacts, records, similar


def _previews(readers: Sequence[HttpTool]) -> Previews:
    contacts, records, similar = readers[:3]
    return Previews(records=records, contacts=contacts, similar=similar)
