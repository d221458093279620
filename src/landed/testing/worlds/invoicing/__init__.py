"""The invoicing service: the far side that drafts, issues, voids, collects and reminds over HTTP.

It knows nothing of the runtime. What it promises, unless its settings take it away:

- A key and what was done under it are written in one transaction. So are an invoice and its number:
  a number is used by one invoice, an invoice is never deleted, and a series only goes on.
- Every refusal comes before any effect, and is a 400, 413 or 422; what is not there is a 422.
- Every answer about a key carries a position: the number of the log entry it was read at.
- A figure comes from `figures`, whoever asks: editor, commit, or the preview of a tool.

With an Idempotency-Key (`actions`); each answers the main record of what it did, with `summary`,
`effects`, `primary` and `cards`:

    POST   /drafts                       {contact, lines: [{what, quantity?, unit_price}]}
    POST   /drafts/D1/delete             /drafts/D1/issue
    POST   /invoices/F-2026-0001/void    {reason?}: by a rectifying invoice, never a deletion
    POST   /invoices/…/payments          {cents?, notify_customer?}; /payments/P1/delete
    POST   /invoices/…/reminders         {days_before}; /reminders/M1/cancel
    POST   /expenses                     {what, cents}; /expenses/delete {expenses}
    POST   /collections                  {invoices}; /collections/B1/return
    POST   /auto-send                    {on}

By hand, without a key: POST /contacts, PATCH /contacts/C1, PATCH /drafts/D1, and POST
/drafts/preview, which writes nothing. To be read: GET /contacts/find?name=Marta, /records/ID,
/similar?contact=C1&total_cents=60500, /auto-send, /books, /keys/KEY (POST …/close), /log?after=0.
"""

import asyncio
from collections.abc import Sequence

from starlette.applications import Starlette

from landed.testing.worlds.far_side import far_side
from landed.testing.worlds.faults import Clock, Fault, Sleep
from landed.testing.worlds.invoicing.desk import Desk, Invoicing

__all__ = ["Invoicing", "app"]


def app(
    path: str,
    clock: Clock,
    faults: Sequence[Fault] = (),
    *,
    settings: Invoicing | None = None,
    sleep: Sleep = asyncio.sleep,
) -> Starlette:
    """An invoicing service whose books are the SQLite file `path` (or ":memory:").

    Time comes from `clock` alone and delays go through `sleep`; no thread is started, so that it
    runs on a virtual event loop. Whoever is done with it closes `app.state.desk.ledger.sql`; what
    was committed is safe without. Raises the driver's error when the file can't be opened.
    """
    desk = Desk(path, clock, settings or Invoicing())
    service = far_side(desk.ledger, desk.routes(), faults=faults, sleep=sleep)
    service.state.desk = desk
    return service
