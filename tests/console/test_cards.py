"""What stands on a card, and what never does: the agent's words apart, no token, nothing erased."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import landed
from landed.console.app import console_app
from landed.core.erasing import Erasure
from landed.core.errors import StoreError
from landed.core.keeping import Selection
from landed.core.key import Ask
from landed.core.plan import PlanState, Wanted
from landed.runtime.keeping import Keeper
from landed.runtime.permissions import Permit
from landed.stores.sqlite import SqliteStore
from landed.stores.urls import open_store
from tests.console.pressing import Console, Desk, csrf_of, run
from tests.console.visiting import Visitors
from tests.server.served import known

REFUND = Wanted(tool="big_refund", arguments={"invoice": "4412", "amount_cents": 48000})
ASK = Ask(tenant="acme", principal="ana", session="s")


@pytest.mark.fault("X87")
def test_what_the_agent_wrote_stands_apart_and_closed() -> None:
    async def script(here: Console) -> None:
        lie = "Only 1 cent, already approved by the person"
        await here.rt.propose([REFUND], ask=ASK, intent={"summary": lie}, patience_s=1.0)
        page = await here.page("/waiting")
        (apart,) = page.all("details", **{"class": "agent"})
        assert "open" not in apart.attributes
        assert "Written by the agent (not what is decided about)" in apart.words
        assert lie in apart.words
        (card,) = page.all("article")
        assert card.words.count(lie) == 1
        assert page.one("h2").words == "Refund 48000 cents"

    run(script)


def test_no_token_reaches_a_page() -> None:
    async def script(here: Console) -> None:
        asked = await here.refund()
        kept = await here.rt.preview([REFUND], ask=ASK, keep=True)
        tokens = [value.offer.token for value in (asked, kept) if value.offer]
        assert len(tokens) == 2
        assert all(tokens)
        for path in ("/waiting", f"/plans/{asked.plan}", f"/plans/{kept.plan}"):
            text = (await here.page(path)).text
            assert not any(token in text for token in tokens)

    run(script)


def test_a_yes_to_what_a_program_previewed_lets_that_begin_and_begins_nothing() -> None:
    async def script(here: Console) -> None:
        kept = await here.rt.preview([REFUND], ask=ASK, keep=True)
        assert kept.offer is not None
        page = await here.follow(await here.press("/waiting", f"/plans/{kept.plan}/approve"))
        assert (
            "ana said yes. It begins when the program that previewed it commits it." in page.words
        )
        assert here.desk.refunds == []
        assert "Nothing waits for you." in (await here.page("/waiting")).words
        done = await here.rt.commit(
            kept.plan,
            token=kept.offer.token,
            fingerprint=kept.fingerprint,
            principal="ana",
            tenant="acme",
        )
        assert done.state is PlanState.DONE
        assert here.desk.refunds == [48000]

    run(script)


class Boss:
    """Who administers acme, as the application says."""

    async def allows(self, permit: Permit) -> bool:
        return True

    async def administers(self, principal: str, *, tenant: str) -> bool:
        return (principal, tenant) == ("boss", "acme")


@pytest.mark.req("S1-55")
@pytest.mark.parametrize("permissions", [Boss(), None])
def test_who_may_see_to_it_cancels_what_others_started_and_nobody_else(permissions: Any) -> None:
    async def script(here: Console) -> None:
        plan = await here.propose("slow", what="x")
        await here.desk.begun.wait()
        goal = f"/plans/{plan.plan}/cancel"
        page = await here.page("/running", who="boss")
        assert "for ana" in page.words
        forms = page.all("form", action=f"/console{goal}")
        assert len(forms) == (1 if permissions else 0)
        answer = await here.send(goal, {"csrf": csrf_of(page)}, who="boss")
        assert answer.status_code == (303 if permissions else 409)
        state = (await here.stored(plan)).state
        assert state is (PlanState.STOPPING if permissions else PlanState.RUNNING)

    run(script, permissions=permissions)


def test_what_was_erased_is_said_to_be_and_its_page_stays(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/agent.db"

    async def script() -> None:
        desk = Desk()
        async with landed.open(url, tools=desk.every()) as rt:
            heard = await rt.receive("Draft Ana Gil", principal="ana", tenant="acme", session="s")
            calls = [Wanted(tool="draft", arguments={"what": "Ana Gil"})]
            plan = await rt.propose(calls, ask=heard.ask("p"), intent={"who": "Ana Gil"})
        store = await open_store(url)
        assert isinstance(store, SqliteStore)
        keeper = Keeper(store=store, keeping=store.keeping())
        chosen = Selection(tenant="acme", record=plan.plan)
        await keeper.erase(chosen, Erasure(by="dpo", why="asked", at=1_900_000_000.0))
        await store.close()
        async with landed.open(url, tools=desk.every()) as rt:
            app = console_app(rt, authenticate=known)
            visitors = Visitors(rt=rt, app=app, signed_in={})
            for path in (f"/plans/{plan.plan}", "/done"):
                page = await visitors.page(path)
                assert "Ana Gil" not in page.text
                assert "erased" in page.words
            await visitors.signed_in["ana"].aclose()

    asyncio.run(script())


def test_a_store_that_cannot_now_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(here: Console) -> None:
        await here.page("/waiting")

        async def broken(*_: Any, **__: Any) -> None:
            raise StoreError("the disk of /var/lib/secret is full")

        monkeypatch.setattr(type(here.rt.driver.store), "listed", broken)
        answer = await here.visitors.get("/waiting")
        assert answer.status_code == 503
        assert "The store cannot do this now" in answer.text
        assert "secret" not in answer.text

    run(script)
