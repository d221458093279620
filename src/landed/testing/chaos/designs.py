"""Wrong designs under which a chaos run must end in complaints, beside ours."""

from collections.abc import Mapping

from landed.core.rules import Rules
from landed.testing.designs import KEY_PER_ATTEMPT, RIGHT, TIMEOUT_IS_NO, Design


def takes_all_for_the_same(*_: object, **__: object) -> bool:
    """Take every replacement for the very thing that it replaces, so that nothing is released."""
    return True


DESIGNS: Mapping[str, Design] = {
    "ours": RIGHT,
    "key-per-attempt": KEY_PER_ATTEMPT,
    "timeout-is-no": TIMEOUT_IS_NO,
    "releases-forgotten": Design(rules=Rules(returned_the_same=takes_all_for_the_same)),
}
