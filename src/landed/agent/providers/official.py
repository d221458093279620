"""Models over the official SDKs, for who has a client of theirs: Bedrock, Vertex, Azure, a proxy.

    model = anthropic_sdk("claude-opus-5-5", client=AsyncAnthropicBedrock())

The SDK signs the request and carries it; how long and how often is ours (its own retries are off),
and its events are heard by the same dialects as those of `landed.agent.providers.model`, so that
the same messages come of them. Needs `landed[anthropic]` or `landed[openai]`.

A client belongs to one event loop. One that is given is closed by its owner; without one the SDK
makes its own from the environment, as it does everywhere.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack, cast

from landed.agent.providers.anthropic import ANTHROPIC
from landed.agent.providers.dialect import Dialect, Fields, ProviderError, failed, fields
from landed.agent.providers.draft import Draft, ReplyError
from landed.agent.providers.model import ProviderModel
from landed.agent.providers.openai_chat import OPENAI_CHAT
from landed.agent.providers.openai_responses import OPENAI_RESPONSES
from landed.agent.providers.over_http import REPLY_MAX_BYTES
from landed.agent.providers.patience import Backoff, Patience
from landed.agent.providers.wire import AgainError, RefusedError, drained, refusal
from landed.core.canonical import Json

if TYPE_CHECKING:
    import httpx2


class Client(Protocol):
    """What an SDK's asynchronous client has, whichever it is."""

    base_url: object

    def with_options(self, *, max_retries: int, timeout: object) -> Any:
        """Return the client with other settings, over the same connections."""
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...


class Events(Protocol):
    """The events of one reply, as an SDK streams them."""

    response: "httpx2.Response"

    def __aiter__(self) -> AsyncIterator[object]:
        """Return the events."""
        ...

    async def close(self) -> None:
        """Close the reply, and with it the request."""
        ...


class SdkOptions(TypedDict, total=False):
    """What a model over an SDK takes besides its name and its client; see `ProviderModel`."""

    more: Mapping[str, Json] | None
    headers: Mapping[str, str] | None
    patience: Patience | None
    backoff: Backoff | None
    now: Callable[[], float]


def anthropic_sdk(
    model: str, *, client: Client | None = None, **options: Unpack[SdkOptions]
) -> ProviderModel:
    """Return a model that speaks Anthropic's Messages over an `AsyncAnthropic`, or one like it."""
    return _model(ANTHROPIC, "anthropic", "AsyncAnthropic", model, client, options)


def openai_chat_sdk(
    model: str, *, client: Client | None = None, **options: Unpack[SdkOptions]
) -> ProviderModel:
    """Return a model that speaks Chat Completions over an `AsyncOpenAI`, or one like it."""
    return _model(OPENAI_CHAT, "openai", "AsyncOpenAI", model, client, options)


def openai_responses_sdk(
    model: str, *, client: Client | None = None, **options: Unpack[SdkOptions]
) -> ProviderModel:
    """Return a model that speaks OpenAI's Responses over an `AsyncOpenAI`, or one like it."""
    return _model(OPENAI_RESPONSES, "openai", "AsyncOpenAI", model, client, options)


def _model(
    dialect: Dialect,
    package: str,
    maker: str,
    model: str,
    client: Client | None,
    options: SdkOptions,
) -> ProviderModel:
    sdk = _sdk(package)
    is_ours = client is None
    used = cast("Client", getattr(sdk, maker)()) if client is None else client
    patience = options.get("patience") or Patience()
    exchange = SdkExchange(dialect, sdk, used, is_ours=is_ours, connect_s=patience.connect_s)
    return ProviderModel(dialect, model=model, url=str(used.base_url), exchange=exchange, **options)


def _sdk(package: str) -> Any:
    # By its name: the types of the SDKs are read by no checker, whether they are installed or not.
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ModuleNotFoundError(
            f"a model over this SDK needs {package}: install landed[{package}]", name=package
        ) from error


_CALLS: Mapping[str, Callable[[Any], Callable[..., Awaitable[Events]]]] = {
    ANTHROPIC.name: lambda client: client.messages.create,
    OPENAI_CHAT.name: lambda client: client.chat.completions.create,
    OPENAI_RESPONSES.name: lambda client: client.responses.create,
}
# What the SDKs insist on; the body that we write takes the place of it all.
_NEEDED: Mapping[str, Mapping[str, object]] = {
    ANTHROPIC.name: {"messages": (), "max_tokens": 1},
    OPENAI_CHAT.name: {"messages": ()},
    OPENAI_RESPONSES.name: {"input": ()},
}


