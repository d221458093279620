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
    "keep": ("landed.assemble", "keep_store"),
    "Retention": ("landed.runtime.keeping", "Retention"),
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
    "Preview": ("landed.core.preview", "Preview"),
    "Previewing": ("landed.core.preview", "Previewing"),
    "Similar": ("landed.core.preview", "Similar"),
    "typed_count": ("landed.core.preview", "typed_count"),
    "Purpose": ("landed.core.approval", "Purpose"),
    "Offer": ("landed.core.value", "Offer"),
    "StepValue": ("landed.core.value", "StepValue"),
    "Permissions": ("landed.runtime.permissions", "Permissions"),
    "Permit": ("landed.runtime.permissions", "Permit"),
    "ApprovalError": ("landed.core.errors", "ApprovalError"),
    "ModelTools": ("landed.runtime.acting", "ModelTools"),
    "Risk": ("landed.core.contract", "Risk"),
    "LandedError": ("landed.core.errors", "LandedError"),
    "ProposalError": ("landed.core.errors", "ProposalError"),
    "UsedBeforeError": ("landed.core.errors", "UsedBeforeError"),
    "ContractError": ("landed.core.errors", "ContractError"),
    "BusyError": ("landed.core.errors", "BusyError"),
    "ForbiddenError": ("landed.core.errors", "ForbiddenError"),
    "StoreError": ("landed.core.errors", "StoreError"),
    "StaleWriteError": ("landed.core.errors", "StaleWriteError"),
    "LeaseLostError": ("landed.core.errors", "LeaseLostError"),
    "NewerSchemaError": ("landed.core.errors", "NewerSchemaError"),
    "RestoredError": ("landed.core.errors", "RestoredError"),
    "WrongLoopError": ("landed.core.errors", "WrongLoopError"),
    "RefusedError": ("landed.core.errors", "RefusedError"),
    "NotSentError": ("landed.core.errors", "NotSentError"),
}

if TYPE_CHECKING:
    from landed.assemble import keep_store as keep
    from landed.assemble import open_runtime as open
    from landed.core.approval import Purpose
    from landed.core.contract import Contract, Effect, Risk
    from landed.core.errors import (
        ApprovalError,
        BusyError,
        ContractError,
        ForbiddenError,
        LandedError,
        LeaseLostError,
        NewerSchemaError,
        NotSentError,
        ProposalError,
        RefusedError,
        RestoredError,
        StaleWriteError,
        StoreError,
        UsedBeforeError,
        WrongLoopError,
    )
    from landed.core.history import View
    from landed.core.key import Ask
    from landed.core.outcome import Absent, Acknowledged, Found, NoAnswer, NotYet
    from landed.core.plan import PlanState, Wanted
    from landed.core.preview import Preview, Previewing, Similar, typed_count
    from landed.core.report import Report
    from landed.core.tool import Call
    from landed.core.value import (
        Accepted,
        Answered,
        Assumed,
        Blocked,
        Confirmed,
        Failed,
        Offer,
        PlanValue,
        StepValue,
        Unanswered,
        Undecided,
        Unknown,
        Value,
        Withdrawn,
    )
    from landed.runtime.acting import ModelTools
    from landed.runtime.keeping import Retention
    from landed.runtime.opened import Settings
    from landed.runtime.permissions import Permissions, Permit
    from landed.runtime.runtime import Runtime
    from landed.tools.function import tool

__all__ = [
    "Absent",
    "Accepted",
    "Acknowledged",
    "Answered",
    "ApprovalError",
    "Ask",
    "Assumed",
    "Blocked",
    "BusyError",
    "Call",
    "Confirmed",
    "Contract",
    "ContractError",
    "Effect",
    "Failed",
    "ForbiddenError",
    "Found",
    "LandedError",
    "LeaseLostError",
    "ModelTools",
    "NewerSchemaError",
    "NoAnswer",
    "NotSentError",
    "NotYet",
    "Offer",
    "Permissions",
    "Permit",
    "PlanState",
    "PlanValue",
    "Preview",
    "Previewing",
    "ProposalError",
    "Purpose",
    "RefusedError",
    "Report",
    "RestoredError",
    "Retention",
    "Risk",
    "Runtime",
    "Settings",
    "Similar",
    "StaleWriteError",
    "StepValue",
    "StoreError",
    "Unanswered",
    "Undecided",
    "Unknown",
    "UsedBeforeError",
    "Value",
    "View",
    "Wanted",
    "Withdrawn",
    "WrongLoopError",
    "keep",
    "open",
    "tool",
    "typed_count",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562)."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'landed' has no attribute {name!r}")
    module, there = _PUBLIC[name]
    value: object = getattr(import_module(module), there)
    globals()[name] = value
    return value
