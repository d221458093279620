"""Switches over the invoice scenarios: eight wrong designs, the language, and how each must end.

    switched(INVOICES_BY_NAME["invoice-redeploy"], end_in_error=True)

`FAILURES` says how a wrong design ends over the scenario that shows it best; of any other
combination nothing is said, and `Ran.as_described` is None.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from landed.core.preview import Previewing, Similar
from landed.testing.designs import Design
from landed.testing.invoices.clerk import Manner
from landed.testing.invoices.designs import (
    ASK_EACH_STEP,
    CANCEL_KILLS,
    CONSUME_ON_MISMATCH,
    END_IN_ERROR,
    LENIENT_YES,
    MODEL_KEY,
    NO_DRAIN,
    RETRY_NEW_PLAN,
)
from landed.testing.invoices.scenario import End, InvoiceScenario
from landed.testing.invoices.scenarios import DONE, DRAFT, DRAFT_2, ISSUED, ONE_MAIL

SECOND = "F-2026-0002 Marta 605.00 due 18/11/2026"
SECOND_WHOLE = f"{SECOND}, reminder 13/11/2026"


@dataclass(frozen=True, slots=True, kw_only=True)
class InvoiceSwitches:
    """The switches, each as it is when nobody touches it.

    `end_in_error`: a plan that ran some steps may end in an error, and lets go of what it claimed.
    `no_drain`: a process that is to end waits for nothing. `consume_on_mismatch`: whoever presents
    an approval uses it up. `lenient_yes`: what begins with a yes is one. `model_key`: the model
    names its calls. `retry_new_plan`: a retry is another plan. `ask_each_step`: a question for each
    step. `cancel_kills`: a stopped step is taken for cancelled. `language`: what the user speaks.
    """

    end_in_error: bool = False
    no_drain: bool = False
    consume_on_mismatch: bool = False
    lenient_yes: bool = False
    model_key: bool = False
    retry_new_plan: bool = False
    ask_each_step: bool = False
    cancel_kills: bool = False
    language: str = "en"
    kill: tuple[str, ...] = ()

    @property
    def wrong(self) -> frozenset[str]:
        """Return the wrong designs that are switched on."""
        return frozenset(each.name for each in fields(self) if getattr(self, each.name) is True)


def _asks_each_step(scenario: InvoiceScenario) -> InvoiceScenario:
    """Have each step be a plan of its own, the draft too one that a person agrees to."""
    asks = {"create_draft": {"risk": "confirm"}}
    return replace(scenario, manner=ASK_EACH_STEP, replaced={**scenario.replaced, **asks})


def _model_key(scenario: InvoiceScenario) -> InvoiceScenario:
    """Have nothing but the model's own key stand between it and a second draft."""
    blind = {"create_draft": {"look_alike": _nothing_alike}}
    return replace(scenario, manner=MODEL_KEY, replaced={**scenario.replaced, **blind})


def _nothing_alike(_: Previewing) -> Sequence[Similar]:
    """See nothing that is alike."""
    return ()


def _with(part: Design | Manner) -> Callable[[InvoiceScenario], InvoiceScenario]:
    def changed(scenario: InvoiceScenario) -> InvoiceScenario:
        if isinstance(part, Design):
            return replace(scenario, design=part)
        return replace(scenario, manner=part)

    return changed


WRONG: Mapping[str, Callable[[InvoiceScenario], InvoiceScenario]] = {
    "end_in_error": _with(END_IN_ERROR),
    "no_drain": _with(NO_DRAIN),
    "consume_on_mismatch": _with(CONSUME_ON_MISMATCH),
    "lenient_yes": _with(LENIENT_YES),
    "model_key": _model_key,
    "retry_new_plan": _with(RETRY_NEW_PLAN),
    "ask_each_step": _asks_each_step,
    "cancel_kills": _with(CANCEL_KILLS),
}

# What each one costs, as the first line of its timeline says it.
COSTS: Mapping[str, str] = {
    "end_in_error": "the customer gets two mails, of two invoices",
    "no_drain": "nobody knows whether the mail went out",
    "consume_on_mismatch": "a stranger cancels the plan by trying",
    "lenient_yes": "what runs has the date that was to be changed",
    "model_key": "two drafts",
    "retry_new_plan": "the invoice is issued twice, under two numbers",
    "ask_each_step": "four questions instead of one",
    "cancel_kills": "something is there that nobody knows of",
}

# By the scenario, and the one wrong design that is switched on.
FAILURES: Mapping[tuple[str, str], End] = {
    ("invoice-redeploy", "end_in_error"): End(
        invoices=(ISSUED, SECOND_WHOLE),
        mailed=("F-2026-0001", "F-2026-0002"),
        reconciled=False,
        says={"en": ("issued F-2026-0002",), "es": ("emitida F-2026-0002",)},
    ),
    ("invoice-deploy", "no_drain"): End(
        invoices=(ISSUED,),
        mailed=ONE_MAIL,
        reconciled=False,
        says={
            "en": ("Not known yet: I may have emailed F-2026-0001",),
            "es": ("Aún no se sabe: puede que haya enviado F-2026-0001",),
        },
    ),
    ("invoice-stranger", "consume_on_mismatch"): End(
        says={"en": ("You said no.",), "es": ("Has dicho que no.",)}
    ),
    ("invoice-other-date", "lenient_yes"): replace(DONE),
    ("invoice-loop", "model_key"): End(invoices=(DRAFT, DRAFT_2), asked=0),
    ("invoice-retry", "retry_new_plan"): End(
        invoices=(ISSUED, SECOND_WHOLE),
        mailed=("F-2026-0002",),
        asked=3,
        says={"en": ("issued F-2026-0002",), "es": ("emitida F-2026-0002",)},
    ),
    ("invoice", "ask_each_step"): replace(DONE, asked=4, says={}),
    ("invoice-cancel", "cancel_kills"): End(
        invoices=(DRAFT,),
        reconciled=False,
        says={"en": ("Stopped: 0 of 4 done.",), "es": ("Parado: 0 de 4 hechos.",)},
    ),
    ("invoice-cancel-late", "cancel_kills"): End(
        invoices=(ISSUED,),
        reconciled=False,
        says={"en": ("Stopped: 1 of 4 done.",), "es": ("Parado: 1 de 4 hechos.",)},
    ),
}


def switched(scenario: InvoiceScenario, **switches: object) -> InvoiceScenario:
    """Return the scenario with some switches touched.

    Raises `ValueError` for a switch that goes with other scenarios, and for an unknown language.
    """
    known = {each.name for each in fields(InvoiceSwitches)}
    if strange := sorted(set(switches) - known):
        raise ValueError(f"not with an invoice scenario such as this: {', '.join(strange)}")
    wanted = InvoiceSwitches(**switches)  # type: ignore[arg-type]
    changed = replace(scenario, language=wanted.language)
    for name in sorted(wanted.wrong):
        changed = replace(WRONG[name](changed), wrong=f"--{name.replace('_', '-')}: {COSTS[name]}")
    if wanted.kill:
        changed = replace(changed, kill=wanted.kill, tabulated=wanted.kill == scenario.kill)
    if not wanted.wrong:
        return changed
    end = FAILURES.get((scenario.name, "+".join(sorted(wanted.wrong))))
    if end is None:
        return replace(changed, tabulated=False)
    return replace(changed, end=end)
