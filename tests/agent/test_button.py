"""The stop button of a person: asked, then forced; the run is over either way."""

import asyncio

import pytest

from landed.agent.button import Button, Buttons, Pressed
from landed.agent.harness import Harness
from landed.agent.tool import AgentTool
from landed.testing.scripted import ScriptedReplies, asks, call, says
from landed.testing.shapes import shape
from landed.testing.ticks import ticks


class Deaf:
    """A tool that never looks at the signal, and the event that says it runs."""

    def __init__(self) -> None:
        self.runs = asyncio.Event()

    async def execute(self, arguments, signal=None):
        self.runs.set()
        await asyncio.Event().wait()
        return "never"


def deaf_harness() -> tuple[Deaf, Harness]:
    deaf = Deaf()
    tool = AgentTool(name="build", description="", parameters={}, execute=deaf.execute)
    model = ScriptedReplies(asks(call("c1", "build")), says("Then not."))
    return deaf, Harness(model=model, tools=[tool])


def test_a_second_press_does_not_wait_for_the_grace() -> None:
    async def pressed() -> None:
        deaf, harness = deaf_harness()
        button = Button(lambda: harness, grace_s=3_600)
        assert button.press() is Pressed.IDLE
        driving = asyncio.ensure_future(button.drive(harness.prompt("Build."), lambda event: None))
        await deaf.runs.wait()
        assert button.press("ana", "wrong branch") is Pressed.ASKED
        await ticks(5)
        assert not driving.done()
        assert button.press("ana") is Pressed.FORCED
        await driving
        assert shape(harness.messages) == "U A[c1]"
        assert not harness.is_running
        assert button.press() is Pressed.IDLE

    asyncio.run(pressed())


def test_one_press_is_enough_where_the_run_answers() -> None:
    async def pressed() -> None:
        _, harness = deaf_harness()
        button = Button(lambda: harness)
        heard = []

        def on_event(event):
            heard.append(event["type"])
            if event["type"] == "turn_start":
                button.press("ana", "wrong branch")

        await button.drive(harness.prompt("Build."), on_event)
        assert shape(harness.messages) == "U A(aborted)"
        assert heard[-1] == "agent_end"

    asyncio.run(pressed())


def test_what_a_run_dies_of_is_raised_by_whoever_drives_it() -> None:
    async def driven() -> None:
        harness = Harness(model=ScriptedReplies(says("Hm.")))

        def fails(event):
            raise OSError("the disk is full")

        with pytest.raises(OSError, match="disk is full"):
            await Button(lambda: harness).drive(harness.prompt("Build."), fails)
        assert not harness.is_running

    asyncio.run(driven())


def test_whoever_is_cancelled_while_driving_presses_and_lets_nothing_run_on() -> None:
    async def cancelled() -> None:
        deaf, harness = deaf_harness()
        button = Button(lambda: harness, grace_s=3_600)
        driving = asyncio.ensure_future(button.drive(harness.prompt("Build."), lambda event: None))
        await deaf.runs.wait()
        driving.cancel()
        await ticks(3)
        assert not driving.done()
        assert harness.signal is not None
        driving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await driving
        assert not harness.is_running

    asyncio.run(cancelled())


def test_the_buttons_of_a_process_are_found_by_conversation() -> None:
    async def found() -> None:
        deaf, harness = deaf_harness()
        button, buttons = Button(lambda: harness, grace_s=0.0), Buttons()
        assert buttons.press(tenant="t", session="s") is Pressed.IDLE
        with buttons.lit(button, tenant="t", session="s"):
            again = buttons.lit(button, tenant="t", session="s")
            with pytest.raises(RuntimeError, match="another agent"):
                again.__enter__()
            driving = asyncio.ensure_future(button.drive(harness.prompt("Go."), lambda event: None))
            await deaf.runs.wait()
            assert buttons.press(tenant="t", session="other") is Pressed.IDLE
            assert buttons.press(tenant="t", session="s", by="ana") is Pressed.ASKED
            await driving
        assert not buttons.of

    asyncio.run(found())
