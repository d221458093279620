"""What is let in at all, and what a request looks like that is not."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from landed.server.door import LOOPBACK
from tests.server.served import Office, kind_of, office
from tests.server.test_commits import run

DRY = "/v1/tools/refund/dry-run"
JSON = {"content-type": "application/json", "authorization": "Bearer ana"}


async def chunks(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b" " * 1000


async def never_ending() -> AsyncIterator[bytes]:
    yield b"{"
    await asyncio.get_running_loop().create_future()


def test_a_body_beyond_the_bound_is_refused_whatever_it_says_of_itself() -> None:
    async def script(here: Office) -> None:
        whole = await here.http.post(DRY, content=b" " * 3000, headers=JSON)
        in_parts = await here.http.post(DRY, content=chunks(3), headers=JSON)
        lying = await here.http.post(DRY, content=b"{}", headers={**JSON, "content-length": "-1"})
        for answer in (whole, in_parts, lying):
            assert kind_of(answer) == (413, "too-large")

    run(script, body_max=2000)


def test_a_body_that_takes_too_long_is_not_waited_for() -> None:
    async def script(here: Office) -> None:
        answer = await here.http.post(DRY, content=never_ending(), headers=JSON)
        assert kind_of(answer) == (408, "too-slow")

    run(script, body_s=0.01)


@pytest.mark.parametrize(
    ("sent", "kind", "problem"),
    [
        (b"{}", "text/plain", (415, "not-json")),
        (b"a=1", "application/x-www-form-urlencoded", (415, "not-json")),
        (b"{}", "", (415, "not-json")),
        (b"{", "application/json", (400, "malformed")),
        (b"\xff", "application/json", (400, "malformed")),
        (b"[" * 100_000, "application/json", (400, "malformed")),
        (b'{"arguments": {}, "surprise": 1}', "application/json", (400, "unknown-field")),
        (b'{"arguments": []}', "application/json", (422, "invalid")),
        (b'{"arguments": {"invoice": 1}}', "application/json", (422, "invalid")),
        (b'{"session": "a\\nb"}', "application/json", (422, "invalid")),
        (b'{"session": "\\ud800"}', "application/json", (422, "invalid")),
        (
            b'{"arguments": {"invoice": "\\ud800", "amount_cents": 1}}',
            "application/json",
            (422, "invalid"),
        ),
        (
            b'{"arguments": {"invoice": "1", "amount_cents": NaN}}',
            "application/json",
            (422, "invalid"),
        ),
    ],
)
def test_what_cannot_be_read_is_a_problem_that_repeats_nothing(
    sent: bytes, kind: str, problem: tuple[int, str]
) -> None:
    async def script(here: Office) -> None:
        headers = {**JSON, "content-type": kind}
        answer = await here.http.post(DRY, content=sent, headers=headers)
        assert kind_of(answer) == problem
        assert 'surprise": 1' not in answer.text
        assert here.ledger.refunds == []

    run(script)


@pytest.mark.fault("X90")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "evil.test"}, 403),
        ({"Host": "localhost:8080"}, 200),
        ({"Host": "[::1]:8080"}, 200),
        ({"Host": ""}, 403),
        ({"Origin": "http://evil.test"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:3000"}, 200),
    ],
)
def test_on_the_loopback_only_the_loopback_calls(headers: dict[str, str], status: int) -> None:
    async def script(here: Office) -> None:
        answer = await here.http.get("/v1/tools", headers=headers)
        assert answer.status_code == status

    run(script, authenticate=None, hosts=LOOPBACK)


@pytest.mark.fault("X96")
@pytest.mark.parametrize("id", ["..%2f..%2fetc", "%00", "plan-1'--", "%F0%9F%98%80", "x" * 1000])
def test_an_id_that_is_none_finds_nothing(id: str) -> None:
    async def script(here: Office) -> None:
        for path in (f"/v1/plans/{id}", f"/v1/operations/{id}", f"/v1/tools/{id}"):
            answer = await here.get(path)
            assert answer.status_code in (404, 422)
            kind_of(answer)

    run(script)


def test_what_has_no_route_is_a_problem_too() -> None:
    async def script(here: Office) -> None:
        assert kind_of(await here.get("/nothing")) == (404, "absent")
        assert kind_of(await here.call("DELETE", "/v1/tools")) == (405, "no-such-method")

    run(script)


def test_a_fault_of_ours_says_nothing_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(here: Office) -> None:
        async def broken(*_: object, **__: object) -> None:
            raise RuntimeError("the secret is s3cret")

        monkeypatch.setattr(type(here.rt.driver.reader), "plan", broken)
        answer = await here.get("/v1/plans/plan-1")
        assert kind_of(answer) == (500, "ours")
        assert "s3cret" not in answer.text

    run(script)


def test_the_openapi_is_of_3_1_and_says_what_goes_with_a_token() -> None:
    async def script(here: Office) -> None:
        told = (await here.get("/openapi.json")).json()
        assert told["openapi"].startswith("3.1")
        commit = told["components"]["schemas"]["CommitBody"]
        needed = commit["dependentRequired"]["plan_token"]
        assert set(needed) == {"plan_id", "input_fingerprint"}
        assert commit["additionalProperties"] is False
        assert "Problem" in told["components"]["schemas"]
        assert "throw the plan token away" in json.dumps(told)

    asyncio.run(_with(script))


async def _with(script: object) -> None:
    async with office() as here:
        await script(here)  # type: ignore[operator]
