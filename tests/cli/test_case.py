"""`landed case`: a person decides from what is shown alone, and their word is written down."""

import asyncio
import json
from typing import Any

import pytest

from landed.core.case import Ruling
from landed.core.key import Ask
from landed.runtime import loop
from tests.cli.doubts import SENT, Doubts, doubts
from tests.cli.test_inbox import UNSAFE

__all__ = ["doubts"]


def shown(doubts: Doubts, case: str, *words: str) -> dict[str, Any]:
    said = doubts.run("case", "show", case, "--json", *words)
    assert said.exit_code == 0, said.output
    read: dict[str, Any] = json.loads(said.stdout)
    return read


@pytest.mark.req("S4-53")
def test_what_is_shown_is_enough_to_decide_from(doubts: Doubts) -> None:
    operation = doubts.doubt("ana@example.com", says="Tell Ana that we are late.")
    case = shown(doubts, operation)
    assert (case["why"], case["state"], case["tool"]) == ("undecided", "undecided", "mail")
    assert case["arguments"] == {"to": "ana@example.com"}
    assert (case["asked for by"], case["in the words"]) == ("cleo", "Tell Ana that we are late.")
    assert case["search for"] == operation
    assert case["known until"] > case["since"]
    assert case["may"] == ["landed", "absent", "hold", "lift"]
    assert "puts every doubt in front of a person" in case["evidence"][-1]
    printed = doubts.run("case", "show", operation).output
    assert "in the words: Tell Ana that we are late.\n" in printed
    assert "may:\n  landed\n  absent\n  hold\n  lift\n" in printed


@pytest.mark.req("S4-53", "S4-52")
@pytest.mark.parametrize("app", [False, True], ids=["without the application", "with it"])
@pytest.mark.parametrize(
    ("ruling", "state", "waits"),
    [
        ("landed", "confirmed", False),
        ("absent", "failed", False),
        ("hold", "undecided", True),
        ("lift", "undecided", True),
    ],
)
def test_a_ruling_is_written_down_with_a_name_and_a_note(
    doubts: Doubts, ruling: str, state: str, waits: bool, app: bool
) -> None:
    operation = doubts.doubt()
    said = doubts.run(
        "case", "resolve", operation, ruling, "--as", "bo", "--note", "asked her", app=app
    )
    assert said.exit_code == 0, said.output
    assert f"state: {state}\n" in said.output
    case = shown(doubts, operation)
    assert case["evidence"][-1].split("  ")[1].startswith("person by bo: ")
    assert "asked her" in case["evidence"][-1]
    assert bool(case["may"]) is waits
    assert (operation in doubts.run("inbox").output) is waits
    assert SENT == ["ana"]


def test_what_it_made_can_be_said(doubts: Doubts) -> None:
    operation = doubts.doubt()
    words = ("case", "resolve", operation, "landed", "--as", "bo", "--made", "M-9")
    assert doubts.run(*words).exit_code == 0
    assert "id M-9" in doubts.run("inspect", operation).output


@pytest.mark.req("S4-21")
def test_a_key_leads_to_the_case_after_a_restart(doubts: Doubts) -> None:
    operation = doubts.doubt()
    printed = doubts.run("inspect", operation).output
    assert printed.startswith(f"{operation}: operation, undecided")


def test_a_case_of_its_own_is_signed_off(doubts: Doubts) -> None:
    doubts.hear("pi_7", "{paid}")
    case = shown(doubts, "case/unrecorded/hook/pi_7")
    assert (case["search for"], case["says"], case["arguments"]) == ("pi_7", "{paid}", None)
    assert case["may"] == ["sign_off", "hold"]
    words = ("case", "resolve", case["case"], "sign_off", "--note", "by telephone")
    assert doubts.run(*words, env={"LANDED_AS": "bo"}).exit_code == 0
    after = shown(doubts, case["case"])
    assert (after["state"], after["may"]) == ("closed", [])
    assert after["evidence"][-1].endswith("person by bo: sign_off: by telephone")
    assert doubts.run("inbox").output == "nothing waits for anybody\n"


