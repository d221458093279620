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
from landed.core.revision import Revision, pair
from landed.core.undo import returned_the_same


def own_key(operation: Operation, contract: Contract) -> str:
    """Return the key that an operation is sent under: the one it was made with, and no other's."""
    return operation.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The pure functions that decide.

    key_for            the key an operation is recorded with, before anything is sent
    doubt              what to do about an operation in doubt (`core.doubt`)
    absorb             what a reply is an event of (`core.absorb`)
    pair               what a change of mind keeps, releases and corrects (`core.revision`)
    returned_the_same  whether a replacement is the very thing to be released (`core.undo`)
    """

    key_for: Callable[[Operation, Contract], str] = own_key
    doubt: Callable[[Operation, Contract, float], Verdict] = doubt
    absorb: Callable[[Operation, Contract, CameBack], Moved | None] = absorb
    pair: Callable[..., Revision] = pair
    returned_the_same: Callable[..., bool] = returned_the_same


RULES = Rules()
