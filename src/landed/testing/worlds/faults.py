"""What can go wrong between an agent and a service: faults as plain values, and who applies them.

A fault names a request (method, path, the how-manieth) and what happens to it. `Faults` is plain
ASGI middleware: outermost around a world, it works the same in process (`worlds.transport`) and in
a real server (`worlds.serve`), so that one scenario runs both ways. Several faults on one request
nest, the first listed nearest to the caller.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Clock(Protocol):
    """Where a world takes the time from."""

    def now(self) -> float:
        """UTC, in seconds since the epoch."""
        ...


Sleep = Callable[[float], Awaitable[None]]

Kind = Literal[
    "lose_reply",
    "delay_request",
    "delay_reply",
    "drop",
    "duplicate",
    "error_after",
    "accept_only",
    "refuse",
]

CUT = "cut_connection"
"""The entry of `scope["state"]` under which a server offers a callable that drops the caller's
connection without an answer. ASGI has no word for it; both of our servers provide it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that goes wrong with one request.

    - `lose_reply`: the service does all of it; the caller never hears.
    - `delay_request`: the request reaches the service after `seconds`, also if its caller has gone.
    - `delay_reply`: the service acts at once; the caller hears after `seconds`.
    - `drop`: the request never reaches the service; the caller never hears.
    - `duplicate`: the service gets the same bytes a second time, `seconds` after it answered the
      first copy; the caller hears the first answer only.
    - `error_after`: the service does all of it; the caller hears a 500.
    - `accept_only`: the caller hears a 200 with `body`; nothing reaches the service.
    - `refuse`: the caller hears a 403; nothing reaches the service.

    `path` is compared segment by segment, `*` standing for any one segment. `nth` counts, from 1,
    the requests that match this method and path since the world started; None means each of them.
    A caller that never hears finds its connection dropped or, with `hang`, waits until it gives
    up by itself. Raises ValueError for an unknown kind, an `nth` below 1 or negative `seconds`.
    """

    path: str
    method: str = "POST"
    nth: int | None = 1
    kind: Kind
    seconds: float = 0.0
    hang: bool = False
    body: str = "{}"

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError(f"unknown fault {self.kind!r}; choose one of {', '.join(_KINDS)}")
        if self.nth is not None and self.nth < 1:
            raise ValueError(f"nth counts from 1, not {self.nth}")
        if not self.seconds >= 0:
            raise ValueError(f"seconds must be 0 or more, not {self.seconds}")


class Faults:
    """Applies `rules` to the HTTP requests that pass through it to `app`.

    `sleep` is awaited for every delay and is the only clock here. Requests that no rule names
    pass untouched. The counts live in memory: a restarted world counts from 1 again.
    """

    def __init__(self, app: ASGIApp, rules: Sequence[Fault], sleep: Sleep) -> None:
        self._app = app
        self._rules = tuple(rules)
        self._sleep = sleep
        self._seen: Counter[tuple[str, str]] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, with what the rules do to it; ends when all copies of it have."""
        rules = self._rules_for(scope) if scope["type"] == "http" else ()
        if not rules:
            return await self._app(scope, receive, send)
        body = await _whole_body(receive)
        if body is None:
            return None
        caller = _Caller(scope=scope, receive=receive, send=send, sleep=self._sleep)

        async def run(send: Send) -> None:
            await self._app(dict(scope), _once(body, receive), send)

        inner: _Inner = run
        for rule in reversed(rules):
            inner = _wrap(rule, inner, caller)
        return await inner(send)

    def _rules_for(self, scope: Scope) -> tuple[Fault, ...]:
        """The rules for this request; counts it, once for each method and path that names it."""
        named = [r for r in self._rules if _names(r, scope["method"], scope["path"])]
        for pair in {(r.method, r.path) for r in named}:
            self._seen[pair] += 1
        return tuple(r for r in named if r.nth in (None, self._seen[r.method, r.path]))


_Inner = Callable[[Send], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Caller:
    scope: Scope
    receive: Receive
    send: Send
    sleep: Sleep

    async def never_hears(self, *, hang: bool) -> None:
        """Return once the caller has gone, having dropped its connection unless it may hang.

        A hanging caller bounds this wait itself, by its deadline. A server that can't drop a
        connection lets it hang: to the caller that is the same lost answer, only later.
        """
        cut = self.scope.get("state", {}).get(CUT)
        if cut is not None and not hang:
            cut()
        while (await self.receive())["type"] != "http.disconnect":
            pass


def _wrap(rule: Fault, inner: _Inner, caller: _Caller) -> _Inner:
    async def faulty(send: Send) -> None:
        await _KINDS[rule.kind](rule, inner, replace(caller, send=send))

    return faulty


def _names(rule: Fault, method: str, path: str) -> bool:
    wanted, got = rule.path.split("/"), path.split("/")
    return (
        rule.method == method
        and len(wanted) == len(got)
        and all(w in ("*", g) for w, g in zip(wanted, got, strict=True))
    )


async def _whole_body(receive: Receive) -> bytes | None:
    """All bytes of the request, or None when the caller left before it had sent them all.

    They are read before any delay: a delayed request has left its caller, who may then go away.
    """
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)


def _once(body: bytes, receive: Receive) -> Receive:
    unread = [body]

    async def replay() -> Message:
        if unread:
            return {"type": "http.request", "body": unread.pop(), "more_body": False}
        return await receive()

    return replay


async def _unheard(message: Message) -> None:
    """Take what the service says, for nobody."""


async def _answer(send: Send, status: int, body: str) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body.encode()})


async def _lose_reply(rule: Fault, inner: _Inner, caller: _Caller) -> None:
    await inner(_unheard)
    await caller.never_hears(hang=rule.hang)


async def _delay_request(rule: Fault, inner: _Inner, caller: _Caller) -> None:
    await caller.sleep(rule.seconds)
    await inner(caller.send)


async def _delay_reply(rule: Fault, inner: _Inner, caller: _Caller) -> None:
    said: list[Message] = []

    async def keep(message: Message) -> None:
        said.append(message)

    await inner(keep)
    await caller.sleep(rule.seconds)
    for message in said:
        await caller.send(message)


async def _drop(rule: Fault, inner: _Inner, caller: _Caller) -> None:
    await caller.never_hears(hang=rule.hang)


async def _duplicate(rule: Fault, inner: _Inner, caller: _Caller) -> None:
    await inner(caller.send)
    await caller.sleep(rule.seconds)
    await inner(_unheard)


async def _error_after(rule: Fault, inner: _Inner, caller: _Caller) -> None:
    await inner(_unheard)
    await _answer(caller.send, 500, '{"detail": "something went wrong"}')


async def _accept_only(rule: Fault, inner: _Inner, caller: _Caller) -> None:
    await _answer(caller.send, 200, rule.body)


async def _refuse(rule: Fault, inner: _Inner, caller: _Caller) -> None:
    await _answer(caller.send, 403, '{"detail": "not admitted"}')


_KINDS: dict[str, Callable[[Fault, _Inner, _Caller], Awaitable[None]]] = {
    "lose_reply": _lose_reply,
    "delay_request": _delay_request,
    "delay_reply": _delay_reply,
    "drop": _drop,
    "duplicate": _duplicate,
    "error_after": _error_after,
    "accept_only": _accept_only,
    "refuse": _refuse,
}
