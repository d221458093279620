"""A deployment by two workers as values: who does what, and how it must end."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from landed.testing.doubts.scenario import DoubtScenario

if TYPE_CHECKING:
    from landed.testing.doubts.teller import Teller


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployScenario(DoubtScenario):
    """As a scenario of doubt: `script` is what the sleeper does, `then` what its successor does."""

    then: "Callable[[Teller], Awaitable[None]]"
    service: str = "cluster"
