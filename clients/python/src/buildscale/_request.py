"""Requests as values, and when to send one again: what both clients share, without I/O."""

from __future__ import annotations

import json
import random
import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from .errors import NOT_SENT, HubError, Unreachable


#: A day, in seconds: what the platforms sleep at once is bounded, and a header may name any number.
LONGEST_SLEEP_S = 86_400.0


@dataclass(frozen=True)
class Request:
    """One request: its path with the query, and its body."""

    method: str
    path: str
    headers: dict[str, str]
    content: bytes | None = None

    @property
    def is_repeatable(self) -> bool:
        """Whether it is sent again when it may have begun. A condition holds once: the second `PUT` would be refused for the change of the first."""
        is_conditional = not self.headers.keys().isdisjoint(("if-match", "if-none-match"))
        return self.method in ("get", "post") or (self.method == "put" and not is_conditional)


def prepare(
    method: str,
    route: str,
    *,
    query: Mapping[str, Any] | None = None,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    idempotency_key: str | None = None,
    **path: str | int,
) -> Request:
    """The request to a route; `path` has the values of its parameters. Bytes and texts go as they are, anything else as JSON. A `POST` gets an idempotency key."""
    sent = {"accept": "application/json"} | {name.lower(): value for name, value in (headers or {}).items()}
    content = None
    if body is not None:
        raw = isinstance(body, (bytes, bytearray, memoryview, str))
        sent.setdefault("content-type", "application/octet-stream" if raw else "application/json")
        content = body.encode() if isinstance(body, str) else bytes(body) if raw else json.dumps(body).encode()
    if method == "post":
        sent.setdefault("idempotency-key", idempotency_key or str(uuid.uuid4()))
    return Request(method, address(route, path, query or {}), sent, content)


def address(route: str, path: Mapping[str, str | int], query: Mapping[str, Any]) -> str:
    """A path with its parameters filled in, and the query."""

    def fill(match: re.Match[str]) -> str:
        value = path.get(match[1])
        if value is None or value == "":
            raise TypeError(f"{route} needs {match[1]}")
        if value in (".", ".."):
            # They would lead to another route, however they are encoded.
            raise ValueError(f"{value} is no {match[1]}")
        return quote(str(value), safe="")

    if unknown := path.keys() - re.findall(r"\{(\w+)\}", route):
        raise TypeError(f"{route} has no {sorted(unknown)[0]}")
    pairs = []
    for name, value in query.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is not None:
                pairs.append((name, str(one).lower() if isinstance(one, bool) else str(one)))
    filled = re.sub(r"\{(\w+)\}", fill, route)
    return f"{filled}?{urlencode(pairs)}" if pairs else filled


class Patience:
    """Decides after each failure of one request whether it is sent again, and when."""

    def __init__(self, is_repeatable: bool, patience_s: float) -> None:
        self._is_repeatable = is_repeatable
        self._give_up = time.monotonic() + patience_s
        self._failures = 0

    def pause_after(self, failed: HubError | Unreachable) -> float:
        """The seconds to wait before the next attempt. Raises `failed` when there is none."""
        asked = failed.retry_after_s if isinstance(failed, HubError) else None
        wait = max(backoff(self._failures, 1.0), asked or 0.0)
        self._failures += 1
        if not _is_worth_it(self._is_repeatable, failed) or time.monotonic() + wait > self._give_up:
            raise failed
        return wait


def _is_worth_it(is_repeatable: bool, failed: HubError | Unreachable) -> bool:
    # One that was put off by a limit, or that no connection took, did not begin.
    if failed.status == 429 if isinstance(failed, HubError) else isinstance(failed.__cause__, NOT_SENT):
        return True
    return is_repeatable and (isinstance(failed, Unreachable) or failed.status in (502, 503, 504))


def backoff(failures: int, longest: float) -> float:
    """The pause before attempt `failures` + 1, in seconds: it doubles up to `longest`, and half of it is chance, so that clients do not
    come back at once."""
    full = min(0.1 * 2.0 ** min(failures, 20), longest)
    return full / 2 + full / 2 * random.random()
