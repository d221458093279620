"""The tools by which an agent reaches the cluster: by epoch, by version, or with neither."""

from collections.abc import Mapping
from typing import Any

import httpx2

from landed.core.canonical import Json
from landed.core.outcome import Absent, Found, ListedEffect, LookOutcome
from landed.core.preview import Preview, Previewing
from landed.core.tool import Call, Tool
from landed.testing.worlds.cluster import UPDATED_BY
from landed.tools.classify import one_request
from landed.tools.function import tool
from landed.tools.versioned import Layout, VersionedTool

DEADLINE_S = 5.0
ESCALATE_AFTER_S = 60.0
WANTED = "wanted"
"""The object in which people say what is to run; the deployment is what does run."""

SAYS = {
    "en": {
        "confirmed": "{name} was set to {release} at {percent} %",
        "unknown": "{name} may have been set to {release} at {percent} %: {why}",
        "undecided": "{name} may be set to {release} at {percent} % yet, and nobody can tell",
        "failed": "{name} was not set to {release}: {why}",
    }
}


PLAIN: Mapping[str, object] = {
    "effect": "reversible",
    "service": "cluster",
    "target": ("{name}",),
    "raises": one_request,
    "deadline_s": DEADLINE_S,
    "escalate_after_s": ESCALATE_AFTER_S,
    "says": SAYS,
}


class Deployments:
    """The cluster's API, as the functions below use it."""

    def __init__(self, url: str, transport: httpx2.AsyncBaseTransport) -> None:
        self._client = httpx2.AsyncClient(base_url=url, transport=transport, timeout=DEADLINE_S)

    async def set(
        self, name: str, release: str, percent: int, mark: str = "", **headers: str
    ) -> dict[str, Json]:
        """Set what runs, in one request; `mark` is left there where no key leaves one."""
        body: dict[str, Any] = {"spec": {"release": release, "percent": percent}}
        if mark:
            body["metadata"] = {"annotations": {UPDATED_BY: mark}}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        reply = await self._client.patch(f"/objects/{name}", json=body, headers=named)
        return _told(reply.raise_for_status().json())

    async def read(self, name: str) -> dict[str, Json]:
        """Return what an object is now."""
        reply = await self._client.get(f"/objects/{name}")
        return _told(reply.raise_for_status().json())

    async def history(self, name: str) -> list[dict[str, Any]]:
        """Return every version that it had."""
        reply = await self._client.get(f"/objects/{name}/history")
        versions: list[dict[str, Any]] = reply.raise_for_status().json()["versions"]
        return versions

    async def find(self, call: Call) -> LookOutcome:
        """Say whether a version was made by this operation."""
        for version in await self.history(str(call.arguments["name"])):
            if mark_of(version) == call.operation:
                return Found(result=_told(version))
        return Absent()

    async def updates(self, since: float, name: str = "web") -> list[ListedEffect]:
        """Return every update that an operation made from then on."""
        return [
            ListedEffect(
                id=version["metadata"]["resourceVersion"],
                key=mark_of(version),
                result=_told(version),
                says=f"{name} was set to {runs(version)}",
            )
            for version in await self.history(name)
            if mark_of(version) and version["at"] >= since
        ]

    async def figures(self, asked: Previewing) -> Preview:
        """Say what runs and what is wanted now, and what it would be set to."""
        name = str(asked.arguments["name"])
        now, wanted = runs(await self.read(name)), runs(await self.read(WANTED))
        return Preview(
            summary=f"{name} runs {now}, and {wanted} is wanted: set it to {runs(asked.arguments)}",
            basis={"runs": now, "wanted": wanted},
        )


def fenced(
    url: str, transport: httpx2.AsyncBaseTransport, *, deadline_s: float = DEADLINE_S
) -> list[Tool]:
    """Return the tools for a cluster that checks epochs: each update carries that of its claim."""
    cluster = Deployments(url, transport)

    @tool(
        effect="reversible",
        keyed="key",
        compares_payload=True,
        fence="epoch",
        service="cluster",
        target=("{name}",),
        lookup=cluster.find,
        raises=one_request,
        deadline_s=deadline_s,
        says=SAYS,
    )
    async def deploy(
        name: str, release: str, percent: int, key: str, epoch: int
    ) -> dict[str, Json]:
        """Set which release runs, and at how many percent."""
        # A claim's epoch is never 0: whoever hands none on sends none.
        fence = {"X_Epoch": str(epoch)} if epoch else {}
        return await cluster.set(name, release, percent, Idempotency_Key=key, **fence)

    return [deploy]


def versioned(url: str, transport: httpx2.AsyncBaseTransport) -> list[Tool]:
    """Return the tools for a cluster with versions: each update says which one it is based on."""
    return [
        VersionedTool(
            name="deploy",
            effect="reversible",
            url=f"{url}/objects/{{name}}",
            arguments={"name": str, "release": str, "percent": int},
            layout=Layout(mark=UPDATED_BY, if_match=True),
            description="Set which release runs, and at how many percent.",
            transport=transport,
            deadline_s=DEADLINE_S,
            says=SAYS,
        )
    ]


def bare(url: str, transport: httpx2.AsyncBaseTransport) -> list[Tool]:
    """Return the tools for a cluster with neither: whatever arrives last is what runs.

    `read` says what runs, `list_effects` who set it. A correction shows what runs and what is
    wanted *now*, and is not carried out when either has moved by the time somebody agrees.
    """
    cluster = Deployments(url, transport)
    promises: dict[str, Any] = {**PLAIN, "lookup": cluster.find}

    @tool(list_effects=cluster.updates, **promises)
    async def deploy(name: str, release: str, percent: int, call: Call) -> dict[str, Json]:
        """Set which release runs, and at how many percent."""
        return await cluster.set(name, release, percent, call.operation)

    @tool(risk="confirm", preview=cluster.figures, **promises)
    async def correct(name: str, release: str, percent: int, call: Call) -> dict[str, Json]:
        """Set what runs to what is wanted, once a person has agreed."""
        return await cluster.set(name, release, percent, call.operation)

    @tool(effect="none", says={"en": {"answered": "{release} at {percent} %"}})
    async def read(name: str) -> dict[str, Json]:
        """Say what an object is now: what runs, or what is wanted."""
        return await cluster.read(name)

    return [deploy, correct, read]


def runs(what: Mapping[str, Any]) -> str:
    """Return a release and its share in words, of an object, a result or arguments."""
    spec = what.get("spec", what)
    return f"{spec['release']} at {spec['percent']} %"


def mark_of(version: Mapping[str, Any]) -> str:
    """Return the id of the operation that made a version, "" for what was done by hand."""
    mark = str(version["metadata"]["annotations"].get(UPDATED_BY, ""))
    return mark.partition(" ")[0]


def _told(there: Mapping[str, Any]) -> dict[str, Json]:
    spec = there["spec"]
    return {"release": spec["release"], "percent": spec["percent"]}
