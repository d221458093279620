"""The payments service: the far side that refunds, forgets, lags, drops and changes its mind.

It knows nothing of the runtime. What it promises, unless its settings take it away:

- A key and what was done under it are written in one transaction.
- Every refusal comes before any effect, and is a 400, 413 or 422; what is not there is said with
  200 and `"found": false`.
- The refunds of an order are never more than was paid for it, whatever keys they came with.
- Every answer carries a position: the number of the log entry it was read at.

    POST   /orders                       {order, cents}: what was paid; by hand
    GET    /orders/A17                   {order, cents, refunded_cents, left_cents}
    POST   /refunds                      Idempotency-Key; {order, cents, reason?}
                                         answers {id, order, cents, reason?, status}
    GET    /refunds?since=0              what it holds, each with its key and when it was made
    GET    /refunds/RF1                  {found, refund?, position}: found is null while pending,
                                         and false where it did not come about
    GET    /keys/KEY                     lookup: did it land?
    POST   /keys/KEY/close               the same answer, and the key is refused from now on
    GET    /replica/…                    /refunds, /refunds/RF1 and /keys/KEY as of `lag_s` ago
    GET    /events?after=0               what it tells about refunds, in the order of delivery
    GET    /log?after=0                  what it did, numbered
    GET    /orders/A17/shipping          {order, shipped, address}
    POST   /orders/A17/address           {address}; what a plan stands on, too
    POST   /refund-plans                 dry run: {order, cents, reason?}; no key, no effect
    GET    /refund-plans/PL1             {plan_id, state, expires_at, result?}
    POST   /refund-plans/PL1/commit      Idempotency-Key; {plan_id, plan_token, input_fingerprint}
    POST   /refund-plans/PL1/abandon     {reason?}

A plan says what it will do, on which state of the order, and until when; `plans` has its rules.

An event is `{id, type, at, refund, version}`, its type `refund.pending`, `.succeeded` or `.failed`.
As webhooks do, each may come twice and in any order; `version` says which is the newer one.
"""

import asyncio
from collections.abc import Sequence

from starlette.applications import Starlette

from landed.testing.worlds.far_side import far_side
from landed.testing.worlds.faults import Clock, Fault, Sleep
from landed.testing.worlds.payments.desk import Desk
from landed.testing.worlds.payments.settings import Payments

__all__ = ["Payments", "app"]


def app(
    path: str,
    clock: Clock,
    faults: Sequence[Fault] = (),
    *,
    settings: Payments | None = None,
    sleep: Sleep = asyncio.sleep,
) -> Starlette:
    """A payments service whose ledger is the SQLite file `path` (or ":memory:").

    Time comes from `clock` alone and delays go through `sleep`; no thread is started, so that it
    runs on a virtual event loop. Whoever is done with it closes `app.state.desk.ledger.sql`; what
    was committed is safe without. Raises the driver's error when the file can't be opened.
    """
    desk = Desk(path, clock, settings or Payments())
    service = far_side(desk.ledger, desk.routes(), faults=faults, sleep=sleep)
    service.state.desk = desk
    return service
