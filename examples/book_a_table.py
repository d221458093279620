"""Book one table, although the restaurant's reply gets lost: run it, then read it from below.

python examples/book_a_table.py
"""

import asyncio

import landed


class Restaurant:
    """A service of somebody else's, played here: it remembers keys, and loses its first reply."""

    def __init__(self) -> None:
        self.tables: dict[str, str] = {}
        self.loses_a_reply = True

    async def book(self, key: str, day: str, people: int) -> str:
        """Book a table, once for each key."""
        table = self.tables.setdefault(key, f"{day}, a table for {people}")
        if self.loses_a_reply:
            self.loses_a_reply = False
            raise ConnectionResetError("connection reset by peer")  # The table is booked!
        return table


restaurant = Restaurant()


async def look_up(call: landed.Call) -> landed.Found | landed.Absent:
    """Did it land? The runtime asks; the model never has to guess."""
    if call.key in restaurant.tables:
        return landed.Found(result=restaurant.tables[call.key])
    return landed.Absent()


@landed.tool(effect="reversible", keyed="key", compares_payload=True, lookup=look_up)
async def book_table(day: str, people: int, key: str) -> str:
    """Book a table. The runtime fills in `key`; a model sees only `day` and `people`."""
    return await restaurant.book(key, day, people)


async def main() -> None:
    """Hear the user's words, book what the model asked for, and tell what became of it."""
    async with landed.open("sqlite:///book_a_table.db", tools=[book_table]) as rt:
        turn = await rt.receive("A table for four on Friday, please.", delivery="message-17")
        wanted = {"day": "Friday", "people": 4}
        match await rt.perform(book_table, wanted, ask=turn.ask("call-1")):
            case landed.Confirmed(result=table):
                print("booked:", table)
            case landed.Failed(reason=why):
                print("certainly not booked:", why)
            case in_doubt:
                print("perhaps booked, being found out:", in_doubt.text)
        print("the user is told:", (await rt.report(turn.turn)).text)
    print("the restaurant holds:", list(restaurant.tables.values()))


if __name__ == "__main__":
    asyncio.run(main())
