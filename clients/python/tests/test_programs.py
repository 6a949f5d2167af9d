"""What a program may do with the clients without a surprise: against a hub that says what the test wants."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

import httpx
import pytest

from buildscale import AsyncClient, Client, CodeTool, HubError

pytestmark = pytest.mark.anyio
URL = "http://hub.test"
CALL = {"event": "call_handed_out", "data": {"call_id": "k", "tool": "code__run", "args": {}, "repeatable": False}}


def refusal(code: str, status: int) -> httpx.Response:
    return httpx.Response(status, json={"error": {"code": code, "message": "no"}})


class Calling:
    """A hub that is away for the first request, and then hands out one call. `told` has the answer to it."""

    def __init__(self, answered: Callable[[], None]) -> None:
        self.answered, self.requests = answered, 0
        self.told: list[bytes] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        last = request.url.path.rsplit("/", 1)[-1]
        if self.requests == 1:
            raise httpx.ConnectError("away")
        if last == "content":
            return refusal("NOT_FOUND", 404) if request.method == "GET" else httpx.Response(200, json={})
        if last == "chats":
            return httpx.Response(200, json={"chats": [{"chat_id": "c", "waiting_for": [CALL]}]})
        if last == "k":
            self.told.append(request.content)
            self.answered()
        return httpx.Response(200, json={})


def test_a_program_that_is_there_before_its_hub_serves_and_one_that_exits_in_a_function_answers_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("buildscale._serve.rest_s", lambda *_: 0.0)
    answered, errors = threading.Event(), list[str]()

    def events() -> Iterator[bytes]:
        yield b": hello\n"
        assert answered.wait(30)
        raise KeyboardInterrupt

    hub = Calling(answered.set)
    transport = httpx.MockTransport(lambda request: httpx.Response(200, content=events()) if request.url.path.endswith("/events") else hub(request))
    client = Client(URL, patience_s=0, http=httpx.Client(transport=transport))
    tools = {"run": CodeTool("Runs.", lambda: sys.exit("wrong arguments"))}
    with pytest.raises(KeyboardInterrupt):
        client.serve_tools("w", tools, on_error=lambda error: errors.append(type(error).__name__))
    assert (errors, hub.told) == (["Unreachable"], [b'{"output": "wrong arguments", "is_error": true}'])


async def test_a_function_that_waited_for_a_cancelled_task_answers_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("buildscale._serve_aio.rest_s", lambda *_: 0.0)
    answered, errors = asyncio.Event(), list[str]()

    async def events() -> AsyncIterator[bytes]:
        yield b": hello\n"
        await answered.wait()

    streams = [httpx.Response(200, content=events())]
    hub = Calling(answered.set)

    def answers(request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/events"):
            return hub(request)
        return streams.pop() if streams else refusal("UNAUTHORIZED", 401)

    async def run() -> None:
        other = asyncio.create_task(asyncio.Event().wait())
        other.cancel()
        await other

    async with AsyncClient(URL, patience_s=0, http=httpx.AsyncClient(transport=httpx.MockTransport(answers))) as client, asyncio.timeout(30):
        with pytest.raises(HubError, match="UNAUTHORIZED"):
            await client.serve_tools("w", {"run": CodeTool("Runs.", run)}, on_error=lambda error: errors.append(type(error).__name__))
    assert (errors, hub.told) == (["Unreachable"], [b'{"output": "CancelledError", "is_error": true}'])


async def test_a_stream_without_an_id_is_an_error_and_not_the_stream_of_the_workspace() -> None:
    none = cast(str, None)
    hub, other = Client(URL), AsyncClient(URL)
    for id in (none, ""):
        for stream in (hub.watch_chat("w", id), hub.watch_task("w", id)):
            with pytest.raises(TypeError, match="needs (chat|task)"):
                next(stream)
        for later in (other.watch_chat("w", id), other.watch_task("w", id)):
            with pytest.raises(TypeError, match="needs (chat|task)"):
                await anext(later)


async def test_a_token_may_end_with_the_line_end_of_its_file_and_a_reader_is_told_of_what_it_has() -> None:
    def answers(request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == "Bearer secret"
        return httpx.Response(304 if "if-none-match" in request.headers else 200)

    route: Any = "/api/v1/workspaces/{workspace_id}/files/by-path/content"
    asked: dict[str, Any] = {"workspace_id": "w", "query": {"path": "/a"}, "headers": {"if-none-match": '"1"'}}
    transport = httpx.MockTransport(answers)
    assert Client(URL, "secret\n", http=httpx.Client(transport=transport)).read(route, **asked).status_code == 304
    async with AsyncClient(URL, lambda: "secret\n", http=httpx.AsyncClient(transport=transport)) as hub:
        assert (await hub.read(route, **asked)).status_code == 304


def test_a_redirect_is_told_as_one() -> None:
    moved = httpx.MockTransport(lambda _: httpx.Response(301, headers={"location": "https://hub.test"}))
    with pytest.raises(HubError, match="give the client the address to which it redirects"):
        Client(URL, patience_s=0, http=httpx.Client(transport=moved)).get("/api/v1/workspaces")
