"""Connections that break at any place, and results that no answer takes: against a hub that says what the test wants."""

from __future__ import annotations

import asyncio
import io
import pickle
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import IO, Any, cast

import httpx
import pytest

from buildscale import AsyncClient, Client, CodeTool, Connection, HubError, Parser, Unreachable
from buildscale._tools import Call, Desk
from buildscale._watch import Source, Watch
from buildscale.errors import refused

pytestmark = pytest.mark.anyio
URL = "http://hub.test"
WAITING: dict[str, Any] = {"event": "call_handed_out", "data": {"call_id": "k", "tool": "code__count", "args": {}, "repeatable": False}}


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


class Faulty:
    """A hub that answers the first six requests for a call with 500. The stream tells of the call again, when `told` says so."""

    def __init__(self) -> None:
        self.takes = self.errors = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        last = request.url.path.rsplit("/", 1)[-1]
        if last == "content":
            return refusal("NOT_FOUND", 404) if request.method == "GET" else httpx.Response(200, json={})
        if last == "chats":
            return httpx.Response(200, json={"chats": []})
        if last == "c":
            return httpx.Response(200, json={"chat_id": "c", "waiting_for": [WAITING]})
        self.takes += 1
        return refusal("INTERNAL", 500) if self.takes <= 6 else httpx.Response(200, json={})


TOLD = b'id: 1\nevent: chat_updated\ndata: {"chat_id":"c","handed_out":true}\n\n'


def test_a_call_that_the_hub_could_not_give_for_long_is_tried_again_when_it_is_told_of_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("buildscale._serve.rest_s", lambda *_: 0.0)
    hub, given_up, ran = Faulty(), threading.Event(), threading.Event()
    forget = Desk.forget

    def forgotten(desk: Desk, call: Call) -> None:
        forget(desk, call)
        given_up.set()

    monkeypatch.setattr(Desk, "forget", forgotten)

    def events() -> Iterator[bytes]:
        yield TOLD
        assert given_up.wait(30)
        yield TOLD
        assert ran.wait(30)
        raise KeyboardInterrupt

    def answers(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=events()) if request.url.path.endswith("/events") else hub(request)

    client = Client(URL, patience_s=0, http=httpx.Client(transport=httpx.MockTransport(answers)))
    with pytest.raises(KeyboardInterrupt):
        client.serve_tools("w", {"count": CodeTool("Counts.", ran.set)})
    assert hub.takes >= 7


