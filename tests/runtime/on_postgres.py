"""Rigs that stand on Postgres: each gets an empty database, for as long as its world goes on."""

from contextlib import ExitStack
from functools import partial

from landed.stores.postgres import open_postgres
from landed.testing.inline import Base, inline
from landed.testing.sim import World
from tests.stores.postgres.embedded import Server


class Bases:
    """The stores of the rigs of one test; those of worlds that are over are used again."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._standing: list[tuple[World, ExitStack]] = []

    def __enter__(self) -> "Bases":
        return self

    def __exit__(self, *_: object) -> None:
        self._let_go(lambda world: True)

    def new(self, world: World) -> Base:
        """Open an empty store for a rig in this world."""
        self._let_go(lambda one: one.loop.is_closed())
        stack = ExitStack()
        self._standing.append((world, stack))
        url = self._server.database()
        stack.callback(self._server.give_back, url)
        return stack.enter_context(inline(partial(open_postgres, url)))

    def _let_go(self, is_over) -> None:
        for world, stack in self._standing:
            if is_over(world):
                stack.close()
        self._standing = [one for one in self._standing if not is_over(one[0])]
