"""Connections that break at any place, and results that no answer takes: against a hub that says what the test wants."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest

from buildscale import AsyncClient, Client, CodeTool, HubError, Parser
from buildscale._watch import Source, Watch

pytestmark = pytest.mark.anyio
URL = "http://hub.test"
WAITING = {"event": "call_handed_out", "data": {"call_id": "k", "tool": "code__count", "args": {}, "repeatable": False}}


def refusal(code: str, status: int) -> httpx.Response:
    return httpx.Response(status, json={"error": {"code": code, "message": "no"}})


class Refusing:
    """A hub that answers the first look with 503. `told` has the answers to the call."""

    def __init__(self, events: Callable[[], Any], answer: Callable[[], httpx.Response]) -> None:
        self.events, self.answer, self.looks = events, answer, 0
        self.told: list[bytes] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        last = request.url.path.rsplit("/", 1)[-1]
        if last == "events":
            content = self.events()
            return content if isinstance(content, httpx.Response) else httpx.Response(200, content=content)
        if last == "content":
            return refusal("NOT_FOUND", 404) if request.method == "GET" else httpx.Response(200, json={})
        if last == "chats":
            self.looks += 1
            chats = {"chats": [{"chat_id": "c", "waiting_for": [WAITING]}]}
            return refusal("UPSTREAM_UNAVAILABLE", 503) if self.looks == 1 else httpx.Response(200, json=chats)
        if last == "take":
            return httpx.Response(200, json={})
        self.told.append(request.content)
        return self.answer()


def test_the_id_of_a_block_counts_when_the_block_has_ended() -> None:
    parser = Parser()
    assert ([block.id for block in parser.push(b"id: 1\ndata: a\n\nid: 2\ndata: b")], parser.last_id) == (["1"], "1")
    assert ([block.id for block in parser.push(b"\n\nid: 3\n\n")], parser.last_id) == (["2"], "3")


def test_an_event_that_was_cut_off_comes_with_the_next_connection() -> None:
    watch = Watch(Source("w", chat="c"), None, None)
    watch.connect()
    events = watch.received(b"id: 1\nevent: chunk\ndata: {}\n\nid: 2\nevent: chunk\nda")
    assert ([event["id"] for event in events], watch.connect().headers["last-event-id"]) == ([1], "1")


def test_after_a_reset_the_stream_goes_on_after_its_last_event() -> None:
    watch = Watch(Source("w", chat="c"), 99, None)
    watch.connect()
    watch.received(b'id: 4\nevent: reset\ndata: {"reason":"unknown_cursor","after":4}\n\nid: 5\nevent: chunk\ndata: {}\n\n')
    assert watch.connect().headers["last-event-id"] == "5"


async def test_a_task_whose_last_event_is_known_tells_nothing_more() -> None:
    ended = httpx.MockTransport(lambda _: httpx.Response(204))
    assert list(Client(URL, http=httpx.Client(transport=ended)).watch_task("w", "t", after=9)) == []
    async with AsyncClient(URL, http=httpx.AsyncClient(transport=ended)) as hub:
        assert [event async for event in hub.watch_task("w", "t", after=9)] == []


def test_an_address_without_http_is_no_reason_to_wait() -> None:
    with pytest.raises(httpx.UnsupportedProtocol):
        next(Client("hub.test").watch_chat("w", "c"))


def test_a_call_is_looked_for_until_the_hub_answers_and_a_result_that_cannot_be_sent_is_told_as_a_failure() -> None:
    answered, errors = threading.Event(), list[str]()

    def events() -> Iterator[bytes]:
        yield b": hello\n"
        assert answered.wait(30)
        raise KeyboardInterrupt

    def answer() -> httpx.Response:
        answered.set()
        return httpx.Response(200, json={})

    hub = Refusing(events, answer)
    client = Client(URL, patience_s=0, http=httpx.Client(transport=httpx.MockTransport(hub)))
    tools = {"count": CodeTool("Counts.", lambda: object())}
    with pytest.raises(KeyboardInterrupt):
        client.serve_tools("w", tools, on_error=lambda error: errors.append(type(error).__name__))
    assert (hub.looks, errors, len(hub.told)) == (2, ["HubError", "TypeError"], 1)
    assert b"The result cannot be sent: " in hub.told[0]


def test_a_program_that_is_interrupted_ends_although_the_hub_is_away() -> None:
    tried = threading.Event()

    def events() -> Iterator[bytes]:
        yield b": hello\n"
        assert tried.wait(30)
        raise KeyboardInterrupt

    def away() -> httpx.Response:
        tried.set()
        raise httpx.ConnectError("away")

    client = Client(URL, patience_s=0, http=httpx.Client(transport=httpx.MockTransport(Refusing(events, away))))
    with pytest.raises(KeyboardInterrupt):
        client.serve_tools("w", {"count": CodeTool("Counts.", lambda: 7)})


async def test_a_stream_that_is_refused_ends_an_asynchronous_program_with_the_refusal() -> None:
    answered, connections = asyncio.Event(), list[None]()

    async def stream() -> AsyncIterator[bytes]:
        yield b": hello\n"
        await answered.wait()

    def events() -> Any:
        connections.append(None)
        return stream() if len(connections) == 1 else refusal("UNAUTHORIZED", 401)

    def answer() -> httpx.Response:
        answered.set()
        return httpx.Response(200, json={})

    hub = Refusing(events, answer)
    async with AsyncClient(URL, patience_s=0, http=httpx.AsyncClient(transport=httpx.MockTransport(hub))) as client:
        with pytest.raises(HubError, match="UNAUTHORIZED"):
            await client.serve_tools("w", {"count": CodeTool("Counts.", lambda: object())})
    assert (hub.looks, len(hub.told)) == (2, 1)
    assert b"The result cannot be sent: " in hub.told[0]
