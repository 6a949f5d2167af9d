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
#: The length of a part in bytes. A longer content is sent part by part, so that a broken upload goes on where it ended.
_PART = 16 * 1024 * 1024
#: The slowest that a hub reads a content whose parts are all there, in bytes per second: it does so before it answers.
_SLOWEST_READ = 8 * 1024 * 1024
#: The hub has forgotten the address of a part, or another upload of the same content was faster: then the state is asked for again.
_LOST = (401, 403, 404, 409)


class Upload:
    """A content that is read twice: once for its digest and its size, once to be sent. A `str` or `os.PathLike` names a local file."""

    def __init__(self, content: Content, on_progress: OnProgress | None) -> None:
        self._on_progress = on_progress
        self._sent = -1
        self._owned = isinstance(content, (str, os.PathLike))
        if isinstance(content, (str, os.PathLike)):
            self._file: BinaryIO = open(content, "rb")
        else:
            self._file = io.BytesIO(content) if isinstance(content, (bytes, bytearray)) else content
        try:
            self._look()
        except BaseException:
            self.close()
            raise
        self._futile = 0

    def _look(self) -> None:
        """Reads the content for its digests and its size."""
        self._start = self._file.tell()
        whole = hashlib.sha256()
        parts = []
        self.size = 0
        for piece in self.read(0):
            whole.update(piece)
            while piece:
                if self.size % _PART == 0:
                    parts.append(hashlib.sha256())
                of_part = piece[: _PART - self.size % _PART]
                parts[-1].update(of_part)
                self.size += len(of_part)
                piece = piece[len(of_part) :]
        self.sha256 = whole.hexdigest()
        self._parts = [part.hexdigest() for part in parts] if self.size > _PART else None

    @property
    def wanted(self) -> dict[str, Any]:
        """What the hub is asked for: the address of the content, or of its next part."""
        return {"sha256": self.sha256, "size": self.size, **({"parts": self._parts} if self._parts else {})}

    @property
    def reading_s(self) -> float:
        """The time in seconds that the hub may need to read the content, beside that of any answer."""
        return self.size / _SLOWEST_READ

    def read(self, begin: int, size: int | None = None) -> Iterator[bytes]:
        """The content from a place on, to its end or so many bytes."""
        self._file.seek(self._start + begin)
        while size is None or size > 0:
            piece = self._file.read(_PIECE if size is None else min(_PIECE, size))
            if not piece:
                return
            if size is not None:
                size -= len(piece)
            yield piece

    def whole(self) -> bytes:
        """The content, when it is short."""
        return b"".join(self.read(0))

    def step(self, transfer: dict[str, Any]) -> Step:
        """One request of the upload, as the hub gave it."""
        progress = transfer.get("parts") or {}
        part = progress.get("next") or {"from": 0, "size": self.size}
        return Step(self, transfer["request"], part["from"], part["size"], progress.get("received", 0), bool(progress))

    def ends_with(self, step: Step, status: int) -> bool:
        """Whether the request of the step is not to be repeated; else the hub refused it."""
        # A content that is there already is as good.
        if 200 <= status < 300 or status == 412:
            self._futile = 0
            return True
        self._futile += 1
        return step.is_part and self._futile <= 3 and status in _LOST

    def done(self) -> None:
        """The content has been sent whole."""
        if self._sent != self.size:
            self.tell(self.size)

    def tell(self, sent: int) -> None:
        """So many bytes have been sent."""
        self._sent = sent
        if self._on_progress:
            self._on_progress(sent, self.size)

    def close(self) -> None:
        if self._owned:
            self._file.close()


class Step:
    """A request that brings the content, or a part of it."""

    def __init__(self, upload: Upload, request: dict[str, Any], begin: int, size: int, received: int, is_part: bool) -> None:
        self._upload, self._begin, self._size, self._received = upload, begin, size, received
        self.is_part = is_part
        self.method: str = request["method"]
        self.url: str = request["url"]
        #: Those that came with the address, and the length, so that no body is chunked.
        self.headers: dict[str, str] = {**request["headers"], "content-length": str(size)}

    def address(self, hub: str) -> str:
        """The whole address. A path is one of the hub, which a proxy may have below a path of its own."""
        return hub + self.url if self.url.startswith("/") else self.url

    def pieces(self) -> Iterator[bytes]:
        """The bytes from the beginning; each piece that was taken counts as sent with the next one."""
        sent = self._received
        self._upload.tell(sent)
        for piece in self._upload.read(self._begin, self._size):
            yield piece
            sent += len(piece)
            self._upload.tell(sent)
