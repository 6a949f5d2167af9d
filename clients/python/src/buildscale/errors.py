"""The two ways in which a request fails."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

#: The failures of httpx after which there is no whole answer.
BROKEN = (httpx.TransportError, httpx.DecodingError)
#: Those before anything was sent.
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout)


class HubError(Exception):
    """The hub answered, and refused.

    `code` is stable, for programs (`NOT_FOUND`, `STALE_VERSION`, …); `hint` is the remedy, for people; `status` is that of HTTP.
    """

    def __init__(self, status: int, refusal: dict[str, Any], retry_after_s: float | None = None) -> None:
        self.status = status
        self.code: str = refusal["code"]
        self.message: str = refusal.get("message", "")
        self.hint: str | None = refusal.get("hint")
        self.details: Any = refusal.get("details")
        self.request_id: str | None = refusal.get("request_id")
        #: The time to wait before the same request, in seconds, where the hub names one.
        self.retry_after_s = retry_after_s
        super().__init__(f"{self.code}: {self.message}" + (f" ({self.hint})" if self.hint else ""))

    def __reduce__(self) -> tuple[Any, ...]:
        # An error of a pool of processes is pickled, and the message alone does not make another one.
        names = ("code", "message", "hint", "details", "request_id")
        return type(self), (self.status, {name: getattr(self, name) for name in names}, self.retry_after_s)

    @property
    def is_passing(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status == 429 or self.status >= 500


class Unreachable(Exception):
    """No answer came: the network, or the hub, is down. `__cause__` has the reason."""

    def __init__(self, url: str) -> None:
        #: The address without its query, in which a ticket or a signature may be.
        self.url = url.partition("?")[0]
        super().__init__(f"{self.url} cannot be reached")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.url,)


def refused(status: int, retry_after: str | None, body: bytes) -> HubError:
    """The error of an answer that is no success. A body that is no envelope comes from something between client and hub."""
    retry_after_s = _seconds(retry_after) if retry_after is not None else None
    try:
        refusal = json.loads(body)["error"]
        if not isinstance(refusal["code"], str):
            raise TypeError
    except (ValueError, KeyError, TypeError):
        hint = ": give the client the address to which it redirects" if status < 400 else ""
        refusal = {"code": "NO_ENVELOPE", "message": f"The answer is HTTP {status}, and not from a hub{hint}."}
    return HubError(status, refusal, retry_after_s)


def whole(url: str, status: int, body: bytes) -> Any:
    """The JSON of an answer that is a success, none where it is empty. Anything else comes from something between client and hub, such as the page of a network
    that asks to sign in."""
    if not body:
        return None
    try:
        found = json.loads(body)
    except ValueError:
        place = url.partition("?")[0]
        raise HubError(status, {"code": "NO_JSON", "message": f"The answer of {place} is no JSON, and not from a hub."}) from None
    # A refusal that comes after a long answer has begun has the status of a success.
    if isinstance(found, dict) and found.keys() == {"error"} and isinstance(found["error"], dict) and "code" in found["error"]:
        raise refused(status, None, body)
    return found


def _seconds(retry_after: str) -> float | None:
    """The header `Retry-After`, seconds or a date (RFC 9110, section 10.2.3), in seconds from now."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    # A date without a zone is in UTC, as all of HTTP.
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
