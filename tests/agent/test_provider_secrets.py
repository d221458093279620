"""A key goes into one header and nowhere else: not into an error, a log, a repr or the record."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from landed.agent.messages import AssistantMessage, assistant_message, text_block
from landed.agent.providers.model import anthropic
from landed.core.errors import ContractError
from landed.testing.provider import Protocol, Reply, ScriptedProvider
from tests.agent.speaking import PROTOCOLS, model_of, said

CANARY = "sk-canary-4711-do-not-show"
HEADER = "gateway-canary-0815"

every_dialect = pytest.mark.parametrize("protocol", PROTOCOLS)


def ask(
    protocol: Protocol, key: Any, *replies: Reply, takes: str = CANARY, **options: Any
) -> AssistantMessage:
    async def program() -> AssistantMessage:
        async with ScriptedProvider(*replies, key=takes) as there:
            return await said(protocol, there, key=key, **options)

    return asyncio.run(program())


async def later() -> str:
    return CANARY


@every_dialect
@pytest.mark.parametrize("key", ["A_KEY", lambda: CANARY, later], ids=["name", "plain", "async"])
def test_the_key_is_looked_up_when_a_request_is_made(
    protocol: Protocol, key: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", CANARY + "\n")

    reply = ask(protocol, key, Reply(text="Yes."))

    assert reply == assistant_message(text_block("Yes."))


@every_dialect
@pytest.mark.fault("X94")
def test_a_provider_that_repeats_the_key_does_not_bring_it_into_the_record(
    protocol: Protocol, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    refused = ask(protocol, lambda: CANARY, takes="another")
    echo = Reply(status=400, says=f"bad: {CANARY} {HEADER}", headers={"x-echo": CANARY[:0]})
    echoed = ask(protocol, lambda: CANARY, echo, headers={"x-gateway": HEADER})
    broken = ask(protocol, lambda: CANARY, Reply(raw=f"data: {CANARY}\n\n".encode()))

    said_of_it = f"{refused} {echoed} {broken} {caplog.text}"
    assert "Incorrect API key provided: ***" in said_of_it
    assert "bad: *** ***" in said_of_it
    assert CANARY not in said_of_it
    assert HEADER not in said_of_it


def raises() -> str:
    raise RuntimeError(f"the vault refused {CANARY}")


@every_dialect
@pytest.mark.fault("X94")
@pytest.mark.parametrize(
    "key",
    [raises, lambda: CANARY + "\r\nx-injected: 1", lambda: CANARY + "é", lambda: "", lambda: None],
    ids=["raises", "two lines", "not ASCII", "empty", "none"],
)
def test_a_key_that_cannot_be_sent_is_an_error_without_it(
    protocol: Protocol, key: Callable[[], str]
) -> None:
    reply = ask(protocol, key, Reply(text="Yes."))

    assert reply["stop_reason"] == "error"
    assert "key" in reply.get("error_message", "")
    assert CANARY not in str(reply)


def test_an_environment_without_the_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("A_KEY", raising=False)

    reply = ask("anthropic", "A_KEY")

    assert reply.get("error_message") == "anthropic: the environment has no A_KEY"


@pytest.mark.fault("X94")
def test_the_key_itself_is_refused_in_place_of_its_name_and_not_repeated() -> None:
    with pytest.raises(ContractError) as refused:
        anthropic("scripted-1", key=CANARY)

    assert CANARY not in str(refused.value)


@every_dialect
@pytest.mark.fault("X94")
def test_nothing_of_it_is_in_the_model_as_text(protocol: Protocol) -> None:
    async def program() -> str:
        async with ScriptedProvider() as there:
            options = {"key": lambda: CANARY, "headers": {"authorization2": HEADER}}
            model = model_of(protocol, there, **options)
            return f"{model!r} {model} {model.model}"

    shown = asyncio.run(program())

    assert CANARY not in shown
    assert HEADER not in shown


@pytest.mark.fault("X94")
@pytest.mark.parametrize(
    "url", [f"https://me:{CANARY}@example.org", f"https://example.org?key={CANARY}", f"{CANARY}:1"]
)
def test_a_url_that_holds_a_secret_is_refused_without_it(url: str) -> None:
    with pytest.raises(ContractError) as refused:
        anthropic("scripted-1", url=url)

    assert CANARY not in str(refused.value)
