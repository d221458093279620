"""An office behind the HTTP API, for the tests of the server: who calls, and what was done."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

import landed
from landed.core.preview import Preview, Previewing
from landed.runtime.runtime import Runtime
from landed.server.app import http_app
from landed.server.auth import Identity, Role

WHO = {
    "ana-agent": Identity(principal="ana", tenant="acme", role=Role.AGENT),
    "ana": Identity(principal="ana", tenant="acme", role=Role.PERSON),
    "bob": Identity(principal="bob", tenant="acme", role=Role.PERSON),
    "boss": Identity(principal="boss", tenant="acme", role=Role.ADMIN),
    "eve": Identity(principal="ana", tenant="other", role=Role.ADMIN),
}


@dataclass
class Ledger:
    """What is outside: refunds that were made, a balance that others move, and a switch."""

    refunds: list[int] = field(default_factory=list[int])
    closed: list[int] = field(default_factory=list[int])
    left_cents: int = 48000
    reply_lost: bool = False
    refuses: bool = False
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)

    def tools(self) -> list[Any]:
        """The tools of the office."""
        return [*self._refunding(), *self._odd()]

    def _refunding(self) -> list[Any]:
        def see_refund(asked: Previewing) -> Preview:
            cents = int(str(asked.arguments["amount_cents"]))
            return Preview(summary=f"Refund {cents} cents", basis={"left_cents": self.left_cents})

        @landed.tool(
            effect="irreversible",
            target=("invoice/{invoice}",),
            preview=see_refund,
            deadline_s=0.3,
        )
        async def refund(invoice: str, amount_cents: int) -> dict[str, str]:
            if self.refuses:
                raise landed.RefusedError("closed for today")
            self.refunds.append(amount_cents)
            if self.reply_lost:
                raise ConnectionResetError("reset by peer")
            return {"id": f"R{len(self.refunds)}"}

        @landed.tool(effect="irreversible", risk="confirm", preview=see_refund)
        async def big_refund(invoice: str, amount_cents: int) -> dict[str, str]:
            self.refunds.append(amount_cents)
            return {"id": f"R{len(self.refunds)}"}

        return [refund, big_refund]

    def _odd(self) -> list[Any]:
        def see_missing(asked: Previewing) -> Preview:
            return Preview(summary="Nothing yet", questions=("Which one?",))

        @landed.tool(effect="irreversible", deadline_s=30.0, on_interrupt="finish")
        async def slow(what: str) -> dict[str, str]:
            self.begun.set()
            await self.opened.wait()
            self.refunds.append(0)
            return {"id": what}

        @landed.tool(effect="irreversible", preview=see_missing)
        async def vague(what: str) -> None: ...

        return [slow, vague]

    def guarded(self) -> list[Any]:
        """A tool that not everybody may use."""

        @landed.tool(effect="irreversible", permission="books.close")
        async def close_books(year: int) -> dict[str, str]:
            self.closed.append(year)
            return {"id": str(year)}

        return [close_books]


async def known(token: str) -> Identity | None:
    """Say who a token of `WHO` stands for."""
    return WHO.get(token)


@dataclass
class Office:
    """One runtime, served, and the outside."""

    rt: Runtime
    http: httpx2.AsyncClient
    ledger: Ledger

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        who: str = "ana",
        key: str = "",
        match: str = "",
        **headers: str,
    ) -> httpx2.Response:
        """Make one request as somebody."""
        sent = {"Authorization": f"Bearer {who}"} if who else {}
        sent |= {"Idempotency-Key": key} if key else {}
        sent |= {"If-Match": match} if match else {}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http.request(method, path, json=body, headers=sent)

    async def post(self, path: str, body: object = None, **how: Any) -> httpx2.Response:
        """Post a body as somebody."""
        return await self.call("POST", path, {} if body is None else body, **how)

    async def get(self, path: str, **how: Any) -> httpx2.Response:
        """Read as somebody."""
        return await self.call("GET", path, **how)

    async def dry_run(self, tool: str = "refund", cents: int = 48000, **how: Any) -> dict[str, Any]:
        """Dry-run a refund, and return the plan."""
        arguments = {"invoice": "4412", "amount_cents": cents}
        asked = {"arguments": arguments, **how.pop("more", {})}
        answer = await self.post(f"/v1/tools/{tool}/dry-run", asked, **how)
        assert answer.status_code == 200, answer.text
        plan: dict[str, Any] = answer.json()
        return plan

    async def commit(
        self, plan: Mapping[str, Any], *, tool: str = "refund", key: str = "idem_7a12", **how: Any
    ) -> httpx2.Response:
        """Commit a plan."""
        body = {**commit_of(plan), **how.pop("more", {})}
        return await self.post(f"/v1/tools/{tool}/commit", body, key=key, **how)

    async def propose(self, tool: str, arguments: object, **how: Any) -> httpx2.Response:
        """Propose one call."""
        body = {"calls": [{"tool": tool, "arguments": arguments}]}
        return await self.post("/v1/plans", body, **{"key": "p1", **how})


def commit_of(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a commit."""
    return {name: plan[name] for name in ("plan_id", "plan_token", "input_fingerprint")}


def kind_of(answer: httpx2.Response) -> tuple[int, str]:
    """Return the status and the kind of a problem."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    assert answer.json()["status"] == answer.status_code
    return answer.status_code, answer.json()["type"].removeprefix("urn:landed:problem:")


@asynccontextmanager
async def office(
    *,
    settings: landed.Settings | None = None,
    authenticate: Any = known,
    permissions: Any = None,
    **limits: Any,
) -> AsyncGenerator[Office]:
    """Open the office and serve it in this process."""
    ledger = Ledger()
    tools = [*ledger.tools(), *(ledger.guarded() if permissions else ())]
    async with landed.open(
        "sqlite://:memory:", tools=tools, settings=settings, permissions=permissions
    ) as rt:
        app = http_app(rt, authenticate=authenticate, **limits)
        transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
            yield Office(rt=rt, http=http, ledger=ledger)
            ledger.opened.set()
