"""The API is as it describes itself, whatever is sent to it: random requests to a real server."""

import asyncio
import contextlib
import json
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import landed
from landed.server.app import http_app
from landed.server.auth import Identity, Role
from landed.server.listening import listen_at, listening
from tests.server.served import Ledger

BOSS = Identity(principal="boss", tenant="acme", role=Role.ADMIN)
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)


class Served(threading.Thread):
    """A server on a loop of its own, until it is told to end."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.door = listen_at("127.0.0.1", 0)
        self.begun = threading.Event()
        self.server: Any = None
        self.ledger = Ledger()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.door.getsockname()[1]}"

    def run(self) -> None:
        """Serve."""
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self.ledger.opened.set()
        async with landed.open("sqlite://:memory:", tools=self.ledger.tools()) as rt:
            self.server = listening(http_app(rt, nobody=BOSS), farewell_s=1, begun=self.begun.set)
            with contextlib.suppress(asyncio.CancelledError):
                await self.server.serve(sockets=[self.door])


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A server of an office in which the boss may do everything."""
    thread = Served()
    thread.start()
    assert thread.begun.wait(30)
    yield thread
    thread.server.should_exit = True
    thread.join(30)


@pytest.mark.services
@pytest.mark.fault("X96")
@pytest.mark.timeout(600)
def test_whatever_is_sent_the_answer_is_one_that_is_described(served: Served) -> None:
    with urllib.request.urlopen(f"{served.url}/openapi.json", timeout=30) as answer:
        schema = schemathesis.openapi.from_dict(json.loads(answer.read()))
    every: Any = schema.get_all_operations()
    described = [found.ok() for found in every]
    for operation in described:
        if not operation.path.endswith("/events"):
            _drive(operation, served.url)
    assert len(described) == 29


def _drive(operation: Any, url: str) -> None:
    @given(case=operation.as_strategy())
    @settings(
        max_examples=25,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        derandomize=True,
    )
    def sent(case: Any) -> None:
        headers = {} if case.headers and "Prefer" in case.headers else {"Prefer": "wait=0"}
        answer = case.call(base_url=url, headers=headers)
        case.validate_response(answer, checks=CHECKS)

    sent()
