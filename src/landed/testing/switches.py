"""Switches over a scenario: another rule, contract, world or process; and how each must end.

    switched(BY_NAME["revise-in-flight"], delayed=True, fencing=False)

Four kinds: rules (`reconcile`, `fencing`, `key`), contract (`order`), world (`delayed`, `full`,
`fee_cents`, `strict_keys`), store and process (`lose_ops`, `kill`). `TABLE` says how combinations
end over `revise-in-flight`; of any other nothing is said, and `Ran.as_described` is None.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace

from landed.testing.designs import (
    Design,
    absent_is_no,
    cancel_is_cancelled,
    key_of_step,
    never_closes,
    new_key_each_turn,
    releases_anything,
)
from landed.testing.forgetful import ForgetfulStore
from landed.testing.revisions import IN_FLIGHT
from landed.testing.scenario import Scenario
from landed.testing.wishes import (
    FRIDAY,
    REQUEST_SLOW,
    SATURDAY_SECOND,
    TOLD_SATURDAY,
    saturday,
    saturday_before_it_arrives,
)

KEYS = ("operation", "step", "turn")
ORDERS = ("secure-first", "release-first")
SATURDAY_COMMITTED = ("after:send:reserve_table",)
WHY_FIRST = "two tables would cost two deposits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """The switches, each as it is when nobody touches it.

    `reconcile=False` takes a stopped wait for a cancellation; `fencing=False` never closes a key
    and takes "not found" for a no; `key` is what a key names. `order` is the contract's. `delayed`
    keeps the first request on its way; `full` are days without a table; `fee_cents` what cancelling
    costs; `strict_keys` whether a key reused with other details is refused (None: as the scenario
    has it, but a coarse key meets a restaurant that does not compare). `lose_ops` has the store
    lose its operations at a restart; `kill` are the points where processes are killed.
    Raises `ValueError` for a key or an order that there is none of.
    """

    reconcile: bool = True
    fencing: bool = True
    key: str = "operation"
    order: str = "secure-first"
    delayed: bool = False
    full: tuple[str, ...] = ()
    fee_cents: int = 0
    strict_keys: bool | None = None
    lose_ops: bool = False
    kill: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, value, known in (("key", self.key, KEYS), ("order", self.order, ORDERS)):
            if value not in known:
                raise ValueError(f"there is no {name} {value!r}; choose one of {', '.join(known)}")

    @property
    def touched(self) -> frozenset[str]:
        """Return which of them are not as they are when nobody touches them."""
        return frozenset(
            each.name for each in fields(self) if getattr(self, each.name) != each.default
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a combination ends over `revise-in-flight`."""

    holds: tuple[str, ...]
    texts: tuple[str, ...] = (TOLD_SATURDAY,)
    reconciled: bool = True
    says: tuple[str, ...] = ()


RIGHT = End(holds=(SATURDAY_SECOND,), says=("Booked R2", "Cancelled R1"))
ARRIVES_LATE = End(holds=("R1 Sat 19:00 x4",), says=("Booked R1 (Sat",))
TWO_TABLES = End(holds=(FRIDAY, SATURDAY_SECOND), reconciled=False, says=("Booked R2 (Sat",))
FRIDAY_LANDS = End(
    holds=("R1 Sat 19:00 x4", "R2 Fri 19:00 x4"), reconciled=False, says=("Booked R1 (Sat",)
)
ASKED = End(holds=(FRIDAY,), texts=(), says=("No table was booked for Sat", "You still hold R1"))
NOTHING = End(holds=(), texts=(), says=("Cancelled R1", "No table was booked for Sat"))

NAIVE = Switches(reconcile=False)
FULL = Switches(full=("Sat",))
KILLED = Switches(kill=SATURDAY_COMMITTED)

