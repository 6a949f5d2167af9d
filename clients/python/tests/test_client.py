"""The client for threads, against a real hub."""

from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import Final

import httpx
import pytest
from hub import Hub

from buildscale import Client, Connection, HubError, Unreachable

CONTENT: Final = "/api/v1/workspaces/{workspace_id}/files/by-path/content"
GONE = "01890000-0000-7000-8000-000000000000"


def begin(hub: Client, workspace: str, goal: str) -> str:
    return hub.post("/api/v1/workspaces/{workspace_id}/chats", workspace_id=workspace, body={"goal": goal})["chat_id"]


def test_a_chat_is_begun_watched_to_its_end_and_read(hub: Client, workspace: str) -> None:
    chat = begin(hub, workspace, "Show me what you can do")
    texts: dict[str, str] = {}
    names = set()
    for event in hub.watch_chat(workspace, chat, after=0):
        names.add(event["event"])
        if event["event"] == "chunk":
            message = event["data"]["message_id"]
            texts[message] = texts.get(message, "") + event["data"]["text"]
        if event["event"] == "done":
            break
    assert names >= {"turn_started", "thought", "message", "call", "observation", "file_updated", "plan_step", "usage", "done"}
    read = hub.get("/api/v1/workspaces/{workspace_id}/chats/{chat_id}", workspace_id=workspace, chat_id=chat)
    spoken = [message["content"] for message in read["messages"] if message["role"] == "assistant" and message.get("content")]
    assert (list(texts.values()), read["status"]) == (spoken, "idle")


def test_a_stream_goes_on_with_its_cursor_after_the_hub_was_killed(server: Hub, hub: Client, workspace: str) -> None:
    chat = begin(hub, workspace, "count slowly")
    ids: list[int] = []
    attempts: list[int] = []
    states: set[str] = set()

    def crash() -> None:
        server.kill()
        server.restart()

    crashing: threading.Thread | None = None

    def told(connection: Connection) -> None:
        states.add(connection.state)

    for event in hub.watch_chat(workspace, chat, after=0, on_connection=told):
        ids.append(event["id"])
        if event["event"] == "turn_started":
            attempts.append(event["data"]["attempt"])
        if event["event"] == "chunk":
            if crashing is None:
                crashing = threading.Thread(target=crash)
                crashing.start()
            if len(attempts) > 1:
                break
    assert crashing
    crashing.join()
    assert attempts == [1, 2]
    assert ids == sorted(set(ids)), "each event once, in order"
    assert states == {"connecting", "open", "waiting"}
    hub.post("/api/v1/workspaces/{workspace_id}/chats/{chat_id}/stop", workspace_id=workspace, chat_id=chat)


def test_a_refusal_has_its_code_its_hint_and_its_status(hub: Client, workspace: str) -> None:
    with pytest.raises(HubError) as refusal:
        hub.get("/api/v1/workspaces/{workspace_id}/chats/{chat_id}", workspace_id=workspace, chat_id=GONE)
    assert (refusal.value.code, refusal.value.status, refusal.value.is_passing) == ("NOT_FOUND", 404, False)
    assert refusal.value.request_id and refusal.value.message in str(refusal.value)


def test_a_stream_of_something_that_is_gone_ends_with_the_refusal(hub: Client, workspace: str) -> None:
    with pytest.raises(HubError, match="NOT_FOUND"):
        next(hub.watch_chat(workspace, GONE))


def test_a_stream_of_a_chat_that_is_deleted_ends_after_its_last_event(hub: Client, workspace: str) -> None:
    chat = begin(hub, workspace, "count slowly")
    seen: list[str] = []
    with pytest.raises(HubError, match="NOT_FOUND"):
        for event in hub.watch_chat(workspace, chat, after=0):
            if event["event"] == "chunk" and "chunk" not in seen:
                hub.delete("/api/v1/workspaces/{workspace_id}/chats/{chat_id}", workspace_id=workspace, chat_id=chat)
            seen.append(f"stopped: {event['data']['reason']}" if event["event"] == "stopped" else event["event"])
    assert seen[-1] == "stopped: deleted"


def test_a_hub_that_is_not_there_is_unreachable() -> None:
    with pytest.raises(Unreachable) as failed:
        Client("http://127.0.0.1:9", patience_s=0).get("/health")
    assert isinstance(failed.value.__cause__, httpx.ConnectError)


def test_a_request_that_may_be_sent_twice_waits_for_a_hub_that_starts(server: Hub, hub: Client) -> None:
    server.kill()
    starting = threading.Thread(target=server.restart)
    starting.start()
    assert hub.post("/api/v1/workspaces", body={"name": "patient"})["name"] == "patient"
    starting.join()


def test_one_key_gives_one_answer(hub: Client) -> None:
    first, second = (hub.post("/api/v1/workspaces", body={"name": "once"}, idempotency_key="one-key") for _ in range(2))
    assert first == second