async def test_an_asynchronous_program_tries_it_again_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("buildscale._serve_aio.rest_s", lambda *_: 0.0)
    hub, given_up, ran = Faulty(), asyncio.Event(), asyncio.Event()
    forget = Desk.forget

    def forgotten(desk: Desk, call: Call) -> None:
        forget(desk, call)
        given_up.set()

    monkeypatch.setattr(Desk, "forget", forgotten)

    async def events() -> AsyncIterator[bytes]:
        yield TOLD
        await given_up.wait()
        yield TOLD
        await ran.wait()

    connections = list[None]()

    def answers(request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/events"):
            return hub(request)
        connections.append(None)
        return httpx.Response(200, content=events()) if len(connections) == 1 else refusal("UNAUTHORIZED", 401)

    async with AsyncClient(URL, patience_s=0, http=httpx.AsyncClient(transport=httpx.MockTransport(answers))) as client:
        with pytest.raises(HubError, match="UNAUTHORIZED"):
            await client.serve_tools("w", {"count": CodeTool("Counts.", ran.set)})
    assert ran.is_set()


def test_two_looks_at_once_begin_a_call_once() -> None:
    class Watched(set[str]):
        def __contains__(self, key: object) -> bool:
            assert desk._lock.locked(), "another look may come between the question and the note"
            return super().__contains__(key)

    desk = Desk({"count": CodeTool("Counts.", lambda: 7)}, _begun=Watched())
    chat = {"chat_id": "c", "waiting_for": [WAITING]}
    assert [len(desk.new(chat)), len(desk.new(chat))] == [1, 0]


def test_a_program_forgets_calls_that_ended_long_ago_and_none_that_runs() -> None:
    desk = Desk({"count": CodeTool("Counts.", lambda: 7)})

    def new(call: str) -> list[Call]:
        return desk.new({"chat_id": "c", "waiting_for": [{"event": "call_handed_out", "data": {**WAITING["data"], "call_id": call}}]})

    assert new("runs")
    for number in range(1_001):
        desk.end(new(f"k{number}")[0])
    assert [len(new(call)) for call in ("runs", "k1000", "k1", "k0")] == [0, 0, 0, 1]


def test_a_stream_comes_back_after_the_time_that_the_hub_names_and_keeps_it_until_it_names_another() -> None:
    watch = Watch(Source("w", chat="c"), None, None)
    watch.connect()
    watch.received(b"id: 1\nevent: cursor\nretry: 2000\n\nretry: 700\n")
    waits = [watch.lost("ended")]
    watch.connect()
    waits += [watch.lost(Unreachable(URL)), watch.lost(refused(429, "9", b""))]
    least = [0.7, 0.7, 9.0]
    assert all(low <= wait < low + 0.5 for wait, low in zip(waits, least, strict=True)), waits


def test_a_time_to_come_back_is_seconds_or_a_date_and_has_an_end() -> None:
    def asked(header: str) -> float | None:
        return refused(429, header, b"").retry_after_s

    in_an_hour = asked(format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True))
    assert in_an_hour is not None and 3_500 < in_an_hour <= 3_600
    past = asked("Thu, 01 Jan 1970 00:00:00 GMT")
    assert (asked("7"), past, asked("soon"), asked(""), asked("inf"), asked("nan")) == (7.0, 0.0, None, None, None, None)
    watch = Watch(Source("w"), None, None)
    assert watch.lost(refused(429, "9" * 40, b"")) < 86_401


def test_a_ticket_that_has_expired_on_its_way_is_asked_for_once_more() -> None:
    for refusals, expected in ((1, (2, [1])), (9, (2, "UNAUTHORIZED"))):
        tickets, opened = list[None](), list[None]()

        def answers(request: httpx.Request, tickets: list[None] = tickets, opened: list[None] = opened, refusals: int = refusals) -> httpx.Response:
            if request.method == "POST":
                tickets.append(None)
                return httpx.Response(201, json={"url": f"/api/v1/workspaces/w/events?ticket={len(tickets)}"})
            opened.append(None)
            if len(opened) <= refusals:
                return refusal("UNAUTHORIZED", 401)
            return httpx.Response(200, content=b"id: 1\nevent: chunk\ndata: {}\n\n")

        events = Client(URL, patience_s=0, http=httpx.Client(transport=httpx.MockTransport(answers))).watch_chat("w", "c", ticket=True)
        told: Any
        try:
            told = [next(events)["id"]]
        except HubError as error:
            told = error.code
        assert (len(tickets), told) == expected


def test_a_line_ends_at_each_of_the_line_ends_wherever_its_bytes_are_cut() -> None:
    for end in (b"\n", b"\r\n", b"\r"):
        for size in range(1, 20):
            sent, parser = end.join([b"id: 1", b"data: a", b"", b"data: b", b"", b""]), Parser()
            blocks = [block for at in range(0, len(sent), size) for block in parser.push(sent[at : at + size])]
            assert [block.data for block in blocks] == ["a", "b"], (end, size)


def test_an_answer_that_is_no_json_is_an_error_of_the_client_with_the_address_alone() -> None:
    def answers(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, html="<p>Sign in to this network</p>")

    hub = Client(URL, patience_s=0, http=httpx.Client(transport=httpx.MockTransport(answers)))
    with pytest.raises(HubError) as raised:
        hub.get("/api/v1/workspaces", query={"cursor": "secret"})
    assert (raised.value.code, raised.value.status) == ("NO_JSON", 200)
    assert f"{URL}/api/v1/workspaces is no JSON" in raised.value.message and "secret" not in raised.value.message


