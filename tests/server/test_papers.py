"""The page about HTTP says what the code does."""

import asyncio
import re
import socket
import subprocess
import sys
from pathlib import Path

from landed.runtime.runtime import Runtime
from landed.server.auth import Role
from landed.server.door import BODY_MAX, BODY_S
from landed.server.idempotency import KEY_MAX, WAIT_MAX_S, WAIT_S
from landed.server.listening import listen_at
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


def test_what_is_accepted_sends_at_once() -> None:
    with (
        listen_at("127.0.0.1", 0) as door,
        socket.create_connection(door.getsockname()),
        door.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_library_alone_loads_no_server() -> None:
    look = "import sys, landed; landed.open; print({'fastapi', 'uvicorn'} & sys.modules.keys())"
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


def test_the_verbs_over_http_are_those_of_the_runtime() -> None:
    """What is called otherwise over HTTP is so on purpose, and here."""
    renamed = {"dry-run": "preview", "cancel": "stop", "inputs": "receive"}
    last = {route.rsplit("/", 1)[1] for route, _ in rows("route | does") if "POST" in route}
    verbs = {renamed.get(name, name) for name in last - {"plans"}} | {"propose"}
    assert verbs == {
        *("preview", "commit", "propose", "approve", "decline", "abandon", "stop", "retry"),
        *("undo", "revise", "resolve", "receive"),
    }
    assert all(callable(getattr(Runtime, verb)) for verb in verbs)


def test_each_role_and_bound_is_on_the_page() -> None:
    assert [role for role, _ in rows("role | may, besides what the one above may")] == list(Role)
    for bound in (f"{BODY_MAX:,} bytes", f"{BODY_S:g} s", f"1 to {KEY_MAX} printable"):
        assert bound in PAGE
    assert re.search(rf"{WAIT_S:g} s unless said, at most {WAIT_MAX_S:g}", PAGE)
