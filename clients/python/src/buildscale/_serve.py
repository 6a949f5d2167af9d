"""A program that serves tools, for threads."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from ._tools import (
    CALL,
    CHAT,
    CHATS,
    CONTENT,
    TAKE,
    Call,
    CodeTool,
    Desk,
    answer,
    failure,
    is_hopeless,
    is_unfit,
    passes,
    rest_s,
    unfit,
)
from ._watch import Connection, OnConnection
from .errors import HubError

if TYPE_CHECKING:
    from .client import Client

OnError = Callable[[Exception], None]
#: Calls that run at the same time, at most.
_WORKERS = 16


class Serving:
    def __init__(self, hub: Client, workspace: str, tools: Mapping[str, CodeTool], on_error: OnError | None) -> None:
        self._hub, self._workspace, self._tools, self._on_error = hub, workspace, tools, on_error
        self._desk = Desk(tools)
        #: Nothing is waited for any more: threads that wait would hold up the end of the program.
        self._over = threading.Event()

    def run(self, on_connection: OnConnection | None) -> None:
        for name, tool in self._tools.items():
            self._declared(name, tool)
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

            try:
                for event in self._hub.watch_workspace(self._workspace, on_connection=told):
                    if event["event"] == "reset":
                        pool.submit(self._tried, partial(self._look_at_all, pool))
                    if event["event"] == "chat_updated" and event["data"].get("handed_out"):
                        chat = event["data"]["chat_id"]
                        pool.submit(self._tried, partial(self._look, pool, chat))
            finally:
                self._over.set()
                pool.shutdown(wait=False, cancel_futures=True)

    def _declared(self, name: str, tool: CodeTool) -> None:
        """The declaration of a tool is there. A hub that is away is waited for, as by the stream."""
        failures = 0
        while True:
            try:
                return self._declare(name, tool)
            except Exception as error:
                if not passes(error) or is_hopeless(failures, error):
                    raise
                self._tell(error)
                self._over.wait(rest_s(failures, error))
                failures += 1

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
            pool.submit(self._serve, call)

    def _serve(self, call: Call) -> None:
        is_ours = call.is_repeatable

        def take() -> None:
            nonlocal is_ours
            is_ours = self._is_taken(call)

        if not is_ours and not self._tried(take):
            self._desk.forget(call)
            return
        if is_ours:
            self._tried(partial(self._answer, call))
        self._desk.end(call)

    def _is_taken(self, call: Call) -> bool:
        """Takes a call; false when another program has it, or when it has ended."""
        try:
            self._hub._json("post", TAKE, body={"program": self._desk.program}, **call.ids(self._workspace))
        except HubError as error:
            if error.code == "CONFLICT":
                return False
            raise
        return True

    def _answer(self, call: Call) -> None:
        ids = call.ids(self._workspace)
        try:
            body = answer(call.tool.run(**call.args))
        except (Exception, SystemExit) as error:
            # `exit` ends the program in its main thread alone. In this one it would leave the call without an answer.
            body = failure(error)
        key, failures, is_replaced = str(uuid.uuid4()), 0, False
        while True:
            try:
                self._hub._json("post", CALL, body=body, idempotency_key=key, **ids)
                return
            except Exception as error:
                # The call was stopped, or its time was up.
                if isinstance(error, HubError) and error.code == "CONFLICT":
                    return
                if passes(error):
                    if self._over.wait(rest_s(failures, error)):
                        return
                    failures += 1
                    continue
                if is_replaced or not is_unfit(error):
                    raise
                self._tell(error)
                body, key, is_replaced = unfit(error), str(uuid.uuid4()), True

    def _tried(self, attempt: Callable[[], None]) -> bool:
        """The stream tells of a call once, so what fails for a while is tried until it works: nothing else would look again. False when it
        did not work."""
        failures = 0
        while True:
            try:
                attempt()
                return True
            except Exception as error:
                if self._over.is_set():
                    return False
                self._tell(error)
                if not passes(error) or is_hopeless(failures, error) or self._over.wait(rest_s(failures, error)):
                    return False
                failures += 1

    def _tell(self, error: Exception) -> None:
        if self._on_error:
            self._on_error(error)
