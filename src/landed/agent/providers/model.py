"""A model behind a network: it is asked, and always answers with a message.

    model = anthropic("claude-opus-5-5", key="ANTHROPIC_API_KEY")
    message = await model(system, messages, tools, signal)

Needs the extra `landed[http]`. What goes wrong is a message whose `stop_reason` is `error`, a Stop
one with `aborted`; both keep the text that had come, and none of the calls. Only the cancellation
of whoever asks leaves as an exception, with the connection closed.

Closing a connection ends the wait. Whether the provider stops working, and what it charges, is the
provider's affair: a request that was cut short is abandoned, not undone.
"""

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack
from urllib.parse import urlsplit

from landed.agent.messages import AssistantMessage, Message, calls_of
from landed.agent.providers.anthropic import ANTHROPIC
from landed.agent.providers.dialect import Asked, Dialect
from landed.agent.providers.draft import Draft, Listener, Maker
from landed.agent.providers.openai_chat import OPENAI_CHAT
from landed.agent.providers.openai_responses import OPENAI_RESPONSES
from landed.agent.providers.over_http import HttpExchange
from landed.agent.providers.patience import Backoff, Patience
from landed.agent.providers.secret import Key, check_key, masked, secret_of
from landed.agent.providers.wire import Exchange, SilenceError, Wire
from landed.agent.signal import Signal, StoppedError, stopped_text, unless_cancelled
from landed.agent.tool import ToolSpec
from landed.agent.validate import transcript_problems
from landed.core.canonical import Json
from landed.core.errors import ContractError

if TYPE_CHECKING:
    import httpx2

Status = Literal["unsent", "answered", "failed", "abandoned"]
"""How a request ended: never left, with a reply, with an error, or given up while it ran."""

ERROR_MAX_CHARS = 500
"""Characters of an error that are written into the conversation."""


class UnsendableError(Exception):
    """The conversation is none that a provider takes: see `landed.agent.validate`."""


class Options(TypedDict, total=False):
    """What `ProviderModel` takes besides a dialect, a model, a URL and a key."""

    more: Mapping[str, Json] | None
    headers: Mapping[str, str] | None
    patience: Patience | None
    backoff: Backoff | None
    transport: "httpx2.AsyncBaseTransport | None"
    now: Callable[[], float]


