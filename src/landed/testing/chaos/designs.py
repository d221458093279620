"""Wrong designs under which a chaos run must end in complaints, beside ours."""

from collections.abc import Mapping

from landed.core.rules import Rules
from landed.testing.designs import KEY_PER_ATTEMPT, RIGHT, TIMEOUT_IS_NO, Design
from landed.testing.explored.wrong_minds import owes_nothing

DESIGNS: Mapping[str, Design] = {
    "ours": RIGHT,
    "key-per-attempt": KEY_PER_ATTEMPT,
    "timeout-is-no": TIMEOUT_IS_NO,
    "releases-forgotten": Design(rules=Rules(pair=owes_nothing)),
}
