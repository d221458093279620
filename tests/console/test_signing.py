"""Signing in: who is let in, for how long, and that a token that is revoked is out at once."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

import landed
from landed.console.app import console_app
from landed.console.seal import LIFETIME_S, Kept, Link, Seal
from landed.runtime.runtime import Runtime
from landed.server.auth import Identity, Role
from tests.console.pressing import OWN, Console, run
from tests.server.served import WHO, known

OWNER = Identity(principal="root", role=Role.ADMIN)


def browser(app: Any, base: str = "http://localhost") -> httpx2.AsyncClient:
    """A browser without a cookie."""
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=base)


@asynccontextmanager
async def opened(**options: Any) -> AsyncGenerator[tuple[Runtime, httpx2.AsyncClient]]:
    """A console with these options, and a browser."""
    base = options.pop("base", "http://localhost")
    async with (
        landed.open("sqlite://:memory:", tools=[]) as rt,
        browser(console_app(rt, **options), base) as http,
    ):
        yield rt, http


async def sign_in(http: httpx2.AsyncClient, token: str) -> httpx2.Response:
    """Paste a token."""
    host = str(http.base_url).rstrip("/")
    headers = {**OWN, "Origin": host}
    return await http.post("/console/sign-in", data={"token": token}, headers=headers)


@pytest.mark.parametrize("token", ["", "nobody", "añ日", "x" * 5000, "ana\nx"])
def test_a_token_that_stands_for_nobody_lets_nobody_in(token: str) -> None:
    async def script() -> None:
        async with opened(authenticate=known) as (_, http):
            answer = await sign_in(http, token)
            assert answer.status_code == 401
            assert "Nobody is known by this token." in answer.text
            assert not http.cookies

    asyncio.run(script())


@pytest.mark.req("K14")
def test_an_agent_is_told_that_this_takes_a_person() -> None:
    async def script() -> None:
        async with opened(authenticate=known) as (_, http):
            answer = await sign_in(http, "ana-agent")
            assert answer.status_code == 403
            assert "it takes the token of a person" in answer.text
            assert not http.cookies

    asyncio.run(script())


def test_whoever_becomes_an_agent_can_decide_nothing_any_more() -> None:
    roles = {"ana": WHO["ana"]}

    async def today(token: str) -> Identity | None:
        return roles.get(token)

    async def script(here: Console) -> None:
        plan = await here.refund()
        goal = f"/plans/{plan.plan}/approve"
        fields = await here.fields("/waiting", goal)
        roles["ana"] = WHO["ana-agent"]
        answer = await here.send(goal, fields)
        assert answer.status_code == 403
        assert (await here.visitors.get("/waiting")).status_code == 403
        assert here.desk.refunds == []

    run(script, authenticate=today)


def test_a_token_that_is_revoked_is_out_at_once() -> None:
    roles = {"ana": WHO["ana"]}

    async def today(token: str) -> Identity | None:
        return roles.get(token)

    async def script(here: Console) -> None:
        plan = await here.refund()
        goal = f"/plans/{plan.plan}/approve"
        fields = await here.fields("/waiting", goal)
        roles.clear()
        refused = await here.send(goal, fields)
        assert refused.status_code == 401
        assert "You are not signed in any more, so nothing was done." in refused.text
        page = await here.visitors.get("/waiting")
        assert (page.status_code, page.headers["location"]) == (
            303,
            "/console/sign-in?next=%2Fwaiting",
        )
        assert here.desk.refunds == []

    run(script, authenticate=today)


def test_a_cookie_is_out_of_reach_of_scripts_and_of_other_sites() -> None:
    async def script() -> None:
        async with opened(authenticate=known) as (_, http):
            plain = (await sign_in(http, "ana")).headers["set-cookie"]
        async with opened(authenticate=known, base="https://landed.test") as (_, http):
            secure = (await sign_in(http, "ana")).headers["set-cookie"]
        for cookie in (plain, secure):
            assert {"httponly", "samesite=strict"} <= set(cookie.lower().split("; "))
            assert f"max-age={LIFETIME_S}" in cookie.lower()
            assert "ana" not in cookie
        assert plain.startswith("landed=")
        assert "Path=/console;" in plain
        assert secure.startswith("__Host-landed=")
        assert "Path=/;" in secure
        assert "Secure" in secure
        assert "domain" not in secure.lower()

    asyncio.run(script())


def test_two_consoles_on_one_machine_leave_each_others_cookies_alone() -> None:
    async def script() -> None:
        names = []
        for port in (8080, 8081):
            base = f"http://localhost:{port}"
            async with opened(authenticate=known, base=base) as (_, http):
                names.append((await sign_in(http, "ana")).headers["set-cookie"].partition("=")[0])
                assert (await http.get("/console/waiting")).status_code == 200
        assert names == ["landed-8080", "landed-8081"]

    asyncio.run(script())


def test_who_signs_out_is_out_and_needs_their_own_form_for_it() -> None:
    async def script(here: Console) -> None:
        out = await here.press("/waiting", "/sign-out")
        assert out.headers["location"] == "/console/sign-in"
        client = here.visitors.signed_in["ana"]
        assert not client.cookies
        assert (await client.get("/console/waiting")).status_code == 303

    run(script)


def test_a_cookie_that_was_altered_is_too_old_or_is_somebody_elses_is_none() -> None:
    seal = Seal(secret=b"s" * 32)
    kept = Kept(token="ana", csrf="c")
    cookie = seal.shut(kept, now=1000.0)
    assert seal.open(cookie, now=1000.0 + LIFETIME_S - 1) == kept
    assert seal.open(cookie, now=1000.0 + LIFETIME_S + 1) is None
    assert Seal(secret=b"t" * 32).open(cookie, now=1000.0) is None
    assert seal.open(cookie[:-4] + "AAA=", now=1000.0) is None
    for odd in ("", "x", "ñ", cookie[:20]):
        assert seal.open(odd, now=1000.0) is None
    assert "ana" not in repr(kept)
    assert "ana" not in cookie


def test_processes_with_one_secret_take_each_others_cookies_and_no_others_do() -> None:
    async def script() -> None:
        async with opened(authenticate=known, secret=b"one secret of 16") as (_, first):
            await sign_in(first, "ana")
            cookie = {"Cookie": f"landed={first.cookies['landed']}"}
        for secret, status in ((b"one secret of 16", 200), (b"other secret 16b", 303), (b"", 303)):
            async with opened(authenticate=known, secret=secret) as (_, http):
                answer = await http.get("/console/waiting", headers=cookie)
                assert answer.status_code == status

    asyncio.run(script())


@pytest.mark.fault("X90")
def test_the_link_that_is_printed_lets_one_browser_in_and_leaves_the_address() -> None:
    async def script() -> None:
        link = Link()
        async with landed.open("sqlite://:memory:", tools=[]) as rt:
            app = console_app(rt, owner=OWNER, link=link)
            async with browser(app) as first, browser(app) as second:
                for wrong in ("x", "", link.key[:-1]):
                    answer = await second.get("/console/sign-in", params={"key": wrong})
                    assert answer.status_code == (401 if wrong else 200)
                    assert not second.cookies
                let_in = await first.get("/console/sign-in", params={"key": link.key})
                assert let_in.headers["location"] == "/console/waiting"
                page = await first.get("/console/waiting")
                assert page.status_code == 200
                assert "root" in page.text
                assert link.key not in page.text
                again = await second.get("/console/sign-in", params={"key": link.key})
                assert again.status_code == 401
                assert "This link is not good any more" in again.text
                assert (await second.get("/console/waiting")).status_code == 303
                assert (await sign_in(second, "ana")).status_code == 401

    asyncio.run(script())


def test_the_owners_cookie_is_none_where_people_have_tokens() -> None:
    async def script() -> None:
        secret, link = b"one secret of 16", Link()
        async with opened(owner=OWNER, link=link, secret=secret) as (_, http):
            await http.get("/console/sign-in", params={"key": link.key})
            cookie = {"Cookie": f"landed={http.cookies['landed']}"}
        async with opened(authenticate=known, secret=secret, link=Link()) as (_, http):
            assert (await http.get("/console/waiting", headers=cookie)).status_code == 303

    asyncio.run(script())


def test_without_tokens_the_page_says_which_link_lets_in() -> None:
    async def script() -> None:
        async with opened(owner=OWNER, link=Link()) as (_, http):
            page = await http.get("/console/sign-in")
            assert "Open the link that `landed serve` printed" in page.text
            assert not re.search("<input[^>]*token", page.text)

    asyncio.run(script())


@pytest.mark.parametrize(
    ("there", "lands"),
    [
        ("/plans/plan-1", "/console/plans/plan-1"),
        ("", "/console/waiting"),
        ("//evil.test/x", "/console/waiting"),
        ("https://evil.test", "/console/waiting"),
        ("/../v1/tools", "/console/waiting"),
        ("/x?y=1", "/console/waiting"),
        ("/x\r\nSet-Cookie: a=b", "/console/waiting"),
    ],
)
def test_who_signs_in_comes_to_where_they_were_and_nowhere_else(there: str, lands: str) -> None:
    async def script() -> None:
        async with opened(authenticate=known) as (_, http):
            form = {"token": "ana", "next": there}
            answer = await http.post("/console/sign-in", data=form, headers=OWN)
            assert (answer.status_code, answer.headers["location"]) == (303, lands)

    asyncio.run(script())


def test_a_link_on_another_site_leads_to_the_page_and_does_nothing_by_itself() -> None:
    async def script(here: Console) -> None:
        plan = await here.refund()
        stranger = browser(here.visitors.app)
        path = f"/console/plans/{plan.plan}"
        first = await stranger.get(path, headers={"Sec-Fetch-Site": "cross-site"})
        assert first.status_code == 200
        assert '<meta http-equiv="refresh" content="0">' in first.text
        assert "Refund" not in first.text
        again = await stranger.get(path, headers={"Sec-Fetch-Site": "same-origin"})
        assert again.headers["location"] == f"/console/sign-in?next=%2Fplans%2F{plan.plan}"
        form = await stranger.get(again.headers["location"])
        assert f'name="next" value="/plans/{plan.plan}"' in form.text
        await stranger.aclose()

    run(script)
