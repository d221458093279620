"""Checks a tool's promises against a live far side: does it do what its contract says?

Run it against a test account, never the real one: it makes real effects and undoes none. It sends
twice with one key, looks up, closes, sends late, and compares what came back (and, where `holds` is
given, what the service holds) with the contract. The idea is trio.testing.check_one_way_stream.

    findings = await check_tool(book, {"day": "Fri", "people": 4}, changed={"day": "Sat", …})
    assert findings.ok, findings
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TypeVar

from landed.core.canonical import Json
from landed.core.contract import Contract, Effect
from landed.core.key import Ask, key_for
from landed.core.outcome import (
    Absent,
    Acknowledged,
    AnswerLost,
    Found,
    LookOutcome,
    NoAnswer,
    Refused,
    SendOutcome,
)
from landed.core.tool import Call, Tool
from landed.testing.readied import Readied

T = TypeVar("T")

Arguments = Mapping[str, Json]
Holds = Callable[[], Awaitable[Json]]
Sleep = Callable[[float], Awaitable[None]]

EPOCH = 2  # Of the ordinary sends; the stale one carries the epoch before it.


class Verdict(StrEnum):
    """What one check came to."""

    KEPT = "kept"
    BROKEN = "broken"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One promise, and whether the far side kept it; `text` says what was seen, or is missing."""

    promise: str
    verdict: Verdict
    text: str = ""

    def __str__(self) -> str:
        return f"{self.verdict:<7}  {self.promise}" + (f": {self.text}" if self.text else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What `check_tool` saw, promise by promise; `str()` is one line for each."""

    tool: str
    each: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether no promise was broken; one that was skipped was not checked."""
        return all(one.verdict is not Verdict.BROKEN for one in self.each)

    def of(self, verdict: Verdict) -> frozenset[str]:
        """Return the promises that came to `verdict`."""
        return frozenset(one.promise for one in self.each if one.verdict is verdict)

    def __str__(self) -> str:
        return "\n".join([f"{self.tool}:", *(f"  {one}" for one in self.each)])


class BrokenPromiseError(Exception):
    """What was seen is not what the contract says; becomes a finding."""


@dataclass(kw_only=True)
class _Bench:
    """The tool on trial, what it is tried with, and its first send."""

    tool: Tool
    arguments: Arguments
    changed: Arguments | None
    refused: Arguments | None
    holds: Holds | None
    clock: Callable[[], float]
    new_id: Callable[[], str]
    sleep: Sleep
    wait_s: float | None = None
    result: Json = None

    @cached_property
    def first(self) -> Call:
        """The call that is sent first, and that every later check refers to."""
        return self.call()

    @property
    def contract(self) -> Contract:
        return self.tool.contract

    def call(
        self,
        arguments: Arguments | None = None,
        *,
        of: Call | None = None,
        age_s: float = 0.0,
        epoch: int = EPOCH,
    ) -> Call:
        """Make the call of a new operation, or with `of` another send of the same one."""
        operation = of.operation if of else self.new_id()
        sent_at = self.clock() - age_s
        return Call(
            operation=operation,
            tool=self.tool.name,
            key=key_for(self.contract, operation=operation, session="check"),
            arguments=self.tool.check(self.arguments if arguments is None else arguments),
            ask=Ask(session="check"),
            epoch=epoch,
            attempt=of.attempt + 1 if of else 1,
            sent_at=sent_at,
            deadline_at=sent_at + self.contract.deadline_s,
        )

    async def send(self, call: Call) -> SendOutcome:
        lost: SendOutcome = AnswerLost(reason=f"no answer within {self.contract.deadline_s:g} s")
        return await self._within(self.tool.send(call), lost)

    async def look(self, asking: Awaitable[LookOutcome]) -> LookOutcome:
        unanswered: LookOutcome = NoAnswer(
            reason=f"no answer within {self.contract.deadline_s:g} s"
        )
        return await self._within(asking, unanswered)

    async def _within(self, waiting: Awaitable[T], otherwise: T) -> T:
        try:
            async with asyncio.timeout(self.contract.deadline_s):
                return await waiting
        except TimeoutError:
            return otherwise

    async def lag(self) -> None:
        """Wait until what was done must be visible."""
        if self.contract.settlement_lag_s:
            await self.sleep(self.contract.settlement_lag_s)

    async def held(self) -> Json:
        """Return what the service holds; None where nobody can say."""
        return await self.holds() if self.holds else None

    async def sees(self, call: Call, result: Json) -> None:
        """Check that a lookup finds `result`."""
        await self.lag()
        match await self.look(self.tool.lookup(call)):
            case Found(result=found) if found == result:
                return
            case Found(result=found):
                raise BrokenPromiseError(f"the reply said {result!r}, the lookup says {found!r}")
            case other:
                raise BrokenPromiseError(f"the lookup says {other!r}")

    async def turned_away(self, call: Call) -> None:
        """Send `call`, and check that it is refused and leaves nothing behind.

        A refusal by a status that leaves doubt (a 409) counts where a lookup shows nothing new.
        """
        before = await self.held()
        outcome = await self.send(call)
        await self.lag()
        if await self.held() != before:
            raise BrokenPromiseError(f"it took effect; the send came back as {outcome!r}")
        match outcome:
            case Refused():
                return
            case AnswerLost() if self.contract.lookup:
                await self._sees_nothing_new(call, outcome)
            case _:
                raise BrokenPromiseError(f"it came back as {outcome!r}")

    async def _sees_nothing_new(self, call: Call, outcome: SendOutcome) -> None:
        seen = await self.look(self.tool.lookup(call))
        match seen:
            case Found(result=result):
                nothing_new = call.operation == self.first.operation and result == self.result
            case _:
                nothing_new = isinstance(seen, Absent) and call.operation != self.first.operation
        if not nothing_new:
            raise BrokenPromiseError(f"it came back as {outcome!r}, and the lookup says {seen!r}")


# The checks, in the order they run. Each raises BrokenPromiseError with what was seen.


async def _stable(bench: _Bench) -> None:
    once = bench.tool.check(bench.arguments)
    again = bench.tool.check(once)
    if again != once:
        raise BrokenPromiseError(f"{once!r} becomes {again!r} when it is checked again")


async def _acknowledged(bench: _Bench) -> None:
    before = await bench.held()
    match await bench.send(bench.first):
        case Acknowledged(result=result):
            bench.result = result
        case other:
            raise BrokenPromiseError(f"the first send came back as {other!r}")
    await bench.lag()
    after = await bench.held()
    if bench.contract.effect is Effect.NONE and after != before:
        raise BrokenPromiseError(
            f"it promises no effect, and the service now holds {after!r}, before {before!r}"
        )
    if bench.contract.effect is not Effect.NONE and bench.holds and after == before:
        raise BrokenPromiseError("it was acknowledged, and the service holds what it held before")


async def _one_effect(bench: _Bench) -> None:
    before = await bench.held()
    outcome = await bench.send(bench.call(of=bench.first))
    await bench.lag()
    if await bench.held() != before:
        raise BrokenPromiseError("the same key took effect a second time")
    match outcome:
        case Acknowledged(result=result) if result == bench.result:
            return
        case Acknowledged(result=result):
            raise BrokenPromiseError(f"first {bench.result!r}, then {result!r} for the same key")
        case other if bench.contract.lookup:
            await bench.sees(bench.first, bench.result)
        case other:
            raise BrokenPromiseError(f"the second send came back as {other!r}")


async def _remembered(bench: _Bench) -> None:
    await bench.sleep(bench.wait_s or 0.0)
    await _one_effect(bench)


async def _payload_compared(bench: _Bench) -> None:
    await bench.turned_away(bench.call(bench.changed, of=bench.first))


async def _lookup_finds(bench: _Bench) -> None:
    await bench.sees(bench.first, bench.result)


async def _unknown_is_absent(bench: _Bench) -> None:
    await bench.lag()
    answer = await bench.look(bench.tool.lookup(bench.call()))
    if not isinstance(answer, Absent):
        raise BrokenPromiseError(f"the lookup of a key that nobody used says {answer!r}")


async def _read_back_finds(bench: _Bench) -> None:
    await bench.lag()
    answer = await bench.look(bench.tool.read_back(bench.first, bench.result))
    if not isinstance(answer, Found):
        raise BrokenPromiseError(f"the read-back of what was acknowledged says {answer!r}")


async def _refusal_is_early(bench: _Bench) -> None:
    await bench.turned_away(bench.call(bench.refused))


async def _late_is_refused(bench: _Bench) -> None:
    age_s = (bench.contract.refuses_after_s or 0.0) + 1.0
    await bench.turned_away(bench.call(age_s=age_s))


async def _stale_is_refused(bench: _Bench) -> None:
    await bench.turned_away(bench.call(epoch=EPOCH - 1))


async def _close_shuts(bench: _Bench) -> None:
    call = bench.call()
    answer = await bench.look(bench.tool.close(call))
    if not isinstance(answer, Absent):
        raise BrokenPromiseError(f"the close of a key that nobody used says {answer!r}")
    await bench.turned_away(bench.call(of=call))
    again = await bench.look(bench.tool.close(call))
    if not isinstance(again, Absent):
        raise BrokenPromiseError(f"first {answer!r}, then {again!r} for closing the same key")


async def _close_finds(bench: _Bench) -> None:
    match await bench.look(bench.tool.close(bench.first)):
        case Found(result=result) if result == bench.result:
            return
        case other:
            raise BrokenPromiseError(f"the close of a key that landed says {other!r}")


@dataclass(frozen=True, slots=True)
class _Check:
    promise: str
    promised: Callable[[Contract], bool]
    run: Callable[[_Bench], Awaitable[None]]
    needs: str = ""  # The argument of `check_tool` without which it cannot be checked.
    essential: bool = False  # Where it is broken, the others have nothing to ask about.


_CHECKS = (
    _Check("stored arguments read back as they are", lambda c: True, _stable, essential=True),
    _Check(
        "a send is acknowledged, and does what its effect says",
        lambda c: True,
        _acknowledged,
        essential=True,
    ),
    _Check("one key, one effect", lambda c: bool(c.keyed), _one_effect),
    _Check(
        "another payload under one key is refused",
        lambda c: c.compares_payload,
        _payload_compared,
        "changed",
    ),
    _Check("a lookup finds what landed", lambda c: c.lookup, _lookup_finds),
    _Check("a lookup of an unused key is absent", lambda c: c.lookup, _unknown_is_absent),
    _Check("what was acknowledged can be read back", lambda c: c.read_back, _read_back_finds),
    _Check("a refusal comes before any effect", lambda c: True, _refusal_is_early, "refused"),
    _Check(
        "a request that is too old is refused",
        lambda c: c.refuses_after_s is not None,
        _late_is_refused,
    ),
    _Check("an older epoch is refused", lambda c: bool(c.fence), _stale_is_refused),
    _Check("a closed key refuses what comes late", lambda c: c.close, _close_shuts),
    _Check("a key is remembered", lambda c: c.retention_s is not None, _remembered, "wait_s"),
    # Last, for it shuts the key that the others look at.
    _Check("a close finds what landed", lambda c: c.close, _close_finds),
)


async def check_tool(
    tool: Tool,
    arguments: Arguments,
    *,
    changed: Arguments | None = None,
    refused: Arguments | None = None,
    holds: Holds | None = None,
    wait_s: float | None = None,
    clock: Callable[[], float] = time.time,
    new_id: Callable[[], str] = lambda: f"op-check-{secrets.token_hex(8)}",
    sleep: Sleep = asyncio.sleep,
) -> Findings:
    """Try what the tool's contract promises against the service it reaches; never raises for it.

    `arguments` are ones the service accepts, any number of times; `changed` others that it would
    accept too; `refused` ones that it refuses. `holds` returns what the service holds, as JSON that
    changes with each effect and with nothing else: with it effects are counted, without it replies
    and lookups are believed. After `wait_s` the first key is sent once more. Without `changed`,
    `refused` or `wait_s` what needs them is skipped.

    Each send and each question ends at the contract's `deadline_s`; `clock` is UTC in seconds.
    Raises `ValueError` where `wait_s` is not below the contract's `retention_s`.
    """
    bench = _Bench(
        tool=Readied(tool) if tool.contract.prepare else tool,
        arguments=arguments,
        changed=changed,
        refused=refused,
        holds=holds,
        clock=clock,
        new_id=new_id,
        sleep=sleep,
        wait_s=_checked(wait_s, tool.contract.retention_s),
    )
    return Findings(tool=tool.name, each=tuple([one async for one in _each(bench)]))


async def _each(bench: _Bench) -> AsyncIterator[Finding]:
    for check in _CHECKS:
        if check.promised(bench.contract):
            found = await _found(check, bench)
            yield found
            if check.essential and found.verdict is Verdict.BROKEN:
                return


def _checked(wait_s: float | None, retention_s: float | None) -> float | None:
    if wait_s is not None and retention_s is not None and wait_s >= retention_s:
        raise ValueError(f"wait_s must be below retention_s, {retention_s:g} s")
    return wait_s


async def _found(check: _Check, bench: _Bench) -> Finding:
    if check.needs and getattr(bench, check.needs) is None:
        text = f"give {check.needs}= to check it"
        return Finding(promise=check.promise, verdict=Verdict.SKIPPED, text=text)
    try:
        await check.run(bench)
    except BrokenPromiseError as error:
        return Finding(promise=check.promise, verdict=Verdict.BROKEN, text=str(error))
    except Exception as error:
        return Finding(promise=check.promise, verdict=Verdict.BROKEN, text=_line(error))
    return Finding(promise=check.promise, verdict=Verdict.KEPT)


def _line(error: Exception) -> str:
    return f"raised {type(error).__name__}: {error}"
