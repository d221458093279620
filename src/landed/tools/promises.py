"""The fields of a contract as keyword arguments, so that type checkers and editors know them."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict


class Promises(TypedDict, total=False):
    """What a tool's author may promise besides its effect and its questions.

    `landed.core.contract.Contract` says what each one means, and holds the defaults.
    """

    risk: Literal["safe", "confirm"]
    service: str
    keyed: str
    key_form: str
    retention_s: float | None
    compares_payload: bool
    refusals: Sequence[int]
    settlement_lag_s: float
    refuses_after_s: float | None
    makes: str
    undo: str
    undo_arguments: Mapping[str, str]
    undo_priced_by: str
    undo_price: str
    undo_within_s: float | None
    correct: str
    correct_arguments: Mapping[str, str]
    identity: Sequence[str] | None
    target: Sequence[str]
    on_interrupt: Literal["finish", "wait", "stop_and_resolve"]
    wait_s: float
    order: Literal["secure_first", "release_first"]
    order_why: str
    while_unknown: Literal["wait", "replace"]
    assume_after_s: float | None
    escalate_after_s: float
    deadline_s: float
    max_tries: int
    concurrency: int
    fence: str
    says: Mapping[str, Mapping[str, str]]
