"""The client of a BuildScale hub: chats, flows and versioned files over HTTP, with event streams that reconnect."""

from ._tools import CodeTool
from ._watch import Connection
from .aio import AsyncClient
from .client import Client
from .errors import HubError, Unreachable
from .schema import ChatEvent, TaskEvent, WorkspaceEvent
from .sse import Block, Parser

__all__ = [
    "AsyncClient",
    "Block",
    "ChatEvent",
    "Client",
    "CodeTool",
    "Connection",
    "HubError",
    "Parser",
    "TaskEvent",
    "Unreachable",
    "WorkspaceEvent",
]
