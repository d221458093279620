"""The cookie of the console: who signed in, sealed, so that a process with the same secret knows.

It holds the bearer token itself, encrypted and authenticated (Fernet), so that who somebody is can
be asked anew at each request: a token that was revoked is out at once. Beside it stands the value
that each form has to bring back (against CSRF). Nothing is kept on the server.
"""

import hmac
import json
import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field

from cryptography.fernet import Fernet, InvalidToken

LIFETIME_S = 12 * 3600  # how long a sign-in is good for
TOKEN_MAX = 2000  # characters of a token that a browser takes in a cookie, once it is sealed
SECRET_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a cookie holds; `owner` where no token stands for them but the start-up link."""

    token: str = field(repr=False)
    csrf: str = field(repr=False)
    owner: bool = False


@dataclass(slots=True, eq=False)
class Seal:
    """Seals and opens cookies with a key that is derived from `secret` for this alone."""

    secret: bytes = field(repr=False)
    _fernet: Fernet = field(init=False, repr=False)

    def __post_init__(self) -> None:
        extracted = hmac.digest(b"landed", self.secret, "sha256")
        key = hmac.digest(extracted, b"landed/console/1\x01", "sha256")
        self._fernet = Fernet(urlsafe_b64encode(key))

    def shut(self, kept: Kept, *, now: float) -> str:
        """Return what the cookie is; `now` is UTC, seconds since the epoch."""
        plain = json.dumps([kept.token, kept.csrf, kept.owner]).encode()
        return self._fernet.encrypt_at_time(plain, int(now)).decode()

    def open(self, cookie: str, *, now: float) -> Kept | None:
        """Return what a cookie holds, None for one that is not ours, altered or too old."""
        try:
            plain = self._fernet.decrypt_at_time(cookie.encode(), LIFETIME_S, int(now))
        except (InvalidToken, ValueError):
            return None
        token, csrf, owner = json.loads(plain)
        return Kept(token=token, csrf=csrf, owner=owner)


@dataclass(slots=True, eq=False)
class Link:
    """The key in the link that is printed at the start; it lets somebody in once."""

    key: str = field(default_factory=lambda: secrets.token_urlsafe(SECRET_BYTES), repr=False)
    _is_used: bool = False

    def take(self, given: str) -> bool:
        """Whether this is the key, and the first time that it comes."""
        is_it = not self._is_used and hmac.compare_digest(given.encode(), self.key.encode())
        self._is_used = self._is_used or is_it
        return is_it


def new_csrf() -> str:
    """Return a value that nobody can guess, for the forms of one sign-in."""
    return secrets.token_urlsafe(SECRET_BYTES)
