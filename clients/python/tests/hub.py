"""A real hub for tests: its own data folder, its own port, the offline demo model."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time

PROGRAM = os.environ.get("BUILDSCALE_BIN")


class Hub:
    """`kill` is SIGKILL, and `restart` starts the hub again at the same address with the same data."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        if not PROGRAM:
            raise RuntimeError("BUILDSCALE_BIN is to be the path of the binary `buildscale`; scripts/sdk sets it")
        self._arguments, self._environment = arguments, environment
        self._data = tempfile.mkdtemp(prefix="buildscale-")
        self._start("127.0.0.1:0")

    def _start(self, listen: str) -> None:
        clean = {name: value for name, value in os.environ.items() if not re.search(r"_API_KEY$|^BUILDSCALE|^OPENAI", name)}
        command = [str(PROGRAM), "serve", "--listen", listen, "--data-dir", self._data, "--json", *self._arguments]
        self._child = subprocess.Popen(command, env=clean | self._environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._child.stdout
        self.address = str(json.loads(self._child.stdout.readline())["address"])
        self.url = f"http://{self.address}"

    def kill(self) -> None:
        self._child.kill()
        self._child.wait()
        if self._child.stdout:
            self._child.stdout.close()

    def restart(self) -> None:
        deadline = time.monotonic() + 30
        while True:
            try:
                self._start(self.address)
                return
            except json.JSONDecodeError:
                # It ended before it told its address: a connection of another program may have the port for a moment.
                self.kill()
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def stop(self) -> None:
        self.kill()
        shutil.rmtree(self._data, ignore_errors=True)
