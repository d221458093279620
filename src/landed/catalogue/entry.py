"""One call of one service: its contract, where each fact comes from, and what nobody verified."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from landed.core.contract import Contract
from landed.core.declared import values

# Fields of a contract that say something about the service, and so need a source. The others are
# decisions of whoever writes the contract: which calls ask for a yes, how long one waits, …
FACTUAL = (
    *("keyed", "retention_s", "compares_payload", "refusals", "lookup", "settlement_lag_s"),
    *("close", "refuses_after_s", "read_back", "undo_within_s", "fence"),
)
# What a file may say about the service besides; no contract has room for it.
BESIDE = ("key_in", "key_max", "replays_failures", "cancel_by_key")

# Promises that a tool makes by having the means: a URL, a function. They are not handed on.
QUESTIONS = ("lookup", "close", "read_back")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Where a fact comes from: `source` is a URL, `checked` the day it was read there.

    `verified` is false where nobody could confirm it; `why` then says what is missing. `says` is
    the gist of the source in our words.
    """

    source: str = ""
    checked: date | None = None
    verified: bool = True
    says: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is known about one call of one service.

    name              `service.call`, such as `stripe.refund`
    contract          its promises, checked; what is not stated has its default
    stated            the fields of the contract that the file states
    request           the request it is about (`POST /v1/refunds`)
    key_in            where the key travels: `header`, `body`, `path`
    key_max           the longest key the service takes, in characters; None where nobody says
    replays_failures  a key whose first answer was a failure gets that failure again, also where the
                      effect took place; None where nobody says
    cancel_by_key     the request that undoes what a key did, also when its answer was lost. It is
                      not `close`: nothing says that a request still under way is refused after it
    ways              how to ask: `lookup`, `close`, `read_back`, and how a `key` must be written
    arguments         what an upstream tool tells the model about each argument
    hints             what an upstream tool says of itself (`idempotent`, `read_only`,
                      `destructive`); never believed, only compared
    facts             where each fact comes from, by field
    unverified        the fields whose value nobody could verify
    notes             what else one should know
    origin            the file
    """

    name: str
    contract: Contract
    stated: tuple[str, ...] = ()
    request: str = ""
    key_in: str = ""
    key_max: int | None = None
    replays_failures: bool | None = None
    cancel_by_key: str = ""
    ways: Mapping[str, str] = field(default_factory=dict[str, str])
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])
    hints: Mapping[str, bool] = field(default_factory=dict[str, bool])
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact])
    unverified: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    origin: str = ""

    @property
    def promises(self) -> dict[str, Any]:
        """What the file states, as keyword arguments for `HttpTool` and `@landed.tool`.

        The questions are left out: give `lookup=`, `close=`, `read_back=` as that tool takes them,
        or it does not have them.
        """
        plain = values(self.contract)
        return {name: plain[name] for name in self.stated if name not in QUESTIONS}

    @property
    def questions(self) -> tuple[str, ...]:
        """What the service can be asked; a tool that leaves one out waits longer for the truth."""
        return tuple(name for name in QUESTIONS if getattr(self.contract, name))
