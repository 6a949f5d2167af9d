"""Functions that agents call: which calls a program takes, and how it answers. What both clients share, without I/O."""

from __future__ import annotations

import json
import threading
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from ._request import LONGEST_SLEEP_S, backoff
from .errors import HubError, Unreachable

#: Calls that have ended and that a look which began before may still find.
_REMEMBERED: Final = 1_000
#: How often a request is sent again that the hub answers with 500.
_FAULTS: Final = 5

CHATS: Final = "/api/v1/workspaces/{workspace_id}/chats"
CHAT: Final = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}"
CALL: Final = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/calls/{call_id}"
TAKE: Final = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/calls/{call_id}/take"
CONTENT: Final = "/api/v1/workspaces/{workspace_id}/files/by-path/content"
_PREFIX = "code__"
#: The refusals of a result, by their status: another one may be taken.
_UNFIT = (400, 413, 422)


@dataclass(frozen=True)
class CodeTool:
    """A function that agents of a workspace call, as `code__NAME`.

    `run` gets the arguments by name. What it returns, the agent reads: a text, or any value as JSON; what it raises, the agent reads as a failure.
    `parameters` is the JSON Schema of the arguments, an object. With `effects="write"` each call is run at most once; with `"read"` it changes
    nothing, and may be run by several programs. A call waits `timeout_s` seconds for a program (1 to 86,400, an hour by default), and then fails.
    """

    description: str
    run: Callable[..., Any]
    parameters: Mapping[str, Any] | None = None
    effects: Literal["read", "write"] = "write"
    timeout_s: int | None = None

    def declaration(self) -> bytes:
        """The file that declares it in `/system/tools`."""
        declared: dict[str, Any] = {"code": True, "description": self.description, "effects": self.effects}
        if self.parameters is not None:
            declared["parameters"] = dict(self.parameters)
        if self.timeout_s is not None:
            declared["timeout_s"] = self.timeout_s
        return (json.dumps(declared, indent=2) + "\n").encode()


@dataclass(frozen=True)
class Call:
    """A call that waits for this program."""

    chat: str
    id: str
    tool: CodeTool
    args: dict[str, Any]
    is_repeatable: bool

    def ids(self, workspace: str) -> dict[str, str]:
        return {"workspace_id": workspace, "chat_id": self.chat, "call_id": self.id}


@dataclass
class Desk:
    """The calls of one program. It takes them under an id of its own, and each once, also when several threads look."""

    tools: Mapping[str, CodeTool]
    program: str = field(default_factory=lambda: str(uuid.uuid4()))
    _begun: set[str] = field(default_factory=set)
    _ended: deque[str] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def new(self, chat: Mapping[str, Any]) -> list[Call]:
        """The calls of a chat that this program has not begun. They count as begun from here on."""
        calls = []
        for waiting in chat.get("waiting_for") or []:
            data = waiting["data"]
            name = str(data.get("tool", ""))
            tool = self.tools.get(name.removeprefix(_PREFIX)) if name.startswith(_PREFIX) else None
            if waiting["event"] != "call_handed_out" or tool is None:
                continue
            with self._lock:
                if data["call_id"] in self._begun:
                    continue
                self._begun.add(data["call_id"])
            calls.append(Call(chat["chat_id"], data["call_id"], tool, dict(data["args"] or {}), data["repeatable"]))
        return calls

    def forget(self, call: Call) -> None:
        """Nothing of the call has begun: the next look tries it again."""
        with self._lock:
            self._begun.discard(call.id)

    def end(self, call: Call) -> None:
        """The call has ended. It counts as begun until many others have ended, too."""
        with self._lock:
            self._ended.append(call.id)
            if len(self._ended) > _REMEMBERED:
                self._begun.discard(self._ended.popleft())


def answer(output: Any) -> dict[str, Any]:
    return {"output": output, "is_error": False}


def failure(error: BaseException) -> dict[str, Any]:
    return {"output": str(error) or type(error).__name__, "is_error": True}


def passes(error: Exception) -> bool:
    """Whether the same request may succeed later."""
    return isinstance(error, Unreachable) or (isinstance(error, HubError) and error.is_passing)


def is_hopeless(failures: int, error: Exception) -> bool:
    """Whether a fault of the hub itself has come so often that it stays, as for a chat that is damaged."""
    return isinstance(error, HubError) and error.status == 500 and failures >= _FAULTS


def rest_s(failures: int, error: Exception) -> float:
    """The pause before the request is sent again, in seconds."""
    asked = error.retry_after_s if isinstance(error, HubError) else None
    return max(backoff(failures, 5.0), min(asked or 0.0, LONGEST_SLEEP_S))


def is_unfit(error: Exception) -> bool:
    """Whether the result of a call is no JSON, or one that the hub does not take."""
    return error.status in _UNFIT if isinstance(error, HubError) else isinstance(error, (TypeError, ValueError, RecursionError))


def unfit(error: Exception) -> dict[str, Any]:
    """The answer in its place: without one the agent would wait until the time of the call is up."""
    return {"output": f"The result cannot be sent: {error}", "is_error": True}
