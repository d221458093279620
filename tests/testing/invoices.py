"""What the tests of the invoicing service share: the service in this process, and its tools."""

from collections.abc import Mapping
from typing import Any, Self

import httpx2

from landed.core.canonical import Json
from landed.core.key import Ask
from landed.core.outcome import Acknowledged
from landed.core.preview import Preview, Previewing
from landed.core.tool import Call
from landed.testing import invoicing
from landed.testing.worlds import invoicing as service
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.invoicing import Invoicing
from landed.testing.worlds.transport import Witness
from tests.testing.far_sides import FarSide, SetClock, Sleeps

URL = "http://far.test"
TODAY = 1_792_400_400.0  # 2026-10-19, 09:00 in UTC
LOGO: list[Any] = [{"what": "logo", "unit_price": "500.00"}]


class Invoices(FarSide):
    """An invoicing service in this process, with its contacts and its tools."""

    def __init__(
        self,
        *faults: Fault,
        path: str = ":memory:",
        witness: Witness | None = None,
        replaced: Mapping[str, Mapping[str, object]] | None = None,
        **settings: Any,
    ) -> None:
        self.clock, sleeps = SetClock(), Sleeps()
        self.clock.at = TODAY
        kept = Invoicing(**settings)
        own = service.app(path, self.clock, faults, settings=kept, sleep=sleeps)
        super().__init__(own, sleeps, witness=witness, before=None)
        made = invoicing.invoicing_tools(URL, kept, transport=self.transport, replaced=replaced)
        self.tools = {tool.name: tool for tool in made}
        self.made = made
        self.contacts: dict[str, str] = {}
        self._sent = 0

    async def __aenter__(self) -> Self:
        self.contacts = await invoicing.fill(URL, transport=self.transport)
        return self

    async def act(self, path: str, key: str = "", **body: Any) -> httpx2.Response:
        """Send what has an effect, under a key of its own unless one is given."""
        self._sent += 1
        headers = {"Idempotency-Key": key or f"hand:{self._sent}"}
        return await self.client.post(path, json=body, headers=headers)

    async def did(self, path: str, key: str = "", **body: Any) -> Any:
        return (await self.act(path, key, **body)).raise_for_status().json()

    async def draft(self, name: str = "Marta", lines: list[Any] = LOGO) -> Any:
        return await self.did("/drafts", contact=self.contacts[name], lines=lines)

    async def invoice(self, name: str = "Marta", lines: list[Any] = LOGO) -> Any:
        draft = await self.draft(name, lines)
        return await self.did(f"/drafts/{draft['id']}/issue")

    async def record(self, id: str) -> Any:
        return (await self.client.get(f"/records/{id}")).raise_for_status().json()

    async def edit(self, path: str, **facts: Any) -> None:
        (await self.client.patch(path, json=facts)).raise_for_status()

    async def books(self) -> Any:
        return (await self.client.get("/books")).raise_for_status().json()

    def rows(self) -> dict[str, int]:
        """How many rows each table of the service has, the log's and the keys' included."""
        named = self.sql.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        tables = [name for (name,) in named if not name.startswith("sqlite_")]
        count = self.sql.execute
        return {name: count(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}

    def asked(
        self,
        tool: str,
        arguments: Mapping[str, Json],
        *,
        language: str = "en",
        made: Mapping[str, Mapping[str, Json]] | None = None,
    ) -> Previewing:
        return Previewing(
            tool=tool,
            arguments=self.tools[tool].check(arguments),
            ask=Ask(principal="ana"),
            now=self.clock.now(),
            language=language,
            made=made or {},
        )

    async def preview(self, tool: str, arguments: Mapping[str, Json], **how: Any) -> Preview:
        seen = await self.tools[tool].foresight.preview(self.asked(tool, arguments, **how))
        assert isinstance(seen, Preview), seen
        return seen

    async def alike(self, arguments: Mapping[str, Json]) -> list[str]:
        asked = self.asked("create_draft", arguments)
        found = await self.tools["create_draft"].foresight.look_alike(asked)
        assert isinstance(found, tuple), found
        return [one.id for one in found]

    async def send(self, tool: str, arguments: Mapping[str, Json], key: str = "s1:op-a1") -> Any:
        """Send one call through its tool; returns the result."""
        sent = await self.tools[tool].send(self.call(tool, arguments, key))
        assert isinstance(sent, Acknowledged), sent
        return sent.result

    def call(self, tool: str, arguments: Mapping[str, Json], key: str = "s1:op-a1") -> Call:
        now = self.clock.now()
        return Call(
            operation="op-a1",
            tool=tool,
            key=key,
            arguments=self.tools[tool].check(arguments),
            ask=Ask(principal="ana"),
            epoch=1,
            attempt=1,
            sent_at=now,
            deadline_at=now + 5.0,
        )
