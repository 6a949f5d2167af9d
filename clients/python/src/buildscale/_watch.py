"""An event stream over all of its connections, without I/O: the cursor, and when to connect again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ._request import LONGEST_SLEEP_S, Request, address, backoff
from .errors import HubError, Unreachable
from .sse import Parser

#: The hub sends a comment every 15 s. A connection that is silent for longer than this is dead.
SILENCE_S = 40.0
#: The longest pause before the next connection, beside the time that the hub asks for.
_LONGEST_PAUSE_S = 5.0
_LAST_OF_TASK = ("done", "stopped", "went_up")

Event = dict[str, Any]
#: The reason why a stream waits.
Reason = HubError | Unreachable | Literal["ended"]


@dataclass(frozen=True)
class Connection:
    """The state of the connection of a stream. `reason` and `retry_in_s` belong to `waiting`."""

    state: Literal["connecting", "open", "waiting"]
    reason: Reason | None = None
    retry_in_s: float | None = None


OnConnection = Callable[[Connection], None]


@dataclass(frozen=True)
class Source:
    """The stream to watch: that of a chat or of a task; without either, the changes of a workspace."""

    workspace: str
    chat: str | None = None
    task: str | None = None

    @property
    def path(self) -> str:
        place, ids = "", {"workspace": self.workspace}
        if self.chat is not None:
            place, ids["chat"] = "/chats/{chat}", self.chat
        elif self.task is not None:
            place, ids["task"] = "/tasks/{task}", self.task
        return address(f"/api/v1/workspaces/{{workspace}}{place}/events", ids, {})

    def ticket(self, after: int | None) -> dict[str, Any]:
        """The arguments of the request for a ticket whose address begins after the event with this number."""
        body = {"chat_id": self.chat, "task_id": self.task, "after": after}
        return {"workspace_id": self.workspace, "body": {name: it for name, it in body.items() if it is not None}}


class Watch:
    """The course of one stream: `connect`, then `received` for each piece, then `lost`; and again."""

    def __init__(self, source: Source, after: int | None, on_connection: OnConnection | None) -> None:
        self.source = source
        self.is_over = False
        self._cursor = None if after is None else str(after)
        self._failures = 0
        # The reconnection time of the standard: it holds until the hub names another one.
        self._retry_s = 0.0
        self._is_by_ticket = self._was_expired = False
        self._parser = Parser()
        self._told = on_connection or (lambda _: None)

    def connect(self, path: str | None = None) -> Request:
        """The request that opens the stream after the last event; `path` has a ticket in it."""
        self._parser = Parser()
        self._is_by_ticket = path is not None
        headers = {"accept": "text/event-stream", "cache-control": "no-store"}
        if self._cursor is not None:
            headers["last-event-id"] = self._cursor
        self._told(Connection("connecting"))
        return Request("get", path or self.source.path, headers)

    def opened(self, url: str, kind: str | None) -> None:
        """The answer is a success, of this content type. Raises `Unreachable` when it is no event stream, such as the login of a network."""
        if kind is not None and not kind.startswith("text/event-stream"):
            raise Unreachable(url) from TypeError(f"the answer is {kind}, and no event stream")
        self._was_expired = False
        self._told(Connection("open"))

    def received(self, piece: bytes) -> list[Event]:
        """The events that end in this piece."""
        self._failures = 0
        events: list[Event] = []
        blocks = self._parser.push(piece)
        if self._parser.retry_ms is not None:
            self._retry_s = self._parser.retry_ms / 1000
        for block in blocks:
            event: Event = {"id": int(block.id) if block.id.isdecimal() else 0, "event": block.event, "data": _data(block.data)}
            events.append(event)
            self.is_over = self.is_over or (self.source.task is not None and block.event in _LAST_OF_TASK)
        # The id of a reset is the number after which the stream goes on.
        if self._parser.last_id:
            self._cursor = self._parser.last_id
        return events

    def lost(self, reason: Reason) -> float:
        """The seconds to wait before the next connection. Raises a refusal that stays."""
        is_by_ticket, self._is_by_ticket = self._is_by_ticket, False
        if isinstance(reason, HubError) and not reason.is_passing:
            # A ticket may expire on its way, as when the machine slept; the next one is fresh.
            if not is_by_ticket or reason.status != 401 or self._was_expired:
                raise reason
            self._was_expired = True
            return 0.0
        asked = reason.retry_after_s if isinstance(reason, HubError) else None
        # The rest is in part chance, so that streams that ended together do not come back together.
        wait = min(max(asked or 0.0, self._retry_s), LONGEST_SLEEP_S) + backoff(self._failures, _LONGEST_PAUSE_S)
        self._failures += 1
        self._told(Connection("waiting", reason, wait))
        return wait


def _data(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
