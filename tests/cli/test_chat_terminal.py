"""`landed chat` on a real terminal (tmux): steered, stopped, asked, and put back."""

import asyncio
import os
import re
import shlex
import shutil
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx2
import pytest

from landed.agent.messages import text_of
from landed.testing.provider import Called, Reply, ScriptedProvider
from landed.testing.shapes import shape
from tests.cli.chatting import BOOKS, FAXES, HANGS, MAX_S, TEXTS, Chat, ended, problems

TMUX = "/usr/bin/tmux"
SHOWS_WITHIN_S = 25.0
AT_REST = "\n>\n"

pytestmark = pytest.mark.services


class Screen:
    """A terminal of tmux with a shell in it, on a server of its own."""

    def __init__(self, chat: Chat) -> None:
        self.chat = chat
        self._wrote = asyncio.Event()
        self._socket = str(chat.directory / "tmux")

    async def tmux(self, *words: str) -> str:
        process = await asyncio.create_subprocess_exec(
            TMUX,
            *("-S", self._socket, "-f", "/dev/null", *words),
            env={
                **self.chat.environment,
                "TERM": "xterm-256color",
                "PS1": "$ ",
                "LC_ALL": "C.UTF-8",
            },
            stdout=asyncio.subprocess.PIPE,
        )
        said, _ = await process.communicate()
        return said.decode()

    async def types(self, text: str, *keys: str) -> None:
        """Type a text, and then press keys by their names."""
        if text:
            await self.tmux("send-keys", "-t", "chat", "-l", text)
        if keys:
            await self.tmux("send-keys", "-t", "chat", *keys)

    async def shows(self, text: str) -> str:
        """Wait until the terminal shows a text, and return all that it shows."""
        seen = ""
        with suppress(TimeoutError):
            async with asyncio.timeout(SHOWS_WITHIN_S):
                while text not in seen:
                    self._wrote.clear()
                    seen = await self.tmux("capture-pane", "-p", "-t", "chat", "-S", "-200")
                    if text not in seen:
                        await self._wrote.wait()
        assert text in seen, seen
        return seen

    async def watch(self) -> None:
        """Hear of each thing that is written on the terminal."""
        pipe = self.chat.directory / "pane"
        os.mkfifo(pipe)
        fd = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        asyncio.get_running_loop().add_reader(fd, self._read, fd)
        await self.tmux("pipe-pane", "-t", "chat", f"cat > {shlex.quote(str(pipe))}")

    def _read(self, fd: int) -> None:
        if not os.read(fd, 65_536):
            asyncio.get_running_loop().remove_reader(fd)
            os.close(fd)
        self._wrote.set()

    async def leaves(self) -> None:
        """Leave the chat by Ctrl-D, and see that the shell's terminal is as it was."""
        await self.types("", "C-d")
        await self.shows("leaving;")
        await self.shows("ended 0")
        await self.types("stty -a", "Enter")
        assert " icanon" in await self.shows("icanon")
        assert " echo " in await self.shows("iexten")


@asynccontextmanager
async def at_terminal(
    directory: Path, *replies: Reply, more: tuple[str, ...] = ()
) -> AsyncGenerator[Screen]:
    """Start the chat in a terminal, and wait until one can type."""
    async with ScriptedProvider(*replies) as provider:
        chat = Chat(directory=directory, provider=provider)
        screen = Screen(chat)
        command = shlex.join(chat.command(*more))
        (directory / "run").write_text(f"{command}; echo ended $?\n")
        await screen.tmux(
            "new-session", "-d", "-s", "chat", "-x", "100", "-y", "50", "bash --norc --noprofile"
        )
        await screen.watch()
        try:
            await screen.types(f". {directory}/run", "Enter")
            await screen.shows("Ctrl-D leaves")
            yield screen
        finally:
            await screen.tmux("kill-server")


