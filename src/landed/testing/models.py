"""A scripted model: it reads each phrase into the same calls every time.

So every difference between two runs comes from the runtime's rules, never from the model.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from landed.core.canonical import Json
from landed.core.plan import Wanted

__all__ = ["Change", "ScriptedModel", "Wanted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a phrase changes in the turn it is about, as the model reads it.

    `change` is merged into the turn's intent; `also` asks for something beside it; `unsure` is the
    question that the model has when it cannot tell; `drop` what the user gave up in so many words;
    `claim` the id of something that, so the user says, an operation in doubt made after all; the
    person is asked whether that is to be taken for true, in the words of `unsure`.
    """

    change: Mapping[str, Json] = field(default_factory=dict[str, Json])
    also: Mapping[str, Json] = field(default_factory=dict[str, Json])
    unsure: str = ""
    drop: tuple[str, ...] = ()
    claim: str = ""

    def __str__(self) -> str:
        if self.claim:
            return f"claims {self.claim}"
        if self.unsure:
            return f"unsure: {self.unsure}"
        said = {**self.change, **{f"also {name}": value for name, value in self.also.items()}}
        dropped = [f"drop {name}" for name in self.drop]
        return ", ".join([f"{name}={value}" for name, value in said.items()] + dropped)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedModel:
    """Reads a phrase by looking it up; a phrase that is not in the script is an error."""

    script: Mapping[str, tuple[Wanted, ...]] = field(default_factory=dict[str, tuple[Wanted, ...]])
    intents: Mapping[str, Mapping[str, Json]] = field(default_factory=dict[str, Mapping[str, Json]])
    changes: Mapping[str, Change] = field(default_factory=dict[str, Change])

    def read(self, phrase: str) -> tuple[Wanted, ...]:
        """Return the calls that the phrase asks for. Raises `KeyError` for another phrase."""
        if phrase not in self.script:
            raise KeyError(f"the scripted model has no reading of {phrase!r}")
        return self.script[phrase]

    def intent(self, phrase: str) -> Mapping[str, Json]:
        """Return what the phrase wants, as values. Raises `KeyError` for another phrase."""
        return self.intents[phrase]

    def change(self, phrase: str) -> Change:
        """Return what the phrase changes. Raises `KeyError` for another phrase."""
        return self.changes[phrase]
