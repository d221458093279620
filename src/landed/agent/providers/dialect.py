"""What the three dialects have in common: how a request is asked for, how a reply is read.

A dialect is values and two pure functions; nothing in it waits. `landed.agent.providers.wire`
carries what it writes, and hands it the events that come back.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from landed.agent.messages import Message, ThinkingBlock
from landed.agent.providers.draft import Draft
from landed.agent.providers.sse import EVENT_MAX_BYTES
from landed.agent.tool import ToolSpec
from landed.core.canonical import Json, checked

Fields = Mapping[str, object]
"""An object of a reply, of which nothing is certain yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one request asks; `more` are fields of the dialect that the caller adds or replaces."""

    model: str
    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec]
    more: Mapping[str, Json] = field(default_factory=dict[str, Json])

    @property
    def speaks(self) -> str:
        """The model that the request names in the end."""
        return text(self.more.get("model")) or self.model


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One way to speak to a provider.

    body     writes the request
    hear     takes one event of the stream into the draft; raises `ReplyError` for nonsense
    whole    takes a reply that came in one piece, as servers do that don't stream
    headers  what every request carries; `key_header` and `key_form` carry the key
    done     the text of the one event that is no JSON and says that the stream is over, or ""
    """

    name: str
    path: str
    body: Callable[[Asked], dict[str, Json]]
    hear: Callable[[Draft, Fields], None]
    whole: Callable[[Draft, Fields], None]
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    key_header: str = "authorization"
    key_form: str = "Bearer {}"
    done: str = ""


class ProviderError(Exception):
    """The provider said, in the stream, that it failed; `again` whether later may be better."""

    def __init__(self, text: str, *, again: bool) -> None:
        super().__init__(text)
        self.again = again


def fields(value: object) -> Fields:
    """Return the object, or an empty one where the provider sent something else."""
    return cast("Fields", value) if isinstance(value, Mapping) else {}


def objects(value: object) -> list[Fields]:
    """Return the objects of a list; what is none is left out."""
    listed = cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
    return [cast("Fields", each) for each in listed if isinstance(each, Mapping)]


def text(value: object) -> str:
    """Return the text, or "" where the provider sent something else."""
    return value if isinstance(value, str) else ""


def number(value: object) -> int:
    """Return the whole number, or 0 where the provider sent something else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def described(error: object) -> str:
    """Return what an error object of a provider says, in one line: its type and its message."""
    said = fields(error)
    kind = text(said.get("type")) or text(said.get("code"))
    words = text(said.get("message")) or text(error) or "it gives no reason"
    return f"{kind}: {words}" if kind else words


def given_back(block: ThinkingBlock, provider: str, asked: Asked) -> dict[str, Json]:
    """Return what goes back of a thought: nothing, unless this model made it over this dialect.

    Signatures and encrypted thoughts of another are refused, by the same provider too.
    """
    opaque = fields(block["opaque"])
    if (opaque.get("provider"), opaque.get("model")) != (provider, asked.speaks):
        return {}
    return kept(fields(opaque.get("payload")))


def kept(thought: Fields, *, without: str = "") -> dict[str, Json]:
    """Return what is kept of a thought, as it came, and may be larger than what is sent else."""
    named = ((name, each) for name, each in thought.items() if name != without)
    return {name: checked(each, max_bytes=EVENT_MAX_BYTES) for name, each in named}


AGAIN = frozenset(
    {"overloaded_error", "rate_limit_error", "api_error", "server_error", "rate_limit_exceeded"}
)
"""Types and codes of errors within a stream after which the same request may be answered."""


def failed(error: object) -> ProviderError:
    """Return the error that a provider reports within a stream."""
    said = fields(error)
    again = bool({text(said.get("type")), text(said.get("code"))} & AGAIN)
    return ProviderError(described(error), again=again)