def test_a_refusal_that_comes_after_a_long_answer_has_begun_is_an_error_whatever_the_status_is() -> None:
    def answers(_: httpx.Request) -> httpx.Response:
        return httpx.Response(201, content=b'  {"error": {"code": "STORAGE_FULL", "message": "no room"}}')

    hub = Client(URL, patience_s=0, http=httpx.Client(transport=httpx.MockTransport(answers)))
    with pytest.raises(HubError) as raised:
        hub.get("/api/v1/workspaces")
    assert (raised.value.code, raised.value.status) == ("STORAGE_FULL", 201)


def test_a_mark_of_the_byte_order_is_no_part_of_the_first_field() -> None:
    assert [block.id for block in Parser().push(b"\xef\xbb\xbfid: 1\ndata: a\n\n")] == ["1"]


def test_a_long_line_in_small_pieces_is_looked_through_once() -> None:
    parser, size, pieces = Parser(), 1_000, 200
    parser.push(b"id: 1\ndata: ")
    for _ in range(pieces):
        assert parser.push(b"x" * size) == []
        assert all(len(part) <= size for part in parser._line), "no piece is joined to those before it, and looked through again"
    (block,) = parser.push(b"\r\n\r\n")
    assert block.data == "x" * size * pieces


def test_a_stream_that_ends_within_a_character_gives_the_event_whole_with_the_next_connection() -> None:
    whole, asked = 'id: 1\nevent: chunk\ndata: {"text":"\U0001f600"}\n\n'.encode(), list[None]()

    def answers(_: httpx.Request) -> httpx.Response:
        asked.append(None)
        return httpx.Response(200, content=whole[:-6] if len(asked) == 1 else whole)

    events = Client(URL, http=httpx.Client(transport=httpx.MockTransport(answers))).watch_chat("w", "c")
    first: Any = next(events)
    assert (first["data"]["text"], len(asked)) == ("\U0001f600", 2)


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_answer_that_is_no_event_stream_is_no_connection(is_async: bool) -> None:
    states = list[tuple[str, str]]()

    def answers(_: httpx.Request) -> httpx.Response:
        if len(states) > 2:
            return refusal("UNAUTHORIZED", 401)
        return httpx.Response(200, html="<p>Sign in to this network</p>")

    def told(connection: Connection) -> None:
        reason = connection.reason
        states.append((connection.state, str(reason.__cause__) if isinstance(reason, Unreachable) else ""))

    with pytest.raises(HubError, match="UNAUTHORIZED"):
        if is_async:
            async with AsyncClient(URL, http=httpx.AsyncClient(transport=httpx.MockTransport(answers))) as hub:
                await anext(hub.watch_workspace("w", on_connection=told))
        else:
            next(Client(URL, http=httpx.Client(transport=httpx.MockTransport(answers))).watch_workspace("w", on_connection=told))
    assert [state for state, _ in states[:2]] == ["connecting", "waiting"]
    assert "text/html; charset=utf-8, and no event stream" in states[1][1]


def test_a_change_under_a_condition_whose_answer_was_lost_is_not_made_again() -> None:
    sent = list[str]()

    def answers(request: httpx.Request) -> httpx.Response:
        sent.append(request.method)
        if len(sent) == 1:
            raise httpx.ReadError("the answer was lost")
        return httpx.Response(200, json={"v": 1})

    client = Client(URL, http=httpx.Client(transport=httpx.MockTransport(answers)))
    at: dict[str, Any] = {"workspace_id": "w", "query": {"path": "/a"}, "body": "a"}
    with pytest.raises(Unreachable):
        client.put("/api/v1/workspaces/{workspace_id}/files/by-path/content", **at, headers={"If-Match": '"3"'})
    assert len(sent) == 1
    sent.clear()
    client.put("/api/v1/workspaces/{workspace_id}/files/by-path/content", **at)
    assert len(sent) == 2


