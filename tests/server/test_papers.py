"""The page about HTTP says what the code does."""

import asyncio
import re
from pathlib import Path

from landed.server.auth import Role
from landed.server.door import BODY_MAX, BODY_S
from landed.server.idempotency import KEY_MAX, WAIT_MAX_S, WAIT_S
from landed.server.problems import KINDS
from tests.server.served import office

PAGE = (Path(__file__).parents[2] / "docs/reference/http.md").read_text("utf-8")


def rows(head: str) -> list[list[str]]:
    """Return the cells of the table with this head."""
    body = PAGE.split(f"| {head} |\n")[1].split("\n\n")[0]
    return [[cell.strip(" `") for cell in row.split("|")[1:-1]] for row in body.splitlines()[1:]]


def test_each_route_is_on_the_page() -> None:
    async def script() -> set[str]:
        async with office() as here:
            told = (await here.get("/openapi.json")).json()["paths"]
        return {f"{verb.upper()} {path}" for path, ways in told.items() for verb in ways}

    assert {route for route, _ in rows("route | does")} == asyncio.run(script())


def test_each_problem_is_on_the_page_with_its_status() -> None:
    told = [(kind, int(status)) for kind, status, _ in rows("type | status | when")]
    assert told == [(kind, status) for kind, (status, _) in KINDS.items()]


def test_each_role_and_bound_is_on_the_page() -> None:
    assert [role for role, _ in rows("role | may, besides what the one above may")] == list(Role)
    for bound in (f"{BODY_MAX:,} bytes", f"{BODY_S:g} s", f"1 to {KEY_MAX} printable"):
        assert bound in PAGE
    assert re.search(rf"{WAIT_S:g} s unless said, at most {WAIT_MAX_S:g}", PAGE)
