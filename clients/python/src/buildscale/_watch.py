"""An event stream over all of its connections, without I/O: the cursor, and when to connect again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ._request import Request, address, backoff
from .errors import HubError, Unreachable
from .sse import Parser

#: The hub sends a comment every 15 s. A connection that is silent for longer than this is dead.
SILENCE_S = 40.0
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
        if self.chat:
            place, ids["chat"] = "/chats/{chat}", self.chat
        elif self.task:
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
        self._parser = Parser()
        self._told = on_connection or (lambda _: None)

    def connect(self, path: str | None = None) -> Request:
        """The request that opens the stream after the last event; `path` has a ticket in it."""
        self._parser = Parser()
        headers = {"accept": "text/event-stream", "cache-control": "no-store"}
        if self._cursor is not None:
            headers["last-event-id"] = self._cursor
        self._told(Connection("connecting"))
        return Request("get", path or self.source.path, headers)

    def opened(self) -> None:
        self._told(Connection("open"))

    def received(self, piece: bytes) -> list[Event]:
        """The events that end in this piece."""
        self._failures = 0
        events: list[Event] = []
        for block in self._parser.push(piece):
            event: Event = {"id": int(block.id) if block.id.isdecimal() else 0, "event": block.event, "data": _data(block.data)}
            events.append(event)
            self.is_over = self.is_over or (self.source.task is not None and block.event in _LAST_OF_TASK)
        # The id of a reset is the number after which the stream goes on.
        if self._parser.last_id:
            self._cursor = self._parser.last_id
        return events

    def lost(self, reason: Reason) -> float:
        """The seconds to wait before the next connection. Raises a refusal that stays."""
        if isinstance(reason, HubError) and not reason.is_passing:
            raise reason
        asked = reason.retry_after_s if isinstance(reason, HubError) else None
        # A stream that ended by itself (each does after 15 minutes) is opened again at once, the first time.
        if reason == "ended" and self._failures == 0:
            wait = 0.0
        else:
            wait = max(backoff(self._failures, _LONGEST_PAUSE_S), asked or 0.0)
        self._failures += 1
        self._told(Connection("waiting", reason, wait))
        return wait


def _data(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
