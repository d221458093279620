"""Opens a conversation for `landed chat`: the model, the runtime, the tools, the briefing."""

import fcntl
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click

from landed.agent.bash import LocalShell
from landed.agent.briefing import build_system_prompt, discover_project_files
from landed.agent.files import Folder, edit_tool, read_tool, write_tool
from landed.agent.harness import Harness
from landed.agent.loop import Model
from landed.agent.owned import as_tool, bash_operation, value_errors_refuse
from landed.agent.session import AgentSession, Setting
from landed.agent.session_log import SessionLog
from landed.agent.tool import AgentTool
from landed.cli.chatting.alone import Alone
from landed.cli.chatting.asked import Asked
from landed.cli.chatting.talks import Talk, WithEffects
from landed.cli.opened import App, app_of, running


@asynccontextmanager
async def talking(asked: Asked) -> AsyncGenerator[Talk, None]:
    """Open a conversation and yield it; leaving drains its runtime.

    Raises a usage error for what cannot be opened like this, `LogError` for a line of it that
    cannot be read.
    """
    async with AsyncExitStack() as stack:
        stack.enter_context(_led(asked.place.led_by))
        model = asked.speaker.begin()
        stack.push_async_callback(model.aclose)
        if asked.place.log is not None:
            yield _alone(asked, asked.place.log, model)
            return
        rt = await stack.enter_async_context(running(asked.place.store, _app(asked)))
        tools = _own_tools(asked)
        try:
            session = await AgentSession.begin(
                rt,
                model=model,
                session=asked.place.name,
                principal=asked.principal,
                tenant=asked.tenant,
                setting=Setting(
                    system=_system(asked, tools), tools=tools, window_tokens=asked.window
                ),
            )
        except ValueError as error:
            raise click.UsageError(
                f"{error}, or leave out those of the chat with --no-files"
            ) from None
        yield WithEffects(session)


def _alone(asked: Asked, file: Path, model: Model) -> Alone:
    log, tools = SessionLog(file), _own_tools(asked)
    harness = Harness(model=model, tools=tools, system=_system(asked, tools), messages=log.replay())
    return Alone(harness, log, model, window=asked.window)


def _own_tools(asked: Asked) -> Sequence[AgentTool]:
    return [read_tool(Folder(asked.folder))] if asked.folder is not None else []


def _app(asked: Asked) -> App:
    """Return the application, with the chat's own tools that change something.

    A write replaces what was there, so that it asks unless it is allowed, as a command does.
    """
    app = app_of(asked.app)
    if asked.folder is None:
        return app
    folder = Folder(asked.folder)
    written = [
        as_tool(
            tool,
            effect="irreversible",
            risk="safe" if tool.name in asked.allow else "confirm",
            raises=value_errors_refuse,
        )
        for tool in (write_tool(folder), edit_tool(folder))
    ]
    bash = bash_operation(LocalShell(asked.folder), allow=asked.allow)
    return replace(app, tools=(*app.tools, *written, bash))


def _system(asked: Asked, tools: Sequence[AgentTool]) -> str:
    """Return the briefing; the rules of a folder are read there, and no higher up."""
    folder = asked.folder
    rules = discover_project_files(folder, top=folder) if folder is not None else []
    return build_system_prompt(
        tools=tools,
        today=datetime.now(UTC).astimezone().date(),
        cwd=folder.resolve() if folder is not None else Path.cwd(),
        project_files=rules,
    )


@contextmanager
def _led(file: Path | None) -> Generator[None]:
    """Hold a conversation, so that no second process leads it; the system lets go at the end."""
    if file is None:
        yield
        return
    try:
        with file.open("a") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise click.ClickException(
                    f"another process leads this conversation (it holds {file})"
                ) from None
            yield
    except OSError as error:
        if error.filename == str(file):
            raise click.ClickException(f"{file}: {error.strerror}") from error
        raise