class SdkExchange:
    """Sends a request through an SDK, and hears its events."""

    def __init__(
        self, dialect: Dialect, sdk: Any, client: Client, *, is_ours: bool, connect_s: float
    ) -> None:
        self._dialect = dialect
        self._sdk = sdk
        self._client = client
        self._is_ours = is_ours
        self._connect_s = connect_s

    async def __call__(
        self, body: bytes, headers: Mapping[str, str], draft: Draft, alive: Callable[[], None]
    ) -> None:
        """Send the request once, and hear the events until the reply is over."""
        import httpx2

        try:
            events = await self._sent(json.loads(body), headers)
        except (self._sdk.APIError, httpx2.TransportError) as error:
            raise self._turned_away(error) from error
        try:
            await self._heard(events, draft, alive)
        except (self._sdk.APIConnectionError, httpx2.TransportError) as error:
            cause = error.__cause__ or error
            raise ReplyError(f"the reply was cut off ({type(cause).__name__})") from error
        except self._sdk.APIError as error:
            raise _broken_off(error) from error
        finally:
            await events.close()

    def secrets(self) -> Sequence[str]:
        """Return the keys that the client holds, as far as it shows them."""
        held = (getattr(self._client, name, None) for name in ("api_key", "auth_token"))
        return [secret for secret in held if isinstance(secret, str)]

    async def aclose(self) -> None:
        """Close the client, if nobody else has it."""
        if self._is_ours:
            await self._client.close()

    async def _sent(self, asked: dict[str, Any], headers: Mapping[str, str]) -> Events:
        import httpx2

        bounds = httpx2.Timeout(None, connect=self._connect_s)
        create = _CALLS[self._dialect.name](
            self._client.with_options(max_retries=0, timeout=bounds)
        )
        return await create(
            **_NEEDED[self._dialect.name],
            model=asked["model"],
            stream=True,
            extra_body=asked,
            extra_headers=dict(headers),
        )

    async def _heard(self, events: Events, draft: Draft, alive: Callable[[], None]) -> None:
        # The SDKs pass over pings and comments; that something came at all is seen below them.
        events.response.stream = _watched(events.response.stream, alive)
        stream = aiter(events)
        async for event in stream:
            self._dialect.hear(draft, _as_sent(event))
            if draft.over:
                await drained(stream)
                return
        # The SDK swallows the `[DONE]`: a stream that ends as it should, with a reason, had one.
        draft.over = bool(self._dialect.done and draft.reason)

    def _turned_away(self, error: Exception) -> AgainError | RefusedError:
        if not isinstance(error, self._sdk.APIStatusError):
            cause = error.__cause__ or error
            return AgainError(f"nothing answered ({type(cause).__name__})")
        response = cast("httpx2.Response", cast("Any", error).response)
        said = _error_of(error) or {"message": response.text[:200]}
        return refusal(response.status_code, said, response.headers.get("retry-after", ""))


def _as_sent(event: object) -> Fields:
    to_dict: Callable[[], object] | None = getattr(event, "to_dict", None)
    return fields(to_dict()) if to_dict is not None else {}


def _broken_off(error: Exception) -> ProviderError:
    """Return what the provider said, in the stream, of its failure."""
    return failed(_error_of(error) or {"message": str(error)})


def _error_of(error: Exception) -> Fields:
    """Return the provider's own object; the one SDK unwraps it, the other does not."""
    said = fields(getattr(error, "body", None))
    return fields(said.get("error")) or said


def _watched(stream: Any, alive: Callable[[], None]) -> "httpx2.AsyncByteStream":
    """Return the bytes of a reply, `alive` at each, and no more of them than a reply may have."""
    import httpx2

    class Watched(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in stream:
                alive()
                size += len(chunk)
                if size > REPLY_MAX_BYTES:
                    raise ReplyError(f"the reply has more than {REPLY_MAX_BYTES} bytes")
                yield chunk

        async def aclose(self) -> None:
            await stream.aclose()

    return Watched()
