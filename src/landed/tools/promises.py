"""The fields of a contract as keyword arguments, so that type checkers and editors know them."""

from collections.abc import Mapping, Sequence
from typing import Literal

from landed.tools.foresight import Forethought


class Promises(Forethought, total=False):
    """What a tool's author may promise besides its effect and its questions.

    `landed.core.contract.Contract` says what each one means, and holds the defaults.
    """

    permission: str
    freshness: Literal["strict", "tolerate", "none"]
    tolerates: Sequence[str]
    on_expiry: Literal["replan", "stop"]
    service: str
    keyed: str
    key_form: str
    retention_s: float | None
    compares_payload: bool
    refusals: Sequence[int]
    settlement_lag_s: float
    refuses_after_s: float | None
    makes: str
    makes_type: str
    accepts: Mapping[str, str]
    unique: Sequence[str]
    undo: str
    undo_arguments: Mapping[str, str]
    undo_where: str
    undo_priced_by: str
    undo_price: str
    undo_within_s: float | None
    correct: str
    correct_arguments: Mapping[str, str]
    identity: Sequence[str] | None
    target: Sequence[str]
    on_interrupt: Literal["finish", "wait", "stop_and_resolve"]
    wait_s: float
    stops_midway: bool
    order: Literal["secure_first", "release_first"]
    order_why: str
    while_unknown: Literal["wait", "replace"]
    assume_after_s: float | None
    escalate_after_s: float
    when_unknown: Literal["reconcile", "escalate", "block"]
    amount: str
    escalate_above: float | None
    deadline_s: float
    max_tries: int
    concurrency: int
    fence: str
    says: Mapping[str, Mapping[str, str]]
