"""A program that serves tools, for event loops: `_serve` with `await`."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import partial
from inspect import isawaitable
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
    from .aio import AsyncClient

OnError = Callable[[Exception], None]


class Serving:
    def __init__(self, hub: AsyncClient, workspace: str, tools: Mapping[str, CodeTool], on_error: OnError | None) -> None:
        self._hub, self._workspace, self._tools, self._on_error = hub, workspace, tools, on_error
        self._desk = Desk(tools)

    async def run(self, on_connection: OnConnection | None) -> None:
        for name, tool in self._tools.items():
            await self._declared(name, tool)
        is_first = True
        try:
            async with asyncio.TaskGroup() as group:

                def told(connection: Connection) -> None:
                    nonlocal is_first
                    if on_connection:
                        on_connection(connection)
                    # From here on the stream tells of each chat that waits. Those that wait already are on the list.
                    if connection.state == "open" and is_first:
                        is_first = False
                        group.create_task(self._tried(partial(self._look_at_all, group)))

                async with aclosing(self._hub.watch_workspace(self._workspace, on_connection=told)) as events:
                    async for event in events:
                        if event["event"] == "reset":
                            group.create_task(self._tried(partial(self._look_at_all, group)))
                        if event["event"] == "chat_updated" and event["data"].get("handed_out"):
                            group.create_task(self._tried(partial(self._look, group, event["data"]["chat_id"])))
        except ExceptionGroup as several:
            # Failures of calls go to `on_error`, so this is the refusal of the stream.
            raise several.exceptions[0] from None

    async def _declared(self, name: str, tool: CodeTool) -> None:
        """The declaration of a tool is there. A hub that is away is waited for, as by the stream."""
        failures = 0
        while True:
            try:
                return await self._declare(name, tool)
            except Exception as error:
                if not passes(error) or is_hopeless(failures, error):
                    raise
                self._tell(error)
                await asyncio.sleep(rest_s(failures, error))
                failures += 1

    async def _declare(self, name: str, tool: CodeTool) -> None:
        body, path = tool.declaration(), f"/system/tools/{name}.json"
        try:
            kept = await self._hub.read(CONTENT, workspace_id=self._workspace, query={"path": path})
            if kept.content == body:
                return
        except HubError as error:
            if error.code != "NOT_FOUND":
                raise
        await self._hub.put(CONTENT, workspace_id=self._workspace, query={"path": path}, body=body)

    async def _look_at_all(self, group: asyncio.TaskGroup) -> None:
        async for chat in self._hub.all(CHATS, workspace_id=self._workspace, query={"limit": 200}):
            self._take(group, self._desk.new(chat))

    async def _look(self, group: asyncio.TaskGroup, chat: str) -> None:
        view = await self._hub.get(CHAT, workspace_id=self._workspace, chat_id=chat, query={"limit": 1})
        self._take(group, self._desk.new(view))

    def _take(self, group: asyncio.TaskGroup, calls: list[Call]) -> None:
        for call in calls:
            group.create_task(self._serve(call))

    async def _serve(self, call: Call) -> None:
        is_ours = call.is_repeatable

        async def take() -> None:
            nonlocal is_ours
            is_ours = await self._is_taken(call)

        if not is_ours and not await self._tried(take):
            self._desk.forget(call)
            return
        if is_ours:
            await self._tried(partial(self._answer, call))
        self._desk.end(call)

    async def _is_taken(self, call: Call) -> bool:
        """Takes a call; false when another program has it, or when it has ended."""
        try:
            await self._hub._json("post", TAKE, body={"program": self._desk.program}, **call.ids(self._workspace))
        except HubError as error:
            if error.code == "CONFLICT":
                return False
            raise
        return True

    async def _answer(self, call: Call) -> None:
        ids = call.ids(self._workspace)
        try:
            output = call.tool.run(**call.args)
            body = answer(await output if isawaitable(output) else output)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # It is of a task for which the function waited.
            body = failure(error)
        except Exception as error:
            body = failure(error)
        key, failures, is_replaced = str(uuid.uuid4()), 0, False
        while True:
            try:
                await self._hub._json("post", CALL, body=body, idempotency_key=key, **ids)
                return
            except Exception as error:
                # The call was stopped, or its time was up.
                if isinstance(error, HubError) and error.code == "CONFLICT":
                    return
                if passes(error):
                    await asyncio.sleep(rest_s(failures, error))
                    failures += 1
                    continue
                if is_replaced or not is_unfit(error):
                    raise
                self._tell(error)
                body, key, is_replaced = unfit(error), str(uuid.uuid4()), True

    async def _tried(self, attempt: Callable[[], Awaitable[None]]) -> bool:
        """The stream tells of a call once, so what fails for a while is tried until it works: nothing else would look again. False when it
        did not work."""
        failures = 0
        while True:
            try:
                await attempt()
                return True
            except Exception as error:
                self._tell(error)
                if not passes(error) or is_hopeless(failures, error):
                    return False
                await asyncio.sleep(rest_s(failures, error))
                failures += 1

    def _tell(self, error: Exception) -> None:
        if self._on_error:
            self._on_error(error)
