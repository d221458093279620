"""Contracts as values in TOML: what well-known services offer for calls in doubt, and your own.

    from landed import catalogue

    entry = catalogue.contract("stripe.refund")
    refund = HttpTool(name="refund", url=…, **entry.promises)

`contracts` and `contract` read the files that come with the library, `from_toml` one of yours; the
schema is the same. Each fact names the page it comes from and the day it was read there; what
nobody could verify is listed in `Entry.unverified`. A field that a file does not state keeps its
default, which promises nothing.
"""

from landed.catalogue.entry import Entry, Fact
from landed.catalogue.files import contract, contracts, from_toml

__all__ = ["Entry", "Fact", "contract", "contracts", "from_toml"]