@pytest.mark.req("S2-104")
def test_a_question_is_answered_inline_by_a_strict_yes(tmp_path: Path) -> None:
    async def play() -> None:
        async with at_terminal(tmp_path, TEXTS, Reply(text="I \x1b[2Jasked you.")) as screen:
            await screen.types("Text Sam.", "Enter")
            seen = await screen.shows("| Shall I do it?")
            assert "I asked you." in seen
            assert seen.count("Text Sam.") == 1
            assert not (tmp_path / "ledger").exists()
            await screen.types("yes", "Enter")
            await screen.shows("Done: texted Sam.")
            assert "to Sam" in (tmp_path / "ledger").read_text()
            await screen.leaves()
            assert len(screen.chat.provider.received) == 2

    asyncio.run(play())


@pytest.mark.req("S2-98", "S2-108")
@pytest.mark.parametrize("key", ["Escape", "C-c"])
def test_a_key_stops_the_run_and_one_can_type_again(tmp_path: Path, key: str) -> None:
    async def play() -> None:
        async with at_terminal(tmp_path, HANGS, Reply(text="Still here.")) as screen:
            await screen.types("Think.", "Enter")
            await asyncio.wait_for(screen.chat.provider.came(1), MAX_S)
            await screen.types("", key)
            await screen.shows("! Operation aborted by ana")
            await screen.types("Are you there?", "Enter")
            await screen.shows("Still here.")
            await screen.leaves()
            messages = await screen.chat.transcript()
            assert shape(messages) == "U A(aborted) U A"
            assert problems(messages) == []

    asyncio.run(play())


def test_a_second_press_does_not_wait_for_the_grace(tmp_path: Path) -> None:
    async def play() -> None:
        os.mkfifo(tmp_path / "ledger.gate")
        slow = ("--grace", "3600")
        async with at_terminal(tmp_path, FAXES, Reply(text="So it is."), more=slow) as screen:
            await screen.types("Fax Sam.", "Enter")
            pipe = await asyncio.to_thread(os.open, tmp_path / "ledger.gate", os.O_WRONLY)
            await screen.types("", "C-c")
            await screen.shows("stopping… (again: now)")
            await screen.types("", "C-c")
            await screen.shows("stopped without waiting")
            await screen.shows(AT_REST)  # Until then a press is one more for the run.
            await screen.types("", "C-c")
            await screen.shows("nothing runs any more (again: leaves)")
            os.close(pipe)
            await screen.types("And?", "Enter")
            await screen.shows("So it is.")
            await screen.leaves()
            messages = await screen.chat.transcript()
            # The first press may have been answered just before the second one.
            assert re.fullmatch(r"U A\[c1\] R\(c1\)( A\(aborted\))?( U)+ A", shape(messages))
            assert problems(messages) == []

    asyncio.run(play())


def test_words_during_a_run_steer_it_and_a_yes_to_nothing_is_not_taken(tmp_path: Path) -> None:
    async def play() -> None:
        os.mkfifo(tmp_path / "ledger.gate")
        async with at_terminal(tmp_path, BOOKS, Reply(text="For four, then.")) as screen:
            await screen.types("Book Friday.", "Enter")
            pipe = await asyncio.to_thread(os.open, tmp_path / "ledger.gate", os.O_WRONLY)
            await screen.shows("book {")
            await screen.types("yes", "Enter")
            await screen.shows("this was not taken for an answer: yes")
            await screen.types("for four")
            await screen.shows("> for four")
            await screen.types("", "Enter")
            await screen.shows("heard; it goes in as soon as the calls are answered")
            os.close(pipe)
            await screen.shows("For four, then.")
            await screen.shows("| Booked R1 (Fri).")
            await screen.leaves()
            messages = await screen.chat.transcript()
            assert [text_of(m) for m in messages if m["role"] == "user"] == [
                "Book Friday.",
                "for four",
            ]
            assert shape(messages) == "U A[c1] R(c1) U A"

    asyncio.run(play())


