from __future__ import annotations

from collections.abc import Iterator

import pytest
from hub import Hub

from buildscale import Client


@pytest.fixture(scope="module")
def server() -> Iterator[Hub]:
    hub = Hub()
    yield hub
    hub.stop()


@pytest.fixture
def hub(server: Hub) -> Iterator[Client]:
    with Client(server.url) as client:
        yield client


@pytest.fixture
def workspace(hub: Client) -> str:
    return hub.post("/api/v1/workspaces", body={"name": "test"})["workspace_id"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
