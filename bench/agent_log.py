"""Measures the session log of an agent: replay against plain `json.loads`, an append as it grows.

    python -m bench.agent_log

replays a conversation of a hundred thousand messages, and parses the same lines by hand in turns;
and appends to a log of a thousand and of a hundred thousand messages, the disk left out.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from landed.agent.messages import (
    Message,
    assistant_message,
    text_block,
    tool_call,
    tool_result,
    user_message,
)
from landed.agent.session_log import SessionLog, Sync

MESSAGES = 100_000
GROWN = (1_000, 100_000)
APPENDS = 500
ROUNDS = 5


def message(number: int) -> Message:
    """Return a message of the length and shape that they have: the last of four is an answer."""
    call = tool_call(f"c{number // 4}", "read", {"path": f"src/part_{number}.py", "limit": 200})
    match number % 4:
        case 0:
            return user_message(f"What does part {number} do, and who calls it? " + "x" * 60)
        case 1:
            return assistant_message(text_block("I read it. " + "x" * 80), call)
        case 2:
            return tool_result(call, "def part():\n    return 1\n" * 8)
        case _:
            return assistant_message(text_block("It returns one; nobody calls it. " + "x" * 200))


def written(path: Path, *, count: int) -> SessionLog:
    """Return a log of so many messages, written by hand: its appends are measured elsewhere."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(1, count + 1):
            entry = {"id": f"e{number}", "type": "message", "message": message(number)}
            file.write(json.dumps(entry, separators=(",", ":")) + "\n")
    return SessionLog(path, sync=Sync.SYSTEM)


def by_hand(path: Path) -> int:
    """Parse each line, and do nothing else."""
    return len([json.loads(line) for line in path.read_bytes().decode().splitlines()])


def seconds(work: Callable[[], object]) -> float:
    """Return how long a piece of work takes on the clock of the wall."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def replaying(path: Path) -> None:
    """Print how long a replay takes, as a multiple of parsing the lines."""
    log = written(path, count=MESSAGES)
    pairs = [(seconds(log.replay), seconds(lambda: by_hand(path))) for _ in range(ROUNDS)]
    ours, floor = (statistics.median(side) for side in zip(*pairs, strict=True))
    print(f"replay of {MESSAGES:,} messages: {ours / floor:.2f} of json.loads of the lines")
    print(f"  {ours:.2f} s, {path.stat().st_size / 2**20:.0f} MiB")


def appending(folder: Path) -> None:
    """Print how long an append takes at two lengths of the log, and their ratio."""
    logs = {count: written(folder / f"{count}.jsonl", count=count) for count in GROWN}
    for log in logs.values():
        log.replay()
    taken = {count: list[float]() for count in GROWN}
    for number in range(APPENDS):
        for count, log in logs.items():
            taken[count].append(seconds(partial(log.append, message(number))))
    short, long = (statistics.median(taken[count]) for count in GROWN)
    print(f"append to {GROWN[1]:,} messages: {long / short:.2f} of one to {GROWN[0]:,}")
    print(f"  {long * 1e6:.0f} µs, without the disk")


def main() -> None:
    """Measure both in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        replaying(Path(folder) / "long.jsonl")
        appending(Path(folder))


if __name__ == "__main__":
    main()
