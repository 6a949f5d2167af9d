"""Functions of a program that agents call, against a real hub with a scripted model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub import Hub

from buildscale import AsyncClient, Client, CodeTool, Connection, HubError

pytestmark = pytest.mark.anyio
SCRIPT = Path(__file__).parents[2] / "typescript/test/tools.yaml"
TIMES = {"type": "object", "properties": {"times": {"type": "integer"}}, "required": ["times"]}
AT = {"type": "object", "properties": {"at": {"type": "string"}}}


@pytest.fixture(scope="module")
def server() -> Iterator[Hub]:
    hub = Hub(BUILDSCALE__AI__SCRIPT=str(SCRIPT), BUILDSCALE__AI__MODEL="scripted/script")
    yield hub
    hub.stop()


def said(hub: Client, workspace: str, goal: str) -> str:
    """The last words of a new chat, in which each call is allowed."""
    made = hub.post("/api/v1/workspaces/{workspace_id}/chats", workspace_id=workspace, body={"goal": goal})
    for event in hub.watch_chat(workspace, made["chat_id"], after=0):
        if event["event"] == "permission_required":
            try:
                hub.post(
                    "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/permissions/{permission_id}",
                    workspace_id=workspace, chat_id=made["chat_id"], permission_id=event["data"]["permission_id"],
                    body={"outcome": "approved"},
                )
            except HubError as error:
                assert error.code == "CONFLICT"
        if event["event"] == "done":
            return event["data"]["message"]
    raise AssertionError("the stream has ended")


def test_agents_call_functions_of_a_program(server: Hub, hub: Client, workspace: str) -> None:
    is_open, rung = threading.Event(), []

    def ring(times: int) -> str:
        rung.append(times)
        return "rung"

    def broken() -> None:
        raise ValueError("the spring is loose")

    def told(connection: Connection) -> None:
        if connection.state == "open":
            is_open.set()

    tools = {
        "look": CodeTool("Looks at something.", lambda at: f"a {at}", AT, effects="read"),
        "ring": CodeTool("Rings the bell.", ring, TIMES, timeout_s=600),
        "break": CodeTool("Breaks.", broken),
    }
    program = Client(server.url)
    threading.Thread(target=lambda: program.serve_tools(workspace, tools, on_connection=told), daemon=True).start()
    assert is_open.wait(30)
    assert said(hub, workspace, "look around") == "Seen: a moon, a sun."
    assert (said(hub, workspace, "ring it"), rung) == ("rung", [2])
    assert said(hub, workspace, "break it") == "It broke: the spring is loose"


async def test_they_may_be_coroutines(server: Hub, hub: Client, workspace: str) -> None:
    async def look(at: str) -> dict[str, str]:
        return {"at": at}

    opened = asyncio.Event()

    def told(connection: Connection) -> None:
        if connection.state == "open":
            opened.set()

    async with AsyncClient(server.url) as program:
        tools = {"look": CodeTool("Looks.", look, AT, effects="read")}
        serving = asyncio.create_task(program.serve_tools(workspace, tools, on_connection=told))
        await opened.wait()
        words = await asyncio.to_thread(said, hub, workspace, "look around")
        serving.cancel()
    assert words == 'Seen: {"at":"moon"}, {"at":"sun"}.'
