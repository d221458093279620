"""How long a model may take, and how often it is asked again."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait, in seconds.

    connect_s     for a connection
    first_byte_s  for the first byte of the reply, from the start of the request
    between_s     for each further byte; a ping is one
    whole_s       for the reply, with every try and every pause between tries; a little less than
                  `landed.agent.loop.Limits.model_s`, so that the model says what it waited for
    """

    connect_s: float = 10.0
    first_byte_s: float = 120.0
    between_s: float = 60.0
    whole_s: float = 580.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How often a request is tried, and how long to pause before it is tried again.

    The pause doubles from `first_s` up to `most_s`, less up to a quarter by chance. A `Retry-After`
    takes its place; one of more than `asked_max_s` is answered by giving up at once.
    """

    tries: int = 3
    first_s: float = 0.5
    most_s: float = 30.0
    asked_max_s: float = 60.0

    def pause_s(self, tried: int, *, asked_s: float | None, chance: float) -> float | None:
        """Return the pause after so many tries, None to give up; `chance` is from 0 to 1."""
        if tried >= self.tries:
            return None
        if asked_s is not None:
            return asked_s if asked_s <= self.asked_max_s else None
        return min(self.first_s * 2.0 ** (tried - 1), self.most_s) * (1 - chance / 4)
