"""An example as a child process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).parent.parent


def python(program: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(ROOT / program), *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=os.environ | environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


class Server:
    """One that says where it listens, and then what it does."""

    def __init__(self, program: str, **environment: str) -> None:
        self.process = python(program, PORT="0", **environment)
        self.url = self.until("listening on ").split()[-1]

    def until(self, words: str) -> str:
        assert self.process.stdout
        patience = threading.Timer(60, self.process.kill)
        patience.start()
        for line in self.process.stdout:
            if words in line:
                patience.cancel()
                return line.strip()
        assert self.process.stderr
        raise AssertionError(self.process.stderr.read())

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()
