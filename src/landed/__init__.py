"""Agent actions that land once, and are told truthfully.

The public names. Each is imported when it is first used, so that `import landed` loads nothing but
this page; a type checker sees them all.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

# name ▸ (module, its name there)
_PUBLIC = {
    "open": ("landed.assemble", "open_runtime"),
    "Runtime": ("landed.runtime.runtime", "Runtime"),
    "Settings": ("landed.runtime.opened", "Settings"),
    "Wanted": ("landed.core.plan", "Wanted"),
    "PlanValue": ("landed.core.value", "PlanValue"),
    "PlanState": ("landed.core.plan", "PlanState"),
    "Report": ("landed.core.report", "Report"),
    "tool": ("landed.tools.function", "tool"),
    "Ask": ("landed.core.key", "Ask"),
    "Call": ("landed.core.tool", "Call"),
    "Contract": ("landed.core.contract", "Contract"),
    "Effect": ("landed.core.contract", "Effect"),
    "View": ("landed.core.history", "View"),
    "Acknowledged": ("landed.core.outcome", "Acknowledged"),
    "Found": ("landed.core.outcome", "Found"),
    "Absent": ("landed.core.outcome", "Absent"),
    "NotYet": ("landed.core.outcome", "NotYet"),
    "NoAnswer": ("landed.core.outcome", "NoAnswer"),
    "Confirmed": ("landed.core.value", "Confirmed"),
    "Failed": ("landed.core.value", "Failed"),
    "Withdrawn": ("landed.core.value", "Withdrawn"),
    "Accepted": ("landed.core.value", "Accepted"),
    "Assumed": ("landed.core.value", "Assumed"),
    "Unknown": ("landed.core.value", "Unknown"),
    "Undecided": ("landed.core.value", "Undecided"),
    "Blocked": ("landed.core.value", "Blocked"),
    "Answered": ("landed.core.value", "Answered"),
    "Unanswered": ("landed.core.value", "Unanswered"),
    "Value": ("landed.core.value", "Value"),
    "LandedError": ("landed.core.errors", "LandedError"),
    "ProposalError": ("landed.core.errors", "ProposalError"),
    "ContractError": ("landed.core.errors", "ContractError"),
    "StoreError": ("landed.core.errors", "StoreError"),
    "StaleWriteError": ("landed.core.errors", "StaleWriteError"),
    "LeaseLostError": ("landed.core.errors", "LeaseLostError"),
    "WrongLoopError": ("landed.core.errors", "WrongLoopError"),
    "RefusedError": ("landed.core.errors", "RefusedError"),
    "NotSentError": ("landed.core.errors", "NotSentError"),
}

if TYPE_CHECKING:
    from landed.assemble import open_runtime as open
    from landed.core.contract import Contract, Effect
    from landed.core.errors import (
        ContractError,
        LandedError,
        LeaseLostError,
        NotSentError,
        ProposalError,
        RefusedError,
        StaleWriteError,
        StoreError,
        WrongLoopError,
    )
    from landed.core.history import View
    from landed.core.key import Ask
    from landed.core.outcome import Absent, Acknowledged, Found, NoAnswer, NotYet
    from landed.core.plan import PlanState, Wanted
    from landed.core.report import Report
    from landed.core.tool import Call
    from landed.core.value import (
        Accepted,
        Answered,
        Assumed,
        Blocked,
        Confirmed,
        Failed,
        PlanValue,
        Unanswered,
        Undecided,
        Unknown,
        Value,
        Withdrawn,
    )
    from landed.runtime.opened import Settings
    from landed.runtime.runtime import Runtime
    from landed.tools.function import tool

__all__ = [
    "Absent",
    "Accepted",
    "Acknowledged",
    "Answered",
    "Ask",
    "Assumed",
    "Blocked",
    "Call",
    "Confirmed",
    "Contract",
    "ContractError",
    "Effect",
    "Failed",
    "Found",
    "LandedError",
    "LeaseLostError",
    "NoAnswer",
    "NotSentError",
    "NotYet",
    "PlanState",
    "PlanValue",
    "ProposalError",
    "RefusedError",
    "Report",
    "Runtime",
    "Settings",
    "StaleWriteError",
    "StoreError",
    "Unanswered",
    "Undecided",
    "Unknown",
    "Value",
    "View",
    "Wanted",
    "Withdrawn",
    "WrongLoopError",
    "open",
    "tool",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562)."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'landed' has no attribute {name!r}")
    module, there = _PUBLIC[name]
    value: object = getattr(import_module(module), there)
    globals()[name] = value
    return value
