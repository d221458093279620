"""The far sides that scenarios act on: small services with a file and faults of their own.

    restaurant   books and cancels tables: keys, lookup, close, fees that can change
    texts        sends texts: no keys, nothing to ask, nothing to take back
    invoicing    drafts, issues, voids, collects and reminds: numbers that are never used twice
    payments     refunds: keys that are forgotten, replicas that lag, answers that mean nothing
    chain        moves amounts by signed, numbered transactions
    cluster      keeps objects with versions, in the manner of Kubernetes
    far_side     what they have in common
    faults       what can go wrong with a request, as values
    transport    a world in the same process, behind an httpx2 client
    serve        a world as a process of its own

Each world is `app(path, clock, faults=(), *, settings=None, sleep=asyncio.sleep)`.
"""