def test_a_write_of_the_chats_own_asks_and_an_allowed_command_does_not(tmp_path: Path) -> None:
    writes = Called(id="c1", name="write", arguments={"path": "note.txt", "content": "hello"})
    runs = Called(id="c2", name="bash", arguments={"command": "echo said so"})
    replies = (Reply(calls=[runs]), Reply(calls=[writes]), Reply(text="I asked."))

    async def play() -> None:
        async with at_terminal(tmp_path, *replies, more=("--allow", "echo")) as screen:
            await screen.types("Write it down.", "Enter")
            await screen.shows("| Shall I do it?")
            assert not (tmp_path / "note.txt").exists()
            await screen.types("yes", "Enter")
            await screen.shows("Done: write(path=note.txt")
            assert (tmp_path / "note.txt").read_text() == "hello"
            await screen.leaves()
            results = [m for m in await screen.chat.transcript() if m["role"] == "toolResult"]
            assert "said so" in text_of(results[0])

    asyncio.run(play())


def test_sigterm_during_a_run_stops_it_and_puts_the_terminal_back(tmp_path: Path) -> None:
    async def play() -> None:
        async with at_terminal(tmp_path, HANGS) as screen:
            await screen.types("Think.", "Enter")
            await asyncio.wait_for(screen.chat.provider.came(1), MAX_S)
            named = await screen.tmux("display-message", "-p", "-t", "chat", "#{pane_pid}")
            children = Path(f"/proc/{named.strip()}/task")
            (shell,) = children.iterdir()
            os.kill(int((shell / "children").read_text().split()[0]), signal.SIGTERM)
            await screen.shows("ended 0")
            await screen.types("stty -a", "Enter")
            assert " icanon" in await screen.shows("icanon")
            assert shape(await screen.chat.transcript()) == "U A(aborted)"

    asyncio.run(play())


def test_the_console_beside_it_stops_the_run(tmp_path: Path) -> None:
    async def play() -> None:
        async with at_terminal(tmp_path, HANGS, more=("--console", "0")) as screen:
            seen = " ".join((await screen.shows("(lets one browser in)")).split())
            await screen.types("Think.", "Enter")
            await asyncio.wait_for(screen.chat.provider.came(1), MAX_S)
            link = seen.split("console: ")[1].split(" (lets")[0].replace(" ", "")
            await asyncio.to_thread(stops_in_console, link)
            await screen.shows("! Operation aborted by ana")
            await screen.leaves()

    asyncio.run(play())


def stops_in_console(link: str) -> None:
    """Enter the console by its link, and press Stop on the page of the conversation."""
    base = link.split("/console")[0]
    with httpx2.Client(follow_redirects=True, headers={"Origin": base}) as browser:
        browser.get(link)
        page = browser.get(f"{base}/console/sessions/monday").text
        assert "An agent is at work here." in page
        action, fields = form_of(page, "/agents/stop/monday")
        assert browser.post(f"{base}{action}", data=fields).status_code == 200


def form_of(page: str, ending: str) -> tuple[str, dict[str, str]]:
    """Return where a form of a page goes, and what is hidden in it."""
    forms = re.findall(r'<form[^>]*action="([^"]*)"[^>]*>(.*?)</form>', page, re.DOTALL)
    ((action, inside),) = (form for form in forms if form[0].endswith(ending))
    hidden = re.findall(r'name="([^"]*)"[^>]*value="([^"]*)"', inside)
    return action, dict(hidden)


def test_what_is_piped_in_is_said_line_by_line(tmp_path: Path) -> None:
    async def play() -> None:
        async with ScriptedProvider(TEXTS, Reply(text="I asked you.")) as provider:
            chat = Chat(directory=tmp_path, provider=provider)
            all_said = await ended(await chat.start(), "Text Sam.\nyes\n")
            assert all_said.status == 0
            assert "Done: texted Sam." in all_said.said
            assert "\x1b" not in all_said.said

    asyncio.run(play())


def test_tmux_is_there() -> None:
    assert shutil.which(TMUX), "as root: apt-get install tmux; `make test-services` does"
