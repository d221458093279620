"""What the command line of `landed chat` says, as values, and what of it makes no sense."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from landed.cli.opened import SQLITE_URL

if TYPE_CHECKING:
    from landed.agent.providers.model import ProviderModel

PROVIDERS = {
    "openai": "OPENAI_API_KEY",
    "responses": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
}
"""The dialects that are spoken, each with the variable that holds its key."""

ALONE = ".jsonl"
"""How the file of a conversation ends that has no runtime, and so no effects."""

NEEDS_HTTP = "a model is reached over HTTP: pip install 'landed[http]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """Which model is spoken to: its provider's dialect, its name, and where it is, "" for usual."""

    provider: str
    model: str
    base_url: str = ""

    def key(self) -> str | None:
        """Return the variable with the key; None for a place of one's own that has none.

        Raises a usage error where the provider itself is asked, and there is no key.
        """
        variable = PROVIDERS[self.provider]
        if os.environ.get(variable, "").strip():
            return variable
        if self.base_url:
            return None
        raise click.UsageError(f"--provider {self.provider}: the environment has no {variable}")

    def begin(self) -> "ProviderModel":
        """Return the model, for the loop that runs; its connections are to be closed."""
        key = self.key()
        try:
            import httpx2 as _httpx2  # noqa: F401  # pyright: ignore[reportUnusedImport]
        except ModuleNotFoundError:
            raise click.UsageError(NEEDS_HTTP) from None
        from landed.agent.providers.model import anthropic, openai_chat, openai_responses

        makers = {"openai": openai_chat, "responses": openai_responses, "anthropic": anthropic}
        make = makers[self.provider]
        if self.base_url:
            return make(self.model, url=self.base_url, key=key)
        return make(self.model, key=key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a conversation is kept, and under which name: in a store, or in a log alone."""

    store: str
    log: Path | None
    name: str

    @property
    def led_by(self) -> Path | None:
        """The file that is held locked while somebody leads it; None on a server's store."""
        if self.log is not None:
            return self.log.with_name(f"{self.log.name}-chat")
        path = self.store.removeprefix(SQLITE_URL)
        if path == self.store or path.startswith(":"):
            return None
        return Path(f"{path}-chat.{quote(self.name, safe='')}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How a conversation is opened and led.

    place      where it is kept: `store` is "" where it has none, `log` None where it has
    folder     where the model may use files and commands, None where it may not
    allow      programs that it runs there without asking; `write` and `edit` too
    grace_s    how long a run may take to answer a stop, in seconds
    console    the port that the console is served on beside the chat, 0 for any; None for none
    window     tokens that the model can be shown; room is made before there are more
    """

    speaker: Speaker
    place: Place
    tenant: str
    principal: str
    app: str
    folder: Path | None
    allow: tuple[str, ...]
    grace_s: float
    console: int | None
    window: int


def place_of(file: Path | None, *, name: str, app: str, store: str, is_store_said: bool) -> Place:
    """Return where a conversation is kept: in the FILE of --session, else in the store.

    Raises a usage error for two places at once, and for effects where there is no store.
    """
    if file is None:
        return Place(store=store, log=None, name=name or "main")
    if is_store_said:
        raise click.UsageError("--session FILE is a store of its own: leave out --store")
    if file.suffix != ALONE:
        return Place(store=f"{SQLITE_URL}{file}", log=None, name=name or file.stem)
    if app or name:
        raise click.UsageError(
            f"a conversation in a {ALONE} file has no effects and no other name: leave out"
            f" {'--app' if app else '--name'}, or give a FILE such as monday.db"
        )
    return Place(store="", log=file, name=file.stem)