def test_a_change_that_no_connection_took_is_made_when_the_hub_is_there_again() -> None:
    sent = list[str]()

    def answers(request: httpx.Request) -> httpx.Response:
        sent.append(request.method)
        if len(sent) % 2:
            raise httpx.ConnectError("the hub restarts")
        return httpx.Response(200, json={"v": 1})

    client = Client(URL, http=httpx.Client(transport=httpx.MockTransport(answers)))
    at: dict[str, Any] = {"workspace_id": "w", "query": {"path": "/a"}, "body": "a"}
    client.put("/api/v1/workspaces/{workspace_id}/files/by-path/content", **at, headers={"if-match": '"3"'})
    client.delete("/api/v1/workspaces/{workspace_id}", workspace_id="w")
    assert sent == ["PUT", "PUT", "DELETE", "DELETE"]


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_upload_waits_while_the_hub_reads_a_content_whose_parts_are_all_there(is_async: bool) -> None:
    waits = dict[str, float | None]()

    def answers(request: httpx.Request) -> httpx.Response:
        waits[request.method] = request.extensions["timeout"]["read"]
        return httpx.Response(200, json={"v": 1} if request.method == "PUT" else {})

    transport, content = httpx.MockTransport(answers), bytes(16 * 1024 * 1024)
    for limit, expected in ((7.0, {"POST": 9.0, "PUT": 7.0}), (None, {"POST": None, "PUT": None})):
        if is_async:
            await AsyncClient(URL, http=httpx.AsyncClient(transport=transport, timeout=limit)).upload("w", "/a", content)
        else:
            Client(URL, http=httpx.Client(transport=transport, timeout=limit)).upload("w", "/a", content)
        assert waits == expected


def test_a_file_that_cannot_be_read_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = list[IO[bytes]]()

    class Torn(io.FileIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError("the disk is torn")

    def torn(path: str, _: str) -> IO[bytes]:
        opened.append(cast(IO[bytes], Torn(path)))
        return opened[-1]

    (tmp_path / "a").touch()
    monkeypatch.setattr("buildscale._upload.open", torn, raising=False)
    with pytest.raises(OSError, match="torn"):
        Client(URL).upload("w", "/a", tmp_path / "a")
    assert [file.closed for file in opened] == [True]


def test_an_error_comes_whole_out_of_another_process_and_tells_no_query() -> None:
    refused_one = refused(429, "9", b'{"error": {"code": "RATE_LIMITED", "message": "no", "hint": "wait", "request_id": "r", "details": {"a": 1}}}')
    for error in (refused_one, Unreachable(f"{URL}/api/v1/events?ticket=secret")):
        copied = pickle.loads(pickle.dumps(error))
        assert (type(copied), str(copied), vars(copied)) == (type(error), str(error), vars(error))
    assert str(Unreachable(f"{URL}/a?ticket=secret")) == f"{URL}/a cannot be reached"


def test_a_body_that_cannot_be_decoded_is_no_answer() -> None:
    broken = httpx.MockTransport(lambda _: httpx.Response(200, headers={"content-encoding": "gzip"}, stream=httpx.ByteStream(b"no gzip")))
    with pytest.raises(Unreachable):
        Client(URL, patience_s=0, http=httpx.Client(transport=broken)).get("/health")


async def test_a_content_goes_to_its_address_below_the_path_of_the_hub() -> None:
    asked: list[str] = []

    def hub(request: httpx.Request) -> httpx.Response:
        asked.append(f"{request.method} {request.url.path}")
        transfer = {"method": "PUT", "url": "/api/v1/workspaces/w/contents/x?ticket=t", "headers": {}}
        return httpx.Response(200, json={"request": transfer} if request.url.path.endswith("/uploads") else {})

    place = "/below/api/v1/workspaces/w"
    steps = [f"POST {place}/uploads", f"PUT {place}/contents/x", f"PUT {place}/files/by-path"]
    with httpx.Client(transport=httpx.MockTransport(hub)) as http:
        Client(f"{URL}/below", http=http).upload("w", "/a", b"content")
    assert asked == steps
    async with httpx.AsyncClient(transport=httpx.MockTransport(hub)) as http_aio:
        await AsyncClient(f"{URL}/below", http=http_aio).upload("w", "/a", b"content")
    assert asked == steps * 2
