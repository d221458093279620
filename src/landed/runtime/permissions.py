"""Who may do what: a small protocol that the application implements, asked each time.

It is asked when a plan is proposed, again before each step is started and before anything is taken
back, because rights are taken away in between. Where nobody answers, the answer is no.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from landed.core.canonical import Json

ANSWER_S = 10.0  # how long an application may think about it


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """What is asked for; `permission` is the contract's word for it, such as `invoice.issue`."""

    permission: str
    principal: str
    tenant: str
    session: str
    tool: str
    arguments: Mapping[str, Json]


class Permissions(Protocol):
    """The application's answer to who may do what."""

    async def allows(self, permit: Permit) -> bool:
        """Return whether it is allowed; what is raised counts as no."""
        ...

    async def administers(self, principal: str, *, tenant: str) -> bool:
        """Return whether somebody may stop what others have started there (an owner, an admin)."""
        ...


class NobodyMay:
    """Where an application gave no permissions: nothing that needs one is allowed."""

    async def allows(self, permit: Permit) -> bool:
        """Return no: fail closed."""
        return False

    async def administers(self, principal: str, *, tenant: str) -> bool:
        """Return no: only who started something may stop it."""
        return False


async def refusal(permissions: Permissions, permit: Permit) -> str:
    """Return why something is not allowed, "" where it is."""
    if not permit.permission:
        return ""
    try:
        async with asyncio.timeout(ANSWER_S):
            allowed = await permissions.allows(permit)
    except TimeoutError:
        return f"whether {permit.permission} is allowed was not answered within {ANSWER_S:g} s"
    except Exception as error:
        return f"whether {permit.permission} is allowed could not be found out: {error}"
    if allowed is True:
        return ""
    return f"{permit.principal or 'nobody'} is not allowed {permit.permission}"


async def is_in_charge(permissions: Permissions, principal: str, *, tenant: str) -> bool:
    """Whether somebody administers a tenant; where nobody can say, they don't."""
    try:
        async with asyncio.timeout(ANSWER_S):
            return await permissions.administers(principal, tenant=tenant) is True
    except Exception:
        return False