def test_a_list_is_read_page_by_page(hub: Client, workspace: str) -> None:
    hub.post("/api/v1/workspaces", body={"name": "another"})
    found = [one["workspace_id"] for one in hub.all("/api/v1/workspaces", query={"limit": 1})]
    assert len(found) >= 2 and workspace in found


def test_contents_go_as_they_are_and_a_stale_version_is_refused(hub: Client, workspace: str) -> None:
    content = bytes([0, 255, 10, 13])
    made = hub.put(CONTENT, workspace_id=workspace, query={"path": "/projects/a b.bin"}, body=content)
    assert hub.read(CONTENT, workspace_id=workspace, query={"path": "/projects/a b.bin"}).content == content
    with pytest.raises(HubError) as stale:
        hub.put(
            "/api/v1/workspaces/{workspace_id}/files/{file_id}",
            workspace_id=workspace,
            file_id=made["file_id"],
            body={"content": "x"},
            headers={"If-Match": '"7"'},
        )
    assert (stale.value.code, stale.value.status) == ("STALE_VERSION", 412)


def test_an_upload_tells_its_progress(hub: Client, workspace: str, tmp_path: Path) -> None:
    large = tmp_path / "large.bin"
    large.write_bytes(bytes(range(256)) * 4096)
    told: list[tuple[int, int]] = []
    contents: list[Path | io.BytesIO | bytes] = [large, io.BytesIO(large.read_bytes()[::-1]), b"short", b""]
    for version, content in enumerate(contents, start=1):
        told.clear()
        change = hub.upload(workspace, "/data/large.bin", content, on_progress=lambda sent, size: told.append((sent, size)))
        assert change["v"] == version
        read = hub.read(CONTENT, workspace_id=workspace, query={"path": "/data/large.bin"}).content
        expected = content if isinstance(content, bytes) else content.read_bytes() if isinstance(content, Path) else content.getvalue()
        assert read == expected
        assert told == sorted(told) and told[-1] == (len(expected), len(expected))


def test_a_long_upload_goes_on_when_the_hub_is_killed_in_the_middle(server: Hub, hub: Client, workspace: str) -> None:
    told: list[int] = []

    def restart(sent: int, size: int) -> None:
        if sent > 16_777_216 and max(told) <= 16_777_216:
            server.kill()
            server.restart()
        told.append(sent)

    content = bytes(range(251)) * 68_000
    change = hub.upload(workspace, "/data/parts.bin", content, on_progress=restart)
    assert (change["v"], change["size"]) == (1, len(content))
    assert min(told[told.index(16_777_216) :]) == 16_777_216, "the first part is not sent again"
    assert hub.read(CONTENT, workspace_id=workspace, query={"path": "/data/parts.bin"}).content == content


def test_the_changes_of_a_workspace_are_told(server: Hub, hub: Client, workspace: str) -> None:
    def write(connection: Connection) -> None:
        if connection.state == "open":
            hub.put(CONTENT, workspace_id=workspace, query={"path": "/projects/told.md"}, body="told")

    for event in hub.watch_workspace(workspace, on_connection=write):
        if event["event"] == "file_updated" and event["data"]["path"] == "/projects/told.md":
            break


def test_a_ticket_opens_a_stream_without_the_token() -> None:
    guarded = Hub("--auth-token", "secret-token-of-the-test")
    try:
        with pytest.raises(HubError, match="UNAUTHORIZED"):
            Client(guarded.url).get("/api/v1/workspaces")
        owner = Client(guarded.url, lambda: "secret-token-of-the-test")
        workspace = owner.post("/api/v1/workspaces", body={"name": "guarded"})["workspace_id"]
        chat = begin(owner, workspace, "ask me")
        with httpx.stream("GET", owner.ticket_url(workspace, chat=chat)) as opened:
            assert opened.status_code == 200
        from_begin = owner.ticket_url(workspace, chat=chat, after=0)
        with httpx.stream("GET", from_begin) as opened:
            assert opened.status_code == 200
        assert from_begin.endswith("&after=0")
        assert any(event["event"] == "question" for event in owner.watch_chat(workspace, chat, after=0, ticket=True))
    finally:
        guarded.stop()


def test_a_parameter_that_the_route_needs_or_does_not_have_is_named(hub: Client) -> None:
    with pytest.raises(TypeError, match="needs workspace_id"):
        hub.read("/api/v1/workspaces/{workspace_id}/export")
    with pytest.raises(TypeError, match="has no chat_id"):
        hub.read("/health", chat_id="x")
    with pytest.raises(ValueError, match="is no workspace_id"):
        hub.get("/api/v1/workspaces/{workspace_id}/chats", workspace_id="..")
    with pytest.raises(ValueError, match="is no chat"):
        next(hub.watch_chat("x", ".."))
