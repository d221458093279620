"""A worker of a chaos run as an operating-system process: its share of the scripts, then the rest.

    python -m landed.testing.chaos.process --store URL --number 0 --workers 3 --notes FILE \
        --restaurant URL --payments URL --operations 1000 --seed 7

carries out the scripts that its notes do not call done, goes on with what others left, and ends
when it is told to by SIGTERM, or by the end of its standard input.
"""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from landed.core.errors import LandedError, LeaseLostError, ProposalError, StoreError
from landed.core.lease import Lease
from landed.runtime.parts import assemble, register
from landed.runtime.runtime import Runtime
from landed.stores.urls import open_store
from landed.testing.chaos.acting import Actor
from landed.testing.chaos.designs import DESIGNS
from landed.testing.chaos.load import Script, scripts
from landed.testing.chaos.notes import Noted, Notes, NotingStore
from landed.testing.chaos.tools import chaos_tools

TAKEN_FOR_DEAD = 3
STORE_GONE = 4
BROKEN = 5
TRIES_MAX = 12  # how often a script is run again before the process gives up
PAUSE_MAX_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the process is to do; `lanes` is how many scripts it carries out at once."""

    store: str
    number: int
    workers: int
    notes: str
    restaurant: str
    payments: str
    operations: int
    seed: int
    lease_s: float
    lanes: int
    design: str


async def work(asked: Asked) -> int:
    """Be that worker until it is told to end; return the exit status."""
    notes = Notes(Path(asked.notes))
    done = {line["script"] for line in notes.lines() if line["noted"] == Noted.DONE}
    every = scripts(seed=asked.seed, operations=asked.operations)
    share = [s for s in every if s.number % asked.workers == asked.number]
    design = DESIGNS[asked.design]
    tools = chaos_tools(restaurant=asked.restaurant, payments=asked.payments)
    try:
        runtime = assemble(
            NotingStore(inner=await open_store(asked.store), notes=notes),
            tools=register(map(design.wrap, tools)),
            rules=design.rules,
            what_next=design.what_next,
            lease=Lease(lease_s=asked.lease_s, beat_s=asked.lease_s / 3),
        )
        async with runtime:
            notes.add(Noted.BEGAN, worker=runtime.worker.name, recovered=runtime.recovered)
            left = [script for script in share if script.number not in done]
            await _serve(runtime, left, notes, lanes=asked.lanes)
    except LeaseLostError as lost:
        notes.add(Noted.ENDED, why=str(lost))
        return TAKEN_FOR_DEAD
    except StoreError as error:
        notes.add(Noted.ENDED, why=str(error))
        return STORE_GONE
    return 0


async def _serve(runtime: Runtime, left: list[Script], notes: Notes, *, lanes: int) -> None:
    """Carry the scripts out and serve what others left, until told to end."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_reader(sys.stdin.fileno(), stop.set)  # Whoever started it is gone.
    waiting = iter(left)

    async def lane() -> None:
        for script in waiting:
            await _carried_out(Actor(rt=runtime, script=script), notes)

    at_work = asyncio.gather(*(lane() for _ in range(lanes)))
    serving = asyncio.ensure_future(runtime.serve(stop))
    try:
        await asyncio.wait((serving, at_work), return_when=asyncio.FIRST_COMPLETED)
        if at_work.done():
            at_work.result()
        await serving
    finally:
        loop.remove_reader(sys.stdin.fileno())
        at_work.cancel()
        await asyncio.gather(at_work, return_exceptions=True)


async def _carried_out(actor: Actor, notes: Notes) -> None:
    """Run a script until it got to its end; what the runtime refuses is its end, too."""
    for tried in range(TRIES_MAX):
        try:
            await actor.run()
            notes.add(Noted.DONE, script=actor.script.number)
            return
        except ProposalError as refused:
            notes.add(Noted.REFUSED, script=actor.script.number, says=str(refused))
            notes.add(Noted.DONE, script=actor.script.number)
            return
        except StoreError as error:
            if actor.rt.worker.lost is not None:
                raise
            notes.add(Noted.TROUBLE, says=str(error), script=actor.script.number)
            await asyncio.sleep(min(PAUSE_MAX_S, 0.05 * 2**tried))
    raise StoreError(f"script {actor.script.number} was tried {TRIES_MAX} times")


def main(arguments: Sequence[str] | None = None) -> int:
    """Be the worker that the command line describes."""
    parser = argparse.ArgumentParser(prog="python -m landed.testing.chaos.process")
    for name in ("store", "notes", "restaurant", "payments"):
        parser.add_argument(f"--{name}", required=True)
    for name, given in (("number", 0), ("workers", 1), ("operations", 100), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=given)
    parser.add_argument("--lanes", type=int, default=8, help="how many scripts at once")
    parser.add_argument("--lease-s", type=float, default=3.0, help="seconds that claims stand")
    parser.add_argument("--design", default="ours", choices=sorted(DESIGNS))
    asked = Asked(**vars(parser.parse_args(arguments)))
    try:
        return asyncio.run(work(asked))
    except LandedError as error:
        Notes(Path(asked.notes)).add(Noted.ENDED, why=repr(error))
        return BROKEN


if __name__ == "__main__":
    sys.exit(main())
