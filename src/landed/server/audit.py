"""The audit of a plan: what was shown, who agreed, what each step came to."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter

from landed.runtime.auditing import Auditor
from landed.server.asking import Asking, Id, plain
from landed.server.problems import documented

router = APIRouter(prefix="/v1/plans", tags=["audit"])


@router.get("/{plan_id}/audit", responses=documented("unauthenticated", "absent"))
async def audit(plan_id: Id, here: Asking) -> dict[str, Any]:
    """Return the audit of a plan, as `landed audit show --json` prints it."""
    held = await here.plan(plain(plan_id))
    auditor = Auditor(reader=here.rt.driver.reader, tenant=here.who.tenant)
    return asdict(await auditor.audit(held.plan, now=here.rt.driver.clock.now()))
