"""Server-Sent Events."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class Block:
    """One block of an event stream, its data as text."""

    id: str
    event: str
    data: str


class Parser:
    """Parses Server-Sent Events as the HTML standard has them (section 9.2.6, "Interpreting an event stream"): bytes in, blocks out.

    A block without data is none for the caller, but its `id` counts: `last_id` has it.
    """

    def __init__(self) -> None:
        #: The id after which a stream goes on: that of the last block that has ended.
        self.last_id = ""
        #: The pause before the next connection that the server asked for, in milliseconds.
        self.retry_ms: int | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._id = ""
        # The pieces of the line that has not ended: each is looked through once, however long the line becomes.
        self._line: list[str] = []
        self._is_after_cr = False
        self._event = ""
        self._data: list[str] = []

    def push(self, piece: bytes) -> list[Block]:
        """The blocks that end in this piece."""
        text = self._decoder.decode(piece)
        if not text:
            return []
        if self._is_after_cr:
            # The second half of CR LF.
            text = text.removeprefix("\n")
        self._is_after_cr = text.endswith("\r")
        first, *lines = _LINE_END.split(text)
        self._line.append(first)
        if not lines:
            return []
        ended, self._line = "".join(self._line), [lines.pop()]
        blocks = []
        for line in [ended, *lines]:
            if line:
                self._field(line)
                continue
            # Not before: of a block that is cut off, the client has nothing.
            self.last_id = self._id
            if self._data:
                blocks.append(Block(self.last_id, self._event or "message", "\n".join(self._data)))
            self._event, self._data = "", []
        return blocks

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry_ms = int(value)