def test_a_ruling_needs_a_name_and_one_that_there_is(doubts: Doubts) -> None:
    operation = doubts.doubt()
    nameless = doubts.run("case", "resolve", operation, "landed")
    assert (nameless.exit_code, "--as" in nameless.output) == (2, True)
    unknown = doubts.run("case", "resolve", operation, "perhaps", "--as", "bo")
    assert (unknown.exit_code, "perhaps" in unknown.output) == (2, True)
    unfit = doubts.run("case", "resolve", operation, "sign_off", "--as", "bo")
    assert (unfit.exit_code, "cannot be said of it" in unfit.output) == (1, True)
    assert shown(doubts, operation)["state"] == "undecided"


def test_a_second_ruling_is_refused(doubts: Doubts) -> None:
    operation = doubts.doubt()
    assert doubts.run("case", "resolve", operation, "absent", "--as", "bo").exit_code == 0
    again = doubts.run("case", "resolve", operation, "landed", "--as", "ana")
    assert (again.exit_code, "cannot be said of it" in again.output) == (1, True)
    assert shown(doubts, operation)["state"] == "failed"


@pytest.mark.parametrize("id", ["op-none", "case/unrecorded/a/b", "in-1", "", "ü\x1b[2J"])
@pytest.mark.parametrize("verb", ["show", "resolve"])
def test_an_id_that_is_none_is_said_to_be_none(doubts: Doubts, verb: str, id: str) -> None:
    doubts.doubt()
    rest = ("landed", "--as", "bo") if verb == "resolve" else ()
    said = doubts.run("case", verb, id, *rest)
    assert (said.exit_code, "there is no case" in said.output) == (1, True)
    assert "\x1b" not in said.output


def test_what_never_was_a_case_is_none(doubts: Doubts) -> None:
    assert doubts.run("case", "show", doubts.doubt("known")).exit_code == 1


@pytest.mark.req("S1-21")
def test_another_tenants_case_is_as_if_it_were_not_there(doubts: Doubts) -> None:
    operation = doubts.doubt(tenant="other")
    for words in (("show", operation), ("resolve", operation, "landed", "--as", "bo")):
        said = doubts.run("case", *words)
        assert (said.exit_code, "there is no case" in said.output) == (1, True)
    assert shown(doubts, operation, "--tenant", "other")["state"] == "undecided"


def test_what_others_wrote_cannot_steer_the_terminal(doubts: Doubts) -> None:
    operation = doubts.doubt(f"ana{UNSAFE}", says=f"Tell her.{UNSAFE}")
    note = f"seen{UNSAFE}"
    words = ("case", "resolve", operation, "hold", "--as", f"bo{UNSAFE}", "--note", note)
    for said in (doubts.run(*words), doubts.run("case", "show", operation)):
        assert said.exit_code == 0, said.output
        for letter in ("\x1b", "\x07", "\u202e", "\r"):
            assert letter not in said.output
    read = shown(doubts, operation)
    assert read["arguments"] == {"to": f"ana{UNSAFE}"}
    assert "\x1b" not in doubts.run("case", "show", operation, "--json").stdout


@pytest.mark.req("S4-53")
def test_the_applications_worker_goes_on_after_a_ruling_without_it(
    doubts: Doubts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command has no tools: it writes the ruling down, and the living worker reads it."""
    monkeypatch.setattr(loop, "RULED_S", 0.05)
    heard: list[str] = []

    async def act() -> None:
        async with doubts.open() as rt:
            calls = doubts.plan("ana", "known bo")
            value = await rt.propose(calls, ask=Ask(call_id="p1"), patience_s=1.0)
            (case,) = await rt.inbox()
            with rt.driver.setting.listeners.listening(value.plan) as listener:
                resolve = ("case", "resolve", case.id, "landed", "--as", "bo")
                said = await asyncio.to_thread(doubts.run, *resolve)
                assert said.exit_code == 0, said.output
                while "done" not in heard:
                    await listener.wait(30.0)
                    heard.extend(plan.state for plan in listener.heard)
                    assert heard

    asyncio.run(act())
    assert SENT == ["ana", "known bo"]


def test_the_words_of_the_command_are_the_rulings() -> None:
    from landed.cli.case import RULINGS

    assert list(RULINGS) == list(Ruling)
