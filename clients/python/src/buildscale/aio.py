"""The client for programs with an event loop: `Client` with `await`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from inspect import isawaitable
from types import TracebackType
from typing import Any, Self, cast

import httpx

from . import _request, _watch
from ._request import Patience, Request
from ._routes import AsyncRoutes, Readable
from ._serve_aio import OnError, Serving
from ._tools import CodeTool
from ._upload import Content, OnProgress, Step, Upload
from ._watch import OnConnection, Source, Watch
from .errors import BROKEN, HubError, Unreachable, refused, whole
from .schema import Change, ChatEvent, TaskEvent, WorkspaceEvent

Token = str | Callable[[], str | None | Awaitable[str | None]] | None


class AsyncClient(AsyncRoutes):
    """Speaks to a hub. Methods take the paths of its OpenAPI document, and their types come from there.

    A request that may be sent twice (each read, each `PUT` without a condition, and each `POST`, since it carries an idempotency key) is repeated for
    `patience_s` seconds while the hub cannot be reached or asks to come back later. `token` is a token or API key, or a function that
    gets one, asked before each request. `http` is a client of httpx with settings of your own.

    Methods raise `HubError` when the hub refuses, and `Unreachable` when no answer comes.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8686",
        token: Token = None,
        *,
        patience_s: float = 10.0,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._patience_s = patience_s
        # Each stream holds a connection: with a bound, requests would wait for one until they fail.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        self._http = http or httpx.AsyncClient(timeout=httpx.Timeout(60, connect=10), limits=limits)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def read(self, route: Readable, /, **request: Any) -> httpx.Response:
        """The answer as it is, for contents that are no JSON. Its status is 304 when a header `if-none-match` names the content."""
        return await self._repeat("get", route, **request)

    def watch_chat(
        self,
        workspace: str,
        chat: str,
        *,
        after: int | None = None,
        on_connection: OnConnection | None = None,
        ticket: bool = False,
    ) -> AsyncGenerator[ChatEvent, None]:
        """The events of a chat, from its log. The iterator reconnects with its cursor until it is left, and gives each event once.

        `after` is the number of the last event that the caller has; 0 for all events. Without it the stream begins with the turn that
        runs. `ticket` opens the stream with a ticket instead of the token. An event named `reset` says that the cursor means nothing
        to the hub: read the chat again. Raises `HubError` when the hub refuses for good, for example because the chat is gone.
        """
        return cast(AsyncGenerator[ChatEvent, None], self._watch(Source(workspace, chat=chat or ""), after, on_connection, ticket))

    def watch_task(
        self,
        workspace: str,
        task: str,
        *,
        after: int | None = None,
        on_connection: OnConnection | None = None,
        ticket: bool = False,
    ) -> AsyncGenerator[TaskEvent, None]:
        """The events of a task, up to its last one. See `watch_chat`."""
        return cast(AsyncGenerator[TaskEvent, None], self._watch(Source(workspace, task=task or ""), after, on_connection, ticket))

    def watch_workspace(
        self,
        workspace: str,
        *,
        after: int | None = None,
        on_connection: OnConnection | None = None,
        ticket: bool = False,
    ) -> AsyncGenerator[WorkspaceEvent, None]:
        """The changes of a workspace: files, chats and tasks. A change may come again after a reconnect. See `watch_chat`."""
        return cast(AsyncGenerator[WorkspaceEvent, None], self._watch(Source(workspace), after, on_connection, ticket))

    async def serve_tools(
        self,
        workspace: str,
        tools: Mapping[str, CodeTool],
        *,
        on_connection: OnConnection | None = None,
        on_error: OnError | None = None,
    ) -> None:
        """Offers functions to the agents of a workspace, as `code__NAME`, and runs their calls until it is cancelled.

        The declarations are files of the workspace in `/system/tools`, and stay when the program goes: calls then wait for the next one.
        `on_error` is told of calls that could not be taken or answered. Raises `HubError` when the hub refuses for good, for example because
        you may not write the declarations.
        """
        await Serving(self, workspace, tools, on_error).run(on_connection)

    async def ticket_url(self, workspace: str, *, chat: str | None = None, task: str | None = None, after: int | None = None) -> str:
        """An address that opens a stream for a minute without a token: for pages, whose `EventSource` cannot send headers. `after` is the
        number of the event after which the stream begins, 0 for all.
        """
        return self.url + await self._ticket_path(Source(workspace, chat, task), after)

    async def upload(self, workspace: str, path: str, content: Content, *, on_progress: OnProgress | None = None) -> Change:
        """Writes the file at a path of the workspace, or its next version. `content` is bytes, the name of a local file, or an open one.

        A long content goes in pieces, at most 5 GB. Parts of 16 MiB that came stay for two days: a call with the same content after a failure sends the
        rest. `on_progress` is told how many bytes have been sent, and how many there are.
        """
        upload = await asyncio.to_thread(Upload, content, on_progress)
        try:
            at: dict[str, Any] = {"workspace_id": workspace, "query": {"path": path}}
            while True:
                transfer = await self._json(
                    "post", "/api/v1/workspaces/{workspace_id}/uploads", more_s=upload.reading_s, workspace_id=workspace, body=upload.wanted
                )
                if transfer.get("request") is None:
                    break
                step = upload.step(transfer)
                await self._transfer(upload, step)
                if not step.is_part:
                    break
            if transfer.get("request") is None and transfer.get("parts") is None:
                change = await self._json("put", "/api/v1/workspaces/{workspace_id}/files/by-path/content", **at, body=upload.whole())
            else:
                change = await self._json("put", "/api/v1/workspaces/{workspace_id}/files/by-path", **at, body={"sha256": upload.sha256})
            upload.done()
            return cast(Change, change)
        finally:
            upload.close()

    async def _transfer(self, upload: Upload, step: Step) -> None:
        url = step.address(self.url)
        patience = Patience(True, self._patience_s)
        while True:
            failed: HubError | Unreachable
            try:
                answer = await self._http.request(step.method, url, headers=step.headers, content=_slices(step))
                if upload.ends_with(step, answer.status_code):
                    return
                failed = refused(answer.status_code, answer.headers.get("retry-after"), answer.content)
            except BROKEN as error:
                failed = Unreachable(self.url)
                failed.__cause__ = error
            await asyncio.sleep(patience.pause_after(failed))

    async def _ticket_path(self, source: Source, after: int | None = None) -> str:
        return str((await self._json("post", "/api/v1/workspaces/{workspace_id}/stream-tickets", **source.ticket(after)))["url"])

    async def _watch(
        self, source: Source, after: int | None, on_connection: OnConnection | None, ticket: bool
    ) -> AsyncGenerator[_watch.Event, None]:
        watch = Watch(source, after, on_connection)
        while True:
            reason: _watch.Reason = "ended"
            try:
                request = watch.connect(await self._ticket_path(source) if ticket else None)
                answer = await self._send(request, anonymous=ticket, stream=True)
                try:
                    if not answer.is_success:
                        raise refused(answer.status_code, answer.headers.get("retry-after"), await answer.aread())
                    # The task has ended, and the caller has its last event.
                    if answer.status_code == 204:
                        return
                    watch.opened(str(answer.url), answer.headers.get("content-type"))
                    async for piece in answer.aiter_bytes():
                        for event in watch.received(piece):
                            yield event
                        if watch.is_over:
                            return
                finally:
                    await answer.aclose()
            except httpx.UnsupportedProtocol:
                raise
            except (HubError, Unreachable) as error:
                reason = error
            except BROKEN as error:
                reason = Unreachable(self.url)
                reason.__cause__ = error
            await asyncio.sleep(watch.lost(reason))

    async def _send(self, request: Request, *, anonymous: bool = False, stream: bool = False, more_s: float = 0.0) -> httpx.Response:
        """One request, sent once, with the token; any answer, which may take `more_s` seconds longer than others."""
        headers = dict(request.headers)
        secret = None if anonymous else self._token() if callable(self._token) else self._token
        if isawaitable(secret):
            secret = await secret
        if secret:
            # A file that has it ends with a line end, which no header may have.
            headers["authorization"] = f"Bearer {secret.strip()}"
        url = self.url + request.path
        built = self._http.build_request(request.method, url, headers=headers, content=request.content)
        if stream:
            built.extensions["timeout"] = httpx.Timeout(_watch.SILENCE_S, connect=10).as_dict()
        elif built.extensions["timeout"]["read"] is not None:
            built.extensions["timeout"]["read"] += more_s
        try:
            return await self._http.send(built, stream=stream)
        except httpx.UnsupportedProtocol:
            raise
        except BROKEN as error:
            raise Unreachable(url) from error

    async def _repeat(self, method: str, route: str, /, more_s: float = 0.0, **arguments: Any) -> httpx.Response:
        request = _request.prepare(method, route, **arguments)
        patience = Patience(request.is_repeatable, self._patience_s)
        while True:
            failed: HubError | Unreachable
            try:
                answer = await self._send(request, more_s=more_s)
                # A reader that has the content by its ETag is told so.
                if answer.is_success or answer.status_code == 304:
                    return answer
                failed = refused(answer.status_code, answer.headers.get("retry-after"), answer.content)
            except Unreachable as error:
                failed = error
            await asyncio.sleep(patience.pause_after(failed))

    async def _json(self, method: str, route: str, /, **request: Any) -> Any:
        answer = await self._repeat(method, route, **request)
        return whole(str(answer.url), answer.status_code, answer.content)

    async def _all(self, route: str, /, **request: Any) -> AsyncIterator[Any]:
        query = dict(request.pop("query", None) or {})
        while True:
            page = await self._json("get", route, query=query, **request)
            for item in next((value for value in page.values() if isinstance(value, list)), []):
                yield item
            if not isinstance(page.get("next_cursor"), str):
                return
            query["cursor"] = page["next_cursor"]


async def _slices(step: Step) -> AsyncIterator[bytes]:
    for piece in step.pieces():
        yield piece
