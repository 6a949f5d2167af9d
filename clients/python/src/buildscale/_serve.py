"""A program that serves tools, for threads."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from ._request import backoff
from ._tools import CALL, CHAT, CHATS, CONTENT, TAKE, Call, CodeTool, Desk, answer, failure
from ._watch import Connection, OnConnection
from .errors import HubError, Unreachable

if TYPE_CHECKING:
    from .client import Client

OnError = Callable[[Exception], None]
#: Calls that run at the same time, at most.
_WORKERS = 16


class Serving:
    def __init__(self, hub: Client, workspace: str, tools: Mapping[str, CodeTool], on_error: OnError | None) -> None:
        self._hub, self._workspace, self._tools, self._on_error = hub, workspace, tools, on_error
        self._desk = Desk(tools)

    def run(self, on_connection: OnConnection | None) -> None:
        for name, tool in self._tools.items():
            self._declare(name, tool)
        is_first = True
        with ThreadPoolExecutor(_WORKERS) as pool:

            def told(connection: Connection) -> None:
                nonlocal is_first
                if on_connection:
                    on_connection(connection)
                # From here on the stream tells of each chat that waits. Those that wait already are on the list.
                if connection.state == "open" and is_first:
                    is_first = False
                    pool.submit(self._tried, partial(self._look_at_all, pool))

            for event in self._hub.watch_workspace(self._workspace, on_connection=told):
                if event["event"] == "reset":
                    pool.submit(self._tried, partial(self._look_at_all, pool))
                if event["event"] == "chat_updated" and event["data"].get("handed_out"):
                    chat = event["data"]["chat_id"]
                    pool.submit(self._tried, partial(self._look, pool, chat))

    def _declare(self, name: str, tool: CodeTool) -> None:
        body, path = tool.declaration(), f"/system/tools/{name}.json"
        try:
            if self._hub.read(CONTENT, workspace_id=self._workspace, query={"path": path}).content == body:
                return
        except HubError as error:
            if error.code != "NOT_FOUND":
                raise
        self._hub.put(CONTENT, workspace_id=self._workspace, query={"path": path}, body=body)

    def _look_at_all(self, pool: ThreadPoolExecutor) -> None:
        for chat in self._hub.all(CHATS, workspace_id=self._workspace, query={"limit": 200}):
            self._take(pool, self._desk.new(chat))

    def _look(self, pool: ThreadPoolExecutor, chat: str) -> None:
        view = self._hub.get(CHAT, workspace_id=self._workspace, chat_id=chat, query={"limit": 1})
        self._take(pool, self._desk.new(view))

    def _take(self, pool: ThreadPoolExecutor, calls: list[Call]) -> None:
        for call in calls:
            pool.submit(self._tried, partial(self._answer, call))

    def _answer(self, call: Call) -> None:
        ids = call.ids(self._workspace)
        if not call.is_repeatable:
            try:
                self._hub._json("post", TAKE, body={"program": self._desk.program}, **ids)
            except (HubError, Unreachable) as error:
                if isinstance(error, HubError) and error.code == "CONFLICT":
                    return
                self._desk.forget(call)
                raise
        try:
            body = answer(call.tool.run(**call.args))
        except Exception as error:
            body = failure(error)
        key, failures = str(uuid.uuid4()), 0
        while True:
            try:
                self._hub._json("post", CALL, body=body, idempotency_key=key, **ids)
                return
            except (HubError, Unreachable) as error:
                # The call was stopped, or its time was up.
                if isinstance(error, HubError) and error.code == "CONFLICT":
                    return
                if isinstance(error, HubError) and not error.is_passing:
                    raise
            time.sleep(backoff(failures, 5.0))
            failures += 1

    def _tried(self, attempt: Callable[[], None]) -> None:
        try:
            attempt()
        except Exception as error:
            if self._on_error:
                self._on_error(error)
