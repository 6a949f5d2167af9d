"""A content on its way to the hub, without I/O to the network: its digest, and its pieces."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

#: Told how many bytes have been sent, and how many there are.
OnProgress = Callable[[int, int], None]
Content = bytes | str | os.PathLike[str] | BinaryIO
_PIECE = 256 * 1024


class Upload:
    """A content that is read twice: once for its digest and its size, once to be sent. A `str` or `os.PathLike` names a local file."""

    def __init__(self, content: Content, on_progress: OnProgress | None) -> None:
        self._told = on_progress or (lambda sent, size: None)
        self._owned = isinstance(content, (str, os.PathLike))
        if isinstance(content, (str, os.PathLike)):
            self._file: BinaryIO = open(content, "rb")
        else:
            self._file = io.BytesIO(content) if isinstance(content, (bytes, bytearray)) else content
        self._start = self._file.tell()
        digest = hashlib.sha256()
        self.size = 0
        for piece in self._read():
            digest.update(piece)
            self.size += len(piece)
        self.sha256 = digest.hexdigest()

    def _read(self) -> Iterator[bytes]:
        self._file.seek(self._start)
        while piece := self._file.read(_PIECE):
            yield piece

    def whole(self) -> bytes:
        """The content, when it is short."""
        return b"".join(self._read())

    def pieces(self) -> Iterator[bytes]:
        """The content again from its beginning; each piece that was taken counts as sent with the next one."""
        sent = 0
        self._told(sent, self.size)
        for piece in self._read():
            yield piece
            sent += len(piece)
            self._told(sent, self.size)

    def done(self) -> None:
        """The content has been sent whole."""
        self._told(self.size, self.size)

    def close(self) -> None:
        if self._owned:
            self._file.close()

    def headers(self, given: dict[str, Any]) -> dict[str, str]:
        """The headers of the transfer: those that came with the address, and the length, so that no body is chunked."""
        return {**given, "content-length": str(self.size)}
