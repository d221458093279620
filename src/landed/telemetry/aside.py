"""A thread of its own for what may take long, so that no exporter holds up an operation.

What is handed over is done in order, in batches: a thread that woke for each single thing would
contend with the event loop for the interpreter. What it cannot keep up with is dropped, and said.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable

log = logging.getLogger("landed")

WAITING_MAX = 10_000
"""Things that wait to be done; those after them are dropped."""

GATHER_S = 0.05  # How long the thread lets things gather, once there is one.


class Aside:
    """Does what it is handed, on one daemon thread that is there once there is something to do.

    After the first thing that raises nothing more is done: `failed` says so.
    """

    def __init__(self) -> None:
        self.failed = False
        self.dropped = 0
        # What is to be done, and marks that are set once all before them was.
        self._waiting: deque[Callable[[], None] | threading.Event] = deque()
        self._bell = threading.Event()
        self._hurry = threading.Event()
        self._thread: threading.Thread | None = None

    def do(self, act: Callable[[], None]) -> None:
        """Have it done soon; from any thread, and without waiting."""
        if self.failed:
            return
        if len(self._waiting) >= WAITING_MAX:
            if not self.dropped:
                log.warning("telemetry does not keep up; some of it is dropped from now on")
            self.dropped += 1
            return
        self._waiting.append(act)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="landed-telemetry", daemon=True)
            self._thread.start()
        self._bell.set()

    def flush(self, seconds: float) -> bool:
        """Wait at most so many seconds until what was handed over is done; return whether it is."""
        if self._thread is None:
            return True
        done = threading.Event()
        self._waiting.append(done)
        self._hurry.set()
        self._bell.set()
        return done.wait(seconds)

    def _run(self) -> None:
        while True:
            self._bell.wait()
            self._hurry.wait(GATHER_S)
            self._bell.clear()
            self._hurry.clear()
            while self._waiting:
                act = self._waiting.popleft()
                if isinstance(act, threading.Event):
                    act.set()
                elif not self.failed:
                    self._try(act)

    def _try(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:
            log.warning("telemetry failed and is left out from now on: %r", error)
            self.failed = True
