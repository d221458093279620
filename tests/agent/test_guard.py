"""The guard fails closed, tells the model why, and is in nobody's way who stops."""

import asyncio
from dataclasses import fields

import pytest

from landed.agent.bash import bash_tool
from landed.agent.guard import allow_only, confirm_with, deny_destructive, guard
from landed.agent.harness import Harness
from landed.agent.messages import ABORTED
from landed.agent.tool import run_tool, tool_specs
from landed.testing.scripted import ScriptedReplies, asks, call, says
from landed.testing.shapes import shape
from landed.testing.ticks import Background, driven, ticks
from landed.testing.workspace import FakeShell, FakeWorkspace
from tests.agent.simulated import simulated

FILES = {"build/out.txt": "built", "a.py": "one"}


def guarded_run(check, *commands):
    """Let a model run these commands behind a check; return the shell, the harness, its model."""
    shell = FakeShell(FakeWorkspace(FILES))
    replies = [asks(call(f"c{n}", "bash", command=one)) for n, one in enumerate(commands, 1)]
    model = ScriptedReplies(*replies, forever=says("Very well."))
    harness = Harness(model=model, tools=[guard(bash_tool(shell), check)])
    simulated(driven(harness.prompt("Clean up.")))
    return shell, harness, model


@pytest.mark.req("S2-17")
def test_a_guarded_tool_looks_like_the_tool() -> None:
    plain = bash_tool(FakeShell())
    guarded = guard(plain, deny_destructive)

    same = [f.name for f in fields(plain) if getattr(plain, f.name) == getattr(guarded, f.name)]
    assert same == [f.name for f in fields(plain) if f.name != "execute"]
    assert tool_specs([plain]) == tool_specs([guarded])


@pytest.mark.req("S2-18", "S2-20")
def test_a_refusal_says_why_and_the_model_tries_something_else() -> None:
    shell, harness, model = guarded_run(deny_destructive, "rm -rf build", "cat a.py")

    assert shape(harness.messages, errors=True) == "U A[c1] R(c1 error) A[c2] R(c2) A"
    assert model.calls[1].messages[-1]["content"] == (
        "Tool call blocked: deny_destructive does not let 'rm -rf' through; "
        "name what is to go one by one, or ask the user to do it"
    )
    assert [command.line for command in shell.started] == ["cat a.py"]
    assert shell.workspace.files == FILES


def by_table(name, arguments):
    """Say what a table says of the program: an allow-list with a hole in it."""
    return {"ls": None, "cat": None}[arguments["command"].split()[0]]


@pytest.mark.req("S2-19")
def test_a_check_that_raises_blocks_the_call() -> None:
    shell, harness, _ = guarded_run(by_table, "rm -r build")

    assert shape(harness.messages, errors=True) == "U A[c1] R(c1 error) A"
    assert harness.messages[2]["content"] == "Tool call blocked: the check failed: 'rm'"
    assert (shell.started, shell.workspace.files) == ([], FILES)


@pytest.mark.req("S2-19")
@pytest.mark.parametrize("said", [False, True, 0, "", object])
def test_whatever_is_not_none_is_a_refusal(said) -> None:
    shell, harness, _ = guarded_run(lambda name, arguments: said, "rm -r build")

    assert str(harness.messages[2]["content"]).startswith("Tool call blocked: ")
    assert shell.started == []


@pytest.mark.req("S2-22")
def test_a_deny_list_is_a_speed_bump() -> None:
    shell, _, _ = guarded_run(deny_destructive, "rm -fr build")

    assert "build/out.txt" not in shell.workspace.files
    assert "speed bump" in str(deny_destructive.__doc__)
    shell, harness, _ = guarded_run(allow_only("cat", "ls"), "rm -fr build")
    assert shell.workspace.files == FILES
    assert harness.messages[2]["content"] == (
        "Tool call blocked: allow_only does not let 'rm' through; "
        "use one of these, alone: cat, ls, or ask the user"
    )


@pytest.mark.req("S2-22")
@pytest.mark.parametrize(
    "command",
    [
        "cat a.py; rm -r build",
        "cat a.py && rm -r build",
        "cat a.py | sh",
        "cat a.py\nrm -r build",
        "cat $(rm -r build)",
        "cat `rm -r build`",
        "cat <(rm -r build)",
        "cat a.py > b.py",
        "cat a.py & rm -r build",
        "cat ~/.ssh/id",
        "cat $HOME",
        "cat 'a.py",
        "PATH=. cat a.py",
        "",
    ],
)
def test_an_allowed_program_runs_alone(command) -> None:
    check = allow_only("cat")

    assert check("bash", {"command": command})
    assert check("bash", {"command": 5})
    assert check("bash", {"command": "cat 'a b.py' --number=1"}) is None


@pytest.mark.req("S2-23")
@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("answer", [True, False, "yes", None, 1])
def test_only_true_is_a_yes(answer, later) -> None:
    asked: list[str] = []

    def human(question):
        asked.append(question)
        return answer

    async def human_later(question):
        await ticks(3)
        return human(question)

    shell, harness, _ = guarded_run(confirm_with(human_later if later else human), "cat a.py")

    assert asked == ['Allow bash {"command": "cat a.py"}?']
    if answer is True:
        assert harness.messages[2]["content"] == "one"
    else:
        assert harness.messages[2]["content"] == "Tool call blocked: the user said no"
        assert shell.started == []


async def never(question) -> bool:
    return await asyncio.Event().wait()


@pytest.mark.req("S2-21", "S2-110")
def test_a_stop_while_a_person_is_asked_runs_nothing() -> None:
    async def program(press) -> str:
        shell = FakeShell()
        harness = Harness(
            model=ScriptedReplies(asks(call("c1", "bash", command="true"))),
            tools=[guard(bash_tool(shell), confirm_with(never))],
        )
        background = Background(harness.prompt("Go."))
        await background.until("tool_execution_start")
        await ticks(3)
        press(harness, background)
        await asyncio.wait({background.running})
        assert shell.started == []
        return shape(harness.messages, errors=True)

    flagged = program(lambda harness, background: harness.cancel())
    assert simulated(flagged) == "U A[c1] R(c1 error) A(aborted)"
    hard = program(lambda harness, background: background.running.cancel())
    assert simulated(hard) == "U A[c1]"


def test_a_yes_that_comes_with_the_stop_runs_nothing() -> None:
    async def program() -> None:
        shell = FakeShell()

        class Signal:
            cancelled = False

            def is_cancelled(self) -> bool:
                return self.cancelled

        async def human(question):
            Signal.cancelled = True
            return True

        guarded = guard(bash_tool(shell), confirm_with(human))
        result = await run_tool(call("c1", "bash", command="true"), [guarded], Signal())
        assert (result["content"], result["is_error"], shell.started) == (ABORTED, True, [])

    simulated(program())