class ProviderModel:
    """One model of one provider, as the loop calls it.

    model     the provider's name for it
    url       where the API is, up to what the dialect adds (`https://api.openai.com/v1`)
    key       the name of an environment variable, a function, or None; never the key itself
    more      fields of the request that are added or replaced (`max_tokens`, `tool_choice`, …)
    headers   sent with every request; their values are masked in errors, as the key is
    patience, backoff
              how long to wait for what, and how often to try
    transport an httpx2 transport of one's own; it must not retry, and its owner closes it
    now       the clock that the dates of a `Retry-After` are read by, in UTC seconds
    exchange  who sends instead of httpx2 alone: see `landed.agent.providers.official`

    `status` says how the last request ended: a request that was given up here (a Stop, a
    cancellation, a time-out) is `abandoned`, for nobody knows whether it goes on over there.

    Raises `ContractError` for a key that is the secret itself, and for a URL that holds one. Close
    it with `aclose`, on each loop it was used on.
    """

    def __init__(
        self,
        dialect: Dialect,
        *,
        model: str,
        url: str,
        key: Key = None,
        more: Mapping[str, Json] | None = None,
        headers: Mapping[str, str] | None = None,
        patience: Patience | None = None,
        backoff: Backoff | None = None,
        transport: "httpx2.AsyncBaseTransport | None" = None,
        now: Callable[[], float] = time.time,
        exchange: Exchange | None = None,
    ) -> None:
        self.model = model
        self.status: Status = "unsent"
        self._dialect = dialect
        self._key = check_key(key)
        self._more = dict(more or {})
        self._headers = dict(headers or {})
        self._patience = patience or Patience()
        self._host = _host_of(url)
        self._wire = Wire(
            exchange
            or HttpExchange(
                dialect,
                url.rstrip("/") + dialect.path,
                connect_s=self._patience.connect_s,
                transport=transport,
            ),
            patience=self._patience,
            backoff=backoff or Backoff(),
            now=now,
        )

    def __repr__(self) -> str:
        return f"<{self._dialect.name} {self.model!r} at {self._host}>"

    async def __call__(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        signal: Signal | None = None,
    ) -> AssistantMessage:
        """Return the model's reply, a failure or a stop, as a message; raises no `Exception`."""
        message, _ = await self._answered(self._asked(system, messages, tools), signal, _unheard)
        return message

    async def stream(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        signal: Signal | None = None,
    ) -> AsyncGenerator[Mapping[str, object], None]:
        """Yield what comes while it comes: `text_delta`, `call_delta`, and last `message`.

        A `call_delta` is something to show; only the calls of the message are complete. The message
        comes with the tokens counted (`input_tokens`, `output_tokens`; 0 where nobody said).
        Leaving early closes the connection.
        """
        said: asyncio.Queue[Mapping[str, object] | None] = asyncio.Queue()
        asked = self._asked(system, messages, tools)
        working = asyncio.ensure_future(self._answered(asked, signal, said.put_nowait))
        working.add_done_callback(lambda _: said.put_nowait(None))
        try:
            while (delta := await said.get()) is not None:
                yield delta
            message, draft = working.result()
            usage = draft.usage
            counted = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
            yield {"type": "message", "message": message, **counted}
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    async def aclose(self) -> None:
        """Close the connections of this loop; the next request makes new ones."""
        await self._wire.aclose()

    def _asked(self, system: str, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Asked:
        return Asked(
            model=self.model, system=system, messages=messages, tools=tools, more=self._more
        )

    async def _answered(
        self, asked: Asked, signal: Signal | None, listener: Listener
    ) -> tuple[AssistantMessage, Draft]:
        drafts, secrets = [Draft()], list(self._headers.values())
        self.status = "unsent"
        try:
            async with asyncio.timeout(self._patience.whole_s):
                await unless_cancelled(self._carried(asked, drafts, secrets, listener), signal)
            message = drafts[-1].finished(_ids_of(asked.messages))
            self.status = "answered"
            return message, drafts[-1]
        except asyncio.CancelledError:
            self._given_up(drafts)
            raise
        except StoppedError:
            self._given_up(drafts)
            text = stopped_text(signal) if signal is not None else ""
            return drafts[-1].broken(text, "aborted"), drafts[-1]
        except TimeoutError:
            self._given_up(drafts)
            text = f"no whole reply within {self._patience.whole_s:g} s"
        except SilenceError as error:
            self._given_up(drafts)
            text = str(error)
        except Exception as error:
            self.status = "failed" if len(drafts) > 1 else "unsent"
            text = str(error) or type(error).__name__
        return drafts[-1].broken(self._shown(text, secrets), "error"), drafts[-1]

    def _given_up(self, drafts: Sequence[Draft]) -> None:
        self.status = "abandoned" if len(drafts) > 1 else "unsent"

    async def _carried(
        self, asked: Asked, drafts: list[Draft], secrets: list[str], listener: Listener
    ) -> None:
        """Send what is asked; `secrets` gets what must not be shown, `drafts` each try."""
        if problems := transcript_problems(asked.messages, "request"):
            raise UnsendableError(f"this conversation can't be sent: {problems[0]}")
        # A tool's output may hold half a character (a name that is no UTF-8): a ? is sent for it.
        text = json.dumps(self._dialect.body(asked), ensure_ascii=False, allow_nan=False)
        body = text.encode(errors="replace")
        headers = dict(self._dialect.headers) | self._headers
        secrets += self._wire.secrets()
        secret = await secret_of(self._key)
        if secret:
            secrets.append(secret)
            headers[self._dialect.key_header] = self._dialect.key_form.format(secret)

        maker = Maker(provider=self._dialect.name, model=asked.speaks)

        def begin() -> Draft:
            drafts.append(Draft(listener, maker=maker))
            return drafts[-1]

        await self._wire.carry(body, headers, begin)

    def _shown(self, text: str, secrets: Sequence[str]) -> str:
        line = re.sub(r"\s+", " ", masked(text, secrets))
        short = line if len(line) <= ERROR_MAX_CHARS else line[: ERROR_MAX_CHARS - 1] + "…"
        return f"{self._dialect.name}: {short}"


def _ids_of(messages: Sequence[Message]) -> frozenset[str]:
    return frozenset(call["id"] for message in messages for call in calls_of(message))


def _host_of(url: str) -> str:
    """Return the host. Raises `ContractError` for a URL that a path can't be put behind."""
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ContractError("url= has a scheme, a host and a path; what is secret goes into key=")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ContractError("url= is an http or https address")
    return parts.hostname


def _unheard(delta: Mapping[str, object]) -> None:
    """Nobody listens."""


def anthropic(
    model: str,
    *,
    url: str = "https://api.anthropic.com",
    key: Key = "ANTHROPIC_API_KEY",
    **options: Unpack[Options],
) -> ProviderModel:
    """Return a model that speaks Anthropic's Messages; the options are `ProviderModel`'s."""
    return ProviderModel(ANTHROPIC, model=model, url=url, key=key, **options)


def openai_chat(
    model: str,
    *,
    url: str = "https://api.openai.com/v1",
    key: Key = "OPENAI_API_KEY",
    **options: Unpack[Options],
) -> ProviderModel:
    """Return a model that speaks Chat Completions; most servers of open models do."""
    return ProviderModel(OPENAI_CHAT, model=model, url=url, key=key, **options)


def openai_responses(
    model: str,
    *,
    url: str = "https://api.openai.com/v1",
    key: Key = "OPENAI_API_KEY",
    **options: Unpack[Options],
) -> ProviderModel:
    """Return a model that speaks OpenAI's Responses."""
    return ProviderModel(OPENAI_RESPONSES, model=model, url=url, key=key, **options)
