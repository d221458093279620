"""Who calls: a bearer token stands for a principal of a tenant, in one role.

Several tokens may stand for one principal: an agent's and the person's own. What a plan of theirs
needs a yes for can be agreed to only with the person's. Tokens are configured by their digest, so
that a file that leaks opens nothing:

    [[token]]
    sha256 = "…"            # printf %s "$TOKEN" | sha256sum
    principal = "ana"
    tenant = "acme"
    role = "agent"          # or person, or admin
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from landed.core.errors import LandedError


class Role(StrEnum):
    """What somebody may do: each what the one before it may, and more.

    `agent` previews, proposes, commits, stops; `person` says yes and no; `admin` sees what is not
    theirs, the cases and audits of the tenant, and rules on cases.
    """

    AGENT = "agent"
    PERSON = "person"
    ADMIN = "admin"


RANK = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Somebody, once it is certain who they are."""

    principal: str
    tenant: str = "default"
    role: Role = Role.AGENT

    def may_be(self, role: Role) -> bool:
        """Whether they may do what this role may."""
        return RANK[self.role] >= RANK[role]


class Authenticate(Protocol):
    """Says who a bearer token stands for; an application may bring its own."""

    async def __call__(self, token: str) -> Identity | None:
        """Return who it is, None for a token that stands for nobody (any more)."""
        ...


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid")

    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    principal: str = Field(min_length=1, max_length=200)
    tenant: str = Field(default="default", min_length=1, max_length=200)
    role: Role = Role.AGENT


class _Rows(BaseModel):
    model_config = ConfigDict(extra="forbid")

    token: list[_Row] = []


@dataclass(slots=True, eq=False)
class Tokens:
    """The tokens of a TOML file, read again whenever that has changed: so is one revoked.

    A file that is gone or makes no sense any more lets nobody in. Raises `LandedError` for one that
    made none at the beginning.
    """

    file: Path
    _read_at: tuple[int, int] = (0, 0)
    _known: Mapping[str, Identity] = field(default_factory=dict[str, Identity])

    def __post_init__(self) -> None:
        try:
            self._refresh()
        except (OSError, ValueError) as error:
            raise LandedError(f"the tokens in {self.file} cannot be read: {error}") from error

    async def __call__(self, token: str) -> Identity | None:
        """Return who a token stands for today."""
        try:
            self._refresh()
        except (OSError, ValueError):
            self._known, self._read_at = {}, (0, 0)
        return self._known.get(sha256(token.encode()).hexdigest())

    def _refresh(self) -> None:
        stat = self.file.stat()
        seen = (stat.st_mtime_ns, stat.st_ino)
        if seen != self._read_at:
            rows = _read(self.file.read_text("utf-8"))
            self._known, self._read_at = rows, seen


def _read(text: str) -> dict[str, Identity]:
    try:
        rows = TypeAdapter(_Rows).validate_python(tomllib.loads(text)).token
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {first['msg']}") from None
    return {
        row.sha256: Identity(principal=row.principal, tenant=row.tenant, role=row.role)
        for row in rows
    }
