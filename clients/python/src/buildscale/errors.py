"""The two ways in which a request fails."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any


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

    @property
    def is_passing(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status == 429 or self.status >= 500


class Unreachable(Exception):
    """No answer came: the network, or the hub, is down. `__cause__` has the reason."""

    def __init__(self, url: str) -> None:
        self.url = url
        super().__init__(f"{url} cannot be reached")


def refused(status: int, retry_after: str | None, body: bytes) -> HubError:
    """The error of an answer that is no success. A body that is no envelope comes from something between client and hub."""
    retry_after_s = _seconds(retry_after) if retry_after is not None else None
    try:
        refusal = json.loads(body)["error"]
        if not isinstance(refusal["code"], str):
            raise TypeError
    except (ValueError, KeyError, TypeError):
        refusal = {"code": "NO_ENVELOPE", "message": f"The answer is HTTP {status}, and not from a hub."}
    return HubError(status, refusal, retry_after_s)


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