# (naive | reconciles) x (arrives | delayed) x (close | lookup only);
# (secure first | release first) x (Saturday free | full); (operations kept | lost).
COMBINATIONS: tuple[tuple[Switches, End], ...] = (
    (NAIVE, TWO_TABLES),
    (replace(NAIVE, fencing=False), TWO_TABLES),
    (replace(NAIVE, delayed=True), FRIDAY_LANDS),
    (replace(NAIVE, delayed=True, fencing=False), FRIDAY_LANDS),
    (Switches(), RIGHT),
    (Switches(fencing=False), RIGHT),
    (Switches(delayed=True), ARRIVES_LATE),
    (Switches(delayed=True, fencing=False), FRIDAY_LANDS),
    (Switches(order="secure-first"), RIGHT),
    (FULL, ASKED),
    (Switches(order="release-first"), RIGHT),
    (replace(FULL, order="release-first"), NOTHING),
    (KILLED, RIGHT),
    (
        replace(KILLED, lose_ops=True),
        End(
            holds=(FRIDAY, SATURDAY_SECOND, "R3 Sat 19:00 x4"),
            reconciled=False,
            says=("Booked R3",),
        ),
    ),
)
# What else the failure variants tell of.
MORE: tuple[tuple[Switches, End], ...] = (
    (Switches(key="step"), End(holds=(), reconciled=False, says=("Cancelled R1",))),
    (Switches(key="step", strict_keys=True), ASKED),
    (
        replace(KILLED, key="turn"),
        End(
            holds=(SATURDAY_SECOND, "R3 Sat 19:00 x4"),
            reconciled=False,
            says=("Booked R3", "Cancelled R1"),
        ),
    ),
    (
        Switches(fee_cents=2000),
        End(holds=(FRIDAY, SATURDAY_SECOND), says=("Booked R2", "costs 20.00")),
    ),
)
TABLE: Mapping[Switches, End] = dict((*COMBINATIONS, *MORE))


def switched(scenario: Scenario, **switches: object) -> Scenario:
    """Return the scenario with some switches touched; raises as `Switches` does.

    What is touched is described anew where `TABLE` has that combination, and not at all elsewhere.
    """
    wanted = Switches(**switches)  # type: ignore[arg-type]
    if not wanted.touched:
        return scenario
    changed = scenario
    for name in sorted(wanted.touched):
        changed = _SWITCH[name](changed, wanted)
    end = TABLE.get(wanted) if scenario.name == IN_FLIGHT.name else None
    if end is None:
        return replace(changed, tabulated=False)
    return replace(
        changed,
        holds=end.holds,
        texts=end.texts,
        reconciled=end.reconciled,
        says=end.says,
    )


def _reconcile(scenario: Scenario, wanted: Switches) -> Scenario:
    return _design(scenario, replace(scenario.design, what_next=cancel_is_cancelled))


def _fencing(scenario: Scenario, wanted: Switches) -> Scenario:
    rules = replace(scenario.design.rules, absorb=absent_is_no, doubt=never_closes)
    return _design(scenario, replace(scenario.design, rules=rules))


def _key(scenario: Scenario, wanted: Switches) -> Scenario:
    design = scenario.design
    if wanted.key == "turn":
        return _design(scenario, replace(design, wrap=new_key_each_turn))
    # Where a key is closed, the next request under it is refused: nothing would be seen.
    strict = bool(wanted.strict_keys)
    rules = replace(design.rules, key_for=key_of_step)
    if not strict:
        rules = replace(rules, returned_the_same=releases_anything)
    restaurant = replace(scenario.restaurant, strict=strict, can_close=False)
    return replace(scenario, design=replace(design, rules=rules), restaurant=restaurant)


def _order(scenario: Scenario, wanted: Switches) -> Scenario:
    order = {"order": "release_first", "order_why": WHY_FIRST}
    return replace(scenario, promises={**scenario.promises, **order})


def _delayed(scenario: Scenario, wanted: Switches) -> Scenario:
    said_earlier = scenario.script is saturday
    script = saturday_before_it_arrives if said_earlier else scenario.script
    return replace(scenario, faults=REQUEST_SLOW, script=script)


def _full(scenario: Scenario, wanted: Switches) -> Scenario:
    return replace(scenario, restaurant=replace(scenario.restaurant, full=wanted.full))


def _fee(scenario: Scenario, wanted: Switches) -> Scenario:
    return replace(scenario, restaurant=replace(scenario.restaurant, fee_cents=wanted.fee_cents))


def _strict_keys(scenario: Scenario, wanted: Switches) -> Scenario:
    strict = bool(wanted.strict_keys)
    return replace(scenario, restaurant=replace(scenario.restaurant, strict=strict))


def _lose_ops(scenario: Scenario, wanted: Switches) -> Scenario:
    return _design(scenario, replace(scenario.design, reopen=ForgetfulStore))


def _kill(scenario: Scenario, wanted: Switches) -> Scenario:
    return replace(scenario, kill=wanted.kill)


def _design(scenario: Scenario, design: Design) -> Scenario:
    return replace(scenario, design=design)


_SWITCH: Mapping[str, Callable[[Scenario, Switches], Scenario]] = {
    "reconcile": _reconcile,
    "fencing": _fencing,
    "key": _key,
    "order": _order,
    "delayed": _delayed,
    "full": _full,
    "fee_cents": _fee,
    "strict_keys": _strict_keys,
    "lose_ops": _lose_ops,
    "kill": _kill,
}
