"""The plans of the payments service: a dry run, its commit, and what is refused on the way.

A plan stands on the state of its order: what is left, what was refunded, where the customer lives.
Its fingerprint covers that state. A commit carries the plan's token and fingerprint and nothing
else; it is checked in this order, each refusal before any effect:

    404 no-such-plan   401 wrong-token   400 unexpected-field   422 the key's own refusals
    410 plan-abandoned, plan-expired, plan-applied   409 plan-mismatch, conflict

A conflict names each field that moved, and when the plan was made. What a key did is answered again
before any of the last five is looked at: a commit that landed has landed, whatever came after.
"""

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from landed.testing.worlds.far_side import TEXT_MAX, Json, ProblemError, count, is_text, read_body
from landed.testing.worlds.faults import Clock
from landed.testing.worlds.payments.books import Books
from landed.testing.worlds.payments.settings import Payments, Slip

COMMIT = "commit"
FIELDS = frozenset({"plan_id", "plan_token", "input_fingerprint"})


class Plans:
    """The endpoints of plans."""

    def __init__(self, ledger: Books, clock: Clock, settings: Payments) -> None:
        self._ledger = ledger
        self._clock = clock
        self._settings = settings

    def routes(self) -> list[Route]:
        """Return the addresses."""
        return [
            Route("/orders/{order}/shipping", self.shipping, methods=["GET"]),
            Route("/orders/{order}/address", self.move, methods=["POST"]),
            Route("/refund-plans", self.dry_run, methods=["POST"]),
            Route("/refund-plans/{id}", self.read, methods=["GET"]),
            Route("/refund-plans/{id}/commit", self.commit, methods=["POST"]),
            Route("/refund-plans/{id}/abandon", self.abandon, methods=["POST"]),
        ]

    async def shipping(self, request: Request) -> Response:
        """Say whether an order was shipped, and where to."""
        order = request.path_params["order"]
        self._ledger.order(order, self._clock.now())
        address = self._ledger.address(order)
        return JSONResponse({"order": order, "shipped": True, "address": address})

    async def move(self, request: Request) -> Response:
        """Note where the customer of an order lives now."""
        asked, order = await read_body(request), request.path_params["order"]
        address = asked.get("address")
        if not isinstance(address, str) or not address or not is_text(address):
            raise ProblemError(400, "bad-address", f"address must be 1 to {TEXT_MAX} characters")
        self._ledger.order(order, self._clock.now())
        self._ledger.move(order, address)
        self._ledger.note("moved", f"the customer of {order} lives at {address} now")
        return JSONResponse({"order": order, "address": address})

    async def dry_run(self, request: Request) -> Response:
        """Plan a refund: what it would do, on what it stands, and until when it may be committed.

        Nothing but the plan itself is kept. It is refused where a refund would be.
        """
        inputs, now = _inputs(await read_body(request)), self._clock.now()
        state = self._state(inputs["order"], now)
        if inputs["cents"] > state["left_cents"]:
            detail = f"{state['left_cents']} cents of {inputs['order']} are left to refund"
            raise ProblemError(422, "exceeds-total", detail, more={"left": state["left_cents"]})
        with self._ledger.unit():
            number = self._ledger.sql.execute(
                "INSERT INTO plan (inputs, stands_on, made_at, expires_at) VALUES (?, ?, ?, ?)"
                " RETURNING number",
                (_json(inputs), _json(state), now, now + self._settings.plans_last_s),
            ).fetchone()[0]
        refunded = state["refunded_cents"]
        action = {
            "op": "refund",
            "target": f"order/{inputs['order']}",
            "field": "refunded_cents",
            "from": refunded,
            "to": refunded + inputs["cents"],
        }
        plan = self._plan(f"PL{number}")
        shown = {"plan_token": _token(plan["id"]), "input_fingerprint": _print(state)}
        return JSONResponse(_known(plan) | shown | {"inputs": inputs, "actions": [action]}, 201)

    async def read(self, request: Request) -> Response:
        """Say what became of a plan."""
        plan = self._plan(request.path_params["id"])
        done = {"result": plan["result"]} if plan["result"] else {}
        return JSONResponse(_known(plan) | {"state": self._became(plan)} | done)

    async def abandon(self, request: Request) -> Response:
        """Give a plan up; what was applied stays applied, and says so."""
        if not self._settings.can_abandon:
            raise ProblemError(405, "no-abandon", "plans run out here, and are not given up")
        await read_body(request)
        with self._ledger.unit():
            plan = self._plan(request.path_params["id"])
            if self._became(plan) == "open":
                self._end(plan, "abandoned")
                self._ledger.note("abandoned", f"{plan['id']} was given up")
        plan = self._plan(plan["id"])
        return JSONResponse(_known(plan) | {"state": self._became(plan)})

    async def commit(self, request: Request) -> Response:
        """Apply a plan, once, if what it stands on is still so."""
        asked = await read_body(request)
        plan = self._plan(request.path_params["id"])
        if asked.get("plan_token") != _token(plan["id"]):
            raise ProblemError(401, "wrong-token", f"that is not the token of {plan['id']}")
        more = sorted(asked.keys() - FIELDS)
        if (more and not self._slips("inputs")) or not asked.keys() >= FIELDS:
            detail = "a commit has plan_id, plan_token and input_fingerprint, and nothing else"
            raise ProblemError(400, "unexpected-field", detail, more={"unexpected": more})
        key = request.headers.get("idempotency-key", "")
        if not key or not is_text(key):
            raise ProblemError(400, "bad-key", "a commit has an Idempotency-Key")
        sent = {name: asked[name] for name in FIELDS} | {"plan": plan["id"]}
        with self._ledger.unit():
            earlier = self._ledger.earlier(key, COMMIT, sent, strict=self._settings.strict)
            if earlier:
                self._ledger.note("replayed", f"replayed {earlier['id']}", key)
                return JSONResponse(earlier, 201, headers={"Idempotent-Replayed": "true"})
            self._check(plan, str(asked["input_fingerprint"]))
            fresh = {name: asked[name] for name in more if name in ("order", "cents", "reason")}
            return JSONResponse(self._applied(plan, fresh, key, sent), 201)

    def _applied(self, plan: Json, fresh: Json, key: str, sent: Json) -> Json:
        made = self._ledger.refund({**plan["inputs"], **fresh}, key, self._clock.now())
        answer = {name: made[name] for name in ("id", "order", "cents", "status")}
        answer["plan_id"] = plan["id"]
        self._ledger.bind(key, COMMIT, sent, answer)
        self._end(plan, "applied", key=key, result=answer)
        text = f"committed {plan['id']}: {made['cents']} cents of {made['order']}: {made['id']}"
        self._ledger.note("refunded", text, key)
        return answer

    def _check(self, plan: Json, fingerprint: str) -> None:
        became = self._became(plan)
        forgiven = {"expired": self._slips("expiry"), "applied": self._slips("once")}
        if became != "open" and not forgiven.get(became, False):
            detail = f"{plan['id']} is {became}"
            raise ProblemError(410, f"plan-{became}", detail, refused=f"a commit of {plan['id']}")
        state = self._state(plan["inputs"]["order"], self._clock.now())
        then = plan["stands_on"]
        if self._slips("fingerprint"):
            then = state if fingerprint == _print(state) else then
        elif fingerprint != _print(then):
            raise ProblemError(409, "plan-mismatch", f"that is no fingerprint of {plan['id']}")
        changed = [
            {"field": name, "was": was, "now": state[name]}
            for name, was in sorted(then.items())
            if state[name] != was
        ]
        if changed and not self._slips("once"):
            named: Json = {"changed": changed, "plan_created_at": _instant(plan["made_at"])}
            raise ProblemError(
                409,
                "conflict",
                f"the order has changed since {plan['id']} was made",
                refused=f"a commit of {plan['id']}",
                more={} if self._slips("bare") else named,
            )

    def _state(self, order: str, at: float) -> Json:
        """Return what a plan stands on."""
        found = self._ledger.order(order, at)
        return {
            "address": self._ledger.address(order),
            "left_cents": found["left_cents"],
            "refunded_cents": found["refunded_cents"],
        }

    def _plan(self, id: str) -> Json:
        row = self._ledger.sql.execute(
            "SELECT inputs, stands_on, made_at, expires_at, ended, result FROM plan"
            " WHERE 'PL' || number = ?",
            (id,),
        ).fetchone()
        if row is None:
            raise ProblemError(404, "no-such-plan", f"there is no plan {id}")
        inputs, stands_on, made_at, expires_at, ended, result = row
        return {
            "id": id,
            "inputs": json.loads(inputs),
            "stands_on": json.loads(stands_on),
            "made_at": made_at,
            "expires_at": expires_at,
            "ended": ended,
            "result": json.loads(result) if result else None,
        }

    def _became(self, plan: Json) -> str:
        over = self._clock.now() >= plan["expires_at"]
        return plan["ended"] or ("expired" if over else "open")

    def _end(self, plan: Json, how: str, *, key: str = "", result: Any = None) -> None:
        self._ledger.sql.execute(
            "UPDATE plan SET ended = ?, key = ?, result = ? WHERE 'PL' || number = ?",
            (how, key, _json(result) if result else None, plan["id"]),
        )

    def _slips(self, way: Slip) -> bool:
        return way in self._settings.plan_slips


def _inputs(asked: Json) -> Json:
    order, reason = asked.get("order"), asked.get("reason")
    if not isinstance(order, str) or not order or not is_text(order):
        raise ProblemError(400, "bad-order", f"order must be 1 to {TEXT_MAX} characters")
    if not (reason is None or is_text(reason)) or not count(asked.get("cents"), "cents"):
        raise ProblemError(400, "bad-refund", "a refund has cents, and a line of reason at most")
    return {"order": order, "cents": asked["cents"], "reason": reason}


def _known(plan: Json) -> Json:
    return {
        "plan_id": plan["id"],
        "created_at": _instant(plan["made_at"]),
        "expires_at": _instant(plan["expires_at"]),
    }


def _token(id: str) -> str:
    """Return a plan's token: nothing to guess, and the same in every run of a simulation."""
    return "ptk_" + hashlib.sha256(f"not for models {id}".encode()).hexdigest()[:32]


def _print(state: Json) -> str:
    return "sha256:" + hashlib.sha256(_json(state).encode()).hexdigest()


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _instant(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
