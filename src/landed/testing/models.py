"""A scripted model: it reads each phrase into the same calls every time.

So every difference between two runs comes from the runtime's rules, never from the model.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from landed.core.plan import Wanted

__all__ = ["ScriptedModel", "Wanted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedModel:
    """Reads a phrase by looking it up; a phrase that is not in the script is an error."""

    script: Mapping[str, tuple[Wanted, ...]] = field(default_factory=dict[str, tuple[Wanted, ...]])

    def read(self, phrase: str) -> tuple[Wanted, ...]:
        """Return the calls that the phrase asks for. Raises `KeyError` for another phrase."""
        if phrase not in self.script:
            raise KeyError(f"the scripted model has no reading of {phrase!r}")
        return self.script[phrase]
