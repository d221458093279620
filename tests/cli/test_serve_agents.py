"""`landed serve` of an application that runs agents: their buttons are pressed over HTTP."""

import asyncio
import sys
from types import ModuleType
from typing import Any

import click
import httpx2
import pytest

import landed
from landed.agent.button import Buttons, Pressed
from landed.cli.serve import Serving, _buttons, apps
from tests.server.served import known


class Loud(Buttons):
    """Buttons that are always pressed as if it was the second time."""

    def press(self, **how: Any) -> Pressed:
        return Pressed.FORCED


@pytest.fixture
def office(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("an_office")
    monkeypatch.setitem(sys.modules, "an_office", module)
    return module


def test_the_application_may_bring_them(office: Any) -> None:
    assert _buttons("an_office:tools") is None
    office.buttons = Loud()
    assert _buttons("an_office:tools") is office.buttons
    office.buttons = {}
    with pytest.raises(click.UsageError, match="Buttons"):
        _buttons("an_office")


@pytest.mark.parametrize(("buttons", "came"), [(Loud(), "forced"), (None, "idle")])
def test_they_are_handed_to_what_is_served(buttons: Buttons | None, came: str) -> None:
    serving = Serving(
        authenticate=known, hosts=set(), owner="ana", console=True, secret=b"", buttons=buttons
    )

    async def pressed() -> None:
        async with landed.open("sqlite://:memory:") as rt:
            await rt.receive("Hm.", session="s1", principal="ana", tenant="acme")
            app, _ = apps(rt, serving)
            transport = httpx2.ASGITransport(app=app)
            async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
                said = await http.post(
                    "/v1/sessions/s1/stop", json={}, headers={"Authorization": "Bearer ana"}
                )
            assert said.json() == {"session": "s1", "stop": came}

    asyncio.run(pressed())
