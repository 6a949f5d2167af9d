"""The client for event loops, against a real hub: what differs from `Client` by its code."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import aclosing
from pathlib import Path
from typing import Final

import pytest
from hub import Hub

from buildscale import AsyncClient, Client, Connection, HubError, Unreachable

pytestmark = pytest.mark.anyio
CONTENT: Final = "/api/v1/workspaces/{workspace_id}/files/by-path/content"


async def test_a_chat_goes_on_after_the_hub_was_killed(server: Hub, workspace: str) -> None:
    async with AsyncClient(server.url) as hub:
        made = await hub.post("/api/v1/workspaces/{workspace_id}/chats", workspace_id=workspace, body={"goal": "count slowly"})
        chat = made["chat_id"]
        ids: list[int] = []
        attempts: list[int] = []
        states: set[str] = set()
        is_killed = False

        def told(connection: Connection) -> None:
            states.add(connection.state)

        async with aclosing(hub.watch_chat(workspace, chat, after=0, on_connection=told)) as events:
            async for event in events:
                ids.append(event["id"])
                if event["event"] == "turn_started":
                    attempts.append(event["data"]["attempt"])
                if event["event"] == "chunk":
                    if len(attempts) > 1:
                        break
                    if not is_killed:
                        is_killed = True
                        server.kill()
                        server.restart()
        assert (attempts, ids, states) == ([1, 2], sorted(set(ids)), {"connecting", "open", "waiting"})
        await hub.post("/api/v1/workspaces/{workspace_id}/chats/{chat_id}/stop", workspace_id=workspace, chat_id=chat)


async def test_a_watcher_is_cancelled(server: Hub, workspace: str) -> None:
    async with AsyncClient(server.url) as hub:
        opened = asyncio.Event()

        async def watch() -> None:
            async for _ in hub.watch_workspace(workspace, on_connection=lambda it: opened.set() if it.state == "open" else None):
                pass

        watching = asyncio.create_task(watch())
        await opened.wait()
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching


async def test_any_number_of_streams_is_open_and_requests_are_answered(server: Hub, workspace: str) -> None:
    count = 120
    async with AsyncClient(server.url) as hub:
        are_open, opened = asyncio.Event(), 0

        def told(connection: Connection) -> None:
            nonlocal opened
            opened += connection.state == "open"
            if opened == count:
                are_open.set()

        async def watch() -> None:
            async for _ in hub.watch_workspace(workspace, on_connection=told):
                pass

        watching = [asyncio.create_task(watch()) for _ in range(count)]
        await asyncio.wait_for(are_open.wait(), 30)
        assert await hub.get("/api/v1/workspaces/{workspace_id}", workspace_id=workspace)
        for one in watching:
            one.cancel()
        await asyncio.gather(*watching, return_exceptions=True)


async def test_requests_are_repeated_and_lists_walked(server: Hub, workspace: str) -> None:
    async def token() -> str:
        return "any"

    async with AsyncClient(server.url, token) as hub:
        server.kill()
        asked = asyncio.create_task(hub.post("/api/v1/workspaces", body={"name": "patient"}))
        await asyncio.to_thread(server.restart)
        made = await asked
        found = [one["workspace_id"] async for one in hub.all("/api/v1/workspaces", query={"limit": 1})]
        assert {workspace, made["workspace_id"]} <= set(found)
    with pytest.raises(Unreachable):
        await AsyncClient("http://127.0.0.1:9", patience_s=0).get("/health")


async def test_an_upload_tells_its_progress(server: Hub, workspace: str, tmp_path: Path) -> None:
    large = tmp_path / "large.bin"
    large.write_bytes(bytes(range(256)) * 4096)
    told: list[tuple[int, int]] = []
    async with AsyncClient(server.url) as hub:
        await hub.upload(workspace, "/data/large.bin", large, on_progress=lambda sent, size: told.append((sent, size)))
        assert (await hub.read(CONTENT, workspace_id=workspace, query={"path": "/data/large.bin"})).content == large.read_bytes()
    assert [sent for sent, _ in told] == [0, 262_144, 524_288, 786_432, 1_048_576]


async def test_a_ticket_opens_a_stream(server: Hub, workspace: str) -> None:
    async with AsyncClient(server.url) as hub:
        made = await hub.post("/api/v1/workspaces/{workspace_id}/chats", workspace_id=workspace, body={"goal": "ask me"})
        async with aclosing(hub.watch_chat(workspace, made["chat_id"], after=0, ticket=True)) as events:
            async for event in events:
                if event["event"] == "question":
                    break
        with pytest.raises(HubError, match="NOT_FOUND"):
            await anext(hub.watch_task(workspace, "01890000-0000-7000-8000-000000000000"))


def test_both_clients_have_the_same_methods() -> None:
    def methods(client: type) -> dict[str, list[str]]:
        found = inspect.getmembers(client, inspect.isfunction)
        return {name: list(inspect.signature(it).parameters) for name, it in found if not name.startswith("_")}

    assert methods(Client) == {**methods(AsyncClient)}
