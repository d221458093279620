"""The rules as one value, so that a wrong design is another value and never a flag in the code.

The defaults are core's own functions. A naive variant replaces one of them
(`landed.testing.variants`); nothing that `landed.open` accepts can.
"""

from collections.abc import Callable
from dataclasses import dataclass

from landed.core.absorb import CameBack, Moved, absorb
from landed.core.contract import Contract
from landed.core.doubt import Verdict, doubt
from landed.core.operation import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The pure functions that decide. See `landed.core.doubt.doubt` and `core.absorb.absorb`."""

    doubt: Callable[[Operation, Contract, float], Verdict] = doubt
    absorb: Callable[[Operation, Contract, CameBack], Moved | None] = absorb


RULES = Rules()
