"""A small application for the command line's tests: drafts, invoices and mails kept in a file.

`LANDED_SHOP` names the file with what was done; while `<file>.closed` is there, nothing is issued.
"""

import asyncio
import json
import os
import sqlite3
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import landed
from landed.cli.main import landed as landed_command
from landed.core.plan import Wanted
from landed.core.preview import Preview, Previewing, typed_count
from landed.runtime.opened import Settings
from landed.runtime.permissions import Permit
from landed.runtime.runtime import Runtime


def world() -> Path:
    return Path(os.environ["LANDED_SHOP"])


def done() -> list[str]:
    return world().read_text().splitlines() if world().exists() else []


def close_series() -> None:
    world().with_suffix(".closed").touch()


def open_series() -> None:
    world().with_suffix(".closed").unlink()


def _keep(what: str) -> str:
    with world().open("a") as file:
        file.write(f"{what}\n")
    return str(len(done()))


def show_draft(asked: Previewing) -> Preview:
    amount = asked.arguments["amount"]
    return Preview(
        summary=f"Draft an invoice over {amount}", makes={"total": amount}, basis={"rate": 21}
    )


def show_issue(asked: Previewing) -> Preview:
    return Preview(summary="Issue it with the next number", basis={"series": "F"})


@landed.tool(
    effect="reversible",
    keyed="key",
    compares_payload=True,
    makes_type="draft",
    undo="delete",
    undo_arguments={"id": "{result.id}"},
    preview=show_draft,
)
async def draft(amount: int, key: str) -> dict[str, str]:
    return {"id": f"D-{_keep(f'draft {amount}')}"}


@landed.tool(effect="irreversible")
async def delete(id: str) -> dict[str, str]:
    _keep(f"delete {id}")
    return {"id": id}


@landed.tool(
    effect="irreversible",
    risk="confirm",
    accepts={"draft": "draft"},
    makes_type="invoice",
    preview=show_issue,
    permission="invoice.issue",
)
async def issue(draft: str) -> dict[str, str]:
    if world().with_suffix(".closed").exists():
        raise landed.RefusedError("the series is closed")
    return {"id": f"F-{_keep(f'issue {draft}')}"}


@landed.tool(effect="irreversible", risk="confirm", accepts={"invoice": "invoice"})
async def mail(invoice: str, to: str) -> dict[str, str]:
    return {"id": f"<{_keep(f'mail {invoice} {to}')}@mail.example>"}


class EverybodyMay:
    async def allows(self, permit: Permit) -> bool:
        return True

    async def administers(self, principal: str, *, tenant: str) -> bool:
        return principal == "boss"


permissions = EverybodyMay()


def show_purge(asked: Previewing) -> Preview:
    count = asked.arguments["count"]
    assert isinstance(count, int)
    return Preview(summary=f"Delete {count} drafts for good", typed=typed_count(count))


@landed.tool(effect="irreversible", risk="confirm", preview=show_purge)
async def purge(count: int) -> dict[str, str]:
    return {"id": f"P-{_keep(f'purge {count}')}"}


@landed.tool(effect="irreversible", risk="confirm", preview=show_issue)
def hold(name: str) -> dict[str, str]:
    """Take until somebody writes to the pipe `<file>.gate`, or to one of its own."""
    _keep(f"began {name}")
    own = world().with_suffix(f".{name}.gate")
    (own if own.exists() else world().with_suffix(".gate")).read_text()
    _keep(f"held {name}")
    return {"id": name}


tools = (draft, delete, issue, mail, purge, hold)
settings = Settings(drain_s=float(os.environ.get("LANDED_SHOP_DRAIN_S", "30")))

INVOICE = (
    Wanted(tool="draft", arguments={"amount": 500}),
    Wanted(tool="issue", arguments={"draft": "$1"}),
    Wanted(tool="mail", arguments={"invoice": "$2", "to": "client@example.com"}),
)
DRAFT = INVOICE[:1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A plan that the application proposed, with all that nobody is ever shown."""

    plan: str
    turn: str
    input: str
    question: str
    token: str
    state: str


@dataclass(slots=True)
class Shop:
    """A store in a directory (or at `place`), its application, and the command line over it."""

    directory: Path
    place: str = ""
    outputs: list[str] = field(default_factory=list[str])

    @property
    def url(self) -> str:
        return self.place or f"sqlite:///{self.directory}/agent.db"

    def propose(
        self,
        calls: Sequence[Wanted] = INVOICE,
        *,
        says: str = "invoice the logo and mail it",
        session: str = "s1",
        tenant: str = "default",
        delivery: str = "",
        answer_within_s: float = 600.0,
        secret: bytes = b"",
    ) -> Proposed:
        """Have the application hear something and propose a plan; then it ends."""

        async def act() -> Proposed:
            async with self.open(answer_within_s=answer_within_s, secret=secret) as rt:
                heard = await rt.receive(
                    says, principal="ana", session=session, tenant=tenant, delivery=delivery
                )
                value = await rt.propose(calls, ask=heard.ask("act"))
                return Proposed(
                    plan=value.plan,
                    turn=heard.turn,
                    input=heard.id,
                    question="".join(value.questions[:1]),
                    token=value.offer.token if value.offer else "",
                    state=value.state,
                )

        return asyncio.run(act())

    def work(self, plan: str) -> str:
        """Start the application anew until a plan is at rest, and return its state then."""

        async def act() -> str:
            async with self.open() as rt:
                held = await rt.driver.reader.plan(plan, tenant="default")
                return (await rt._wait_for(held, 30.0)).state

        return asyncio.run(act())

    def open(
        self, *, answer_within_s: float = 600.0, secret: bytes = b""
    ) -> AbstractAsyncContextManager[Runtime]:
        """Open the application's own runtime."""
        return landed.open(
            self.url,
            tools=tools,
            permissions=permissions,
            settings=Settings(answer_within_s=answer_within_s),
            secret=secret,
        )

    def run(self, *words: str, app: bool = False) -> Result:
        """Run the command line, with the application where `app` says so."""
        with_app = ("--app", "tests.cli.shop") if app else ()
        said = CliRunner().invoke(
            landed_command, [*words, "--store", self.url, *with_app], catch_exceptions=False
        )
        self.outputs.append(said.output)
        return said

    def read(self, *words: str) -> Any:
        """Run a command for its object."""
        said = self.run(*words, "--json")
        assert said.exit_code == 0, said.output
        return json.loads(said.stdout)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Look into the file itself."""
        with closing(sqlite3.connect(self.directory / "agent.db")) as file:
            return file.execute(query).fetchall()

    def everything(self) -> str:
        """Return all that the command line has said so far."""
        return "".join(self.outputs)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv("LANDED_SHOP", str(tmp_path / "world"))
    return Shop(directory=tmp_path)
