"""The console's door: forms of other sites, other names, frames; nothing is done for them."""

import asyncio

import httpx2
import pytest

from landed.console.door import BODY_MAX
from landed.console.pages import PAGES
from landed.core.plan import PlanState
from tests.console.pressing import OWN, Console, run

GOALS = [page.path for page in PAGES if page.method == "POST" and not page.open]
FORMS = [f"/plans/{{plan}}/{verb}" for verb in ("approve", "decline", "cancel", "abandon")]

FOREIGN = {
    "another site": {"Origin": "https://evil.test", "Sec-Fetch-Site": "cross-site"},
    "another site, by its origin alone": {"Origin": "https://evil.test", "Sec-Fetch-Site": ""},
    "another port": {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"},
    "another port, by its origin alone": {"Origin": "http://localhost:3000", "Sec-Fetch-Site": ""},
    "another scheme of ours": {"Origin": "http://localhost", "Sec-Fetch-Site": "cross-site"},
    "a page without an origin": {"Origin": "null", "Sec-Fetch-Site": ""},
    "nobody knows where": {"Origin": "", "Sec-Fetch-Site": ""},
    "no address at all": {"Origin": "http://[", "Sec-Fetch-Site": ""},
}


async def records(here: Console) -> list[tuple[str, int]]:
    """Everything there is in the store, with its version."""
    entries = await here.rt.driver.store.journal(limit=5000)
    return [(entry.id, entry.version) for entry in entries]


@pytest.mark.fault("X89")
@pytest.mark.parametrize("headers", FOREIGN.values(), ids=list(FOREIGN))
def test_a_form_from_elsewhere_is_refused_and_changes_nothing(headers: dict[str, str]) -> None:
    async def script(here: Console) -> None:
        plan = await here.refund()
        fields = await here.fields("/waiting", f"/plans/{plan.plan}/approve")
        before = await records(here)
        for goal in FORMS:
            answer = await here.send(goal.format(plan=plan.plan), fields, **headers)
            assert answer.status_code == 403
            assert "This did not come from a page of this console" in answer.text
        assert await records(here) == before
        assert here.desk.refunds == []

    run(script)


@pytest.mark.fault("X89")
@pytest.mark.parametrize("csrf", [None, "", "x", "another sign-in's"])
@pytest.mark.parametrize("goal", GOALS)
def test_a_form_without_the_value_of_its_sign_in_changes_nothing(
    goal: str, csrf: str | None
) -> None:
    async def script(here: Console) -> None:
        plan = await here.refund()
        fields = await here.fields("/waiting", f"/plans/{plan.plan}/approve", who="ana")
        before = await records(here)
        value = csrf
        if csrf == "another sign-in's":
            value = (await here.fields("/waiting", "/sign-out", who="boss"))["csrf"]
        sent = {**fields, "csrf": value} if value is not None else dict(fields)
        if value is None:
            del sent["csrf"]
        path = goal.replace("{id:whole}", plan.plan).replace("{id}", plan.plan)
        answer = await here.send(path.replace("{scenario}", "x"), sent, who="ana")
        assert answer.status_code == 403, path
        assert await records(here) == before
        assert here.desk.refunds == []

    run(script)


def test_a_form_of_our_own_page_is_taken_with_or_without_fetch_metadata() -> None:
    async def script(here: Console) -> None:
        for headers in (
            {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"},
            {"Origin": "", "Sec-Fetch-Site": "same-origin"},
            {"Origin": "http://localhost", "Sec-Fetch-Site": ""},
        ):
            plan = await here.refund()
            goal = f"/plans/{plan.plan}/decline"
            answer = await here.send(goal, await here.fields("/waiting", goal), **headers)
            assert answer.status_code == 303
            assert (await here.stored(plan)).state is PlanState.DECLINED

    run(script)


@pytest.mark.fault("X90")
@pytest.mark.parametrize("host", ["evil.test", "localhost.evil.test", "", "127.0.0.1", "a b"])
def test_by_another_name_nothing_is_read_and_nothing_is_done(host: str) -> None:
    async def script(here: Console) -> None:
        plan = await here.refund()
        client = await here.visitors._as("ana")
        page = await client.get("/console/waiting", headers={"Host": host})
        assert page.status_code == 403
        assert plan.plan not in page.text
        assert "Refund" not in page.text
        fields = await here.fields("/waiting", f"/plans/{plan.plan}/approve")
        for origin in (f"http://{host}", "http://localhost"):
            sent = {"Host": host, "Origin": origin, "Sec-Fetch-Site": "same-origin"}
            goal = f"/console/plans/{plan.plan}/approve"
            answer = await client.post(goal, data=fields, headers=sent)
            assert answer.status_code == 403
        assert here.desk.refunds == []

    run(script)


@pytest.mark.fault("X91")
@pytest.mark.parametrize(
    "path", ["/waiting", "/sign-in", "/nothing", "/plans/nothing", "/static/console.css", ""]
)
def test_each_answer_forbids_frames_and_all_that_is_not_ours(path: str) -> None:
    async def script(here: Console) -> None:
        answer = await here.visitors.get(path)
        written = answer.headers["content-security-policy"].split(";")
        parts = [part.strip().partition(" ") for part in written]
        policy = {name: given for name, _, given in parts}
        assert policy["default-src"] == "'none'"
        assert policy["frame-ancestors"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == "'self'"
        assert policy["form-action"] == "'self'"
        assert policy["base-uri"] == "'none'"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in answer.headers

    run(script)


def test_what_is_no_form_or_too_large_is_refused_as_a_page() -> None:
    async def script(here: Console) -> None:
        client = await here.visitors._as("ana")
        goal = "/console/sign-out"
        json = await client.post(goal, json={"csrf": "x"}, headers=OWN)
        assert (json.status_code, json.headers["content-type"][:9]) == (415, "text/html")
        large = await client.post(goal, data={"csrf": "x" * BODY_MAX}, headers=OWN)
        assert large.status_code == 413
        kind = {**OWN, "Content-Type": "application/x-www-form-urlencoded"}
        odd = await client.post(goal, content=b"csrf=%ff", headers=kind)
        assert odd.status_code == 400
        many = await client.post(goal, content=b"&".join([b"a=1"] * 60), headers=kind)
        assert many.status_code == 400

    run(script)


def test_reading_never_changes_anything() -> None:
    async def script(here: Console) -> None:
        plan = await here.refund()
        await here.propose("draft", what="one")
        before = await records(here)
        for page in PAGES:
            if page.method != "GET" or page.live:
                continue
            path = page.path.replace("{id:whole}", plan.plan).replace("{id}", plan.plan)
            if "{" not in path and not path.startswith("/try"):
                await here.visitors.get(path, who="boss")
        for verb in ("approve", "decline", "cancel", "retry", "undo", "abandon"):
            answer = await here.visitors.get(f"/plans/{plan.plan}/{verb}")
            assert answer.status_code == 405
        assert await records(here) == before

    run(script)


def test_the_console_takes_no_authorization_and_the_api_no_cookie() -> None:
    from landed.console.app import beside, console_app
    from landed.server.app import http_app
    from tests.server.served import known, office

    async def script() -> None:
        async with office() as here:
            app = beside(
                console_app(here.rt, authenticate=known), http_app(here.rt, authenticate=known)
            )
            transport = httpx2.ASGITransport(app=app)
            async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
                assert (await http.get("/")).headers["location"].startswith("/console")
                bearer = {"Authorization": "Bearer ana"}
                assert (await http.get("/console/waiting", headers=bearer)).status_code == 303
                signed = await http.post("/console/sign-in", data={"token": "ana"}, headers=OWN)
                assert signed.status_code == 303
                cookie = f"landed={http.cookies['landed']}"
                assert (await http.get("/console/waiting")).status_code == 200
                answer = await http.get("/v1/tools", headers={"Cookie": cookie})
                assert answer.status_code == 401
                assert (await http.get("/v1/tools", headers=bearer)).status_code == 200

    asyncio.run(script())
