"""The package as PyPI has it: its types are those of the hub, its README works, and it brings nothing else along."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from hub import Hub

from buildscale import Block, Parser

ROOT = Path(__file__).parent.parent


def run(*command: str, **environment: str) -> str:
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_types_are_those_of_the_hub(server: Hub, tmp_path: Path) -> None:
    run(sys.executable, "generate.py", str(tmp_path), BUILDSCALE_URL=server.url)
    for name in ("schema.py", "_routes.py"):
        same = (tmp_path / name).read_text() == (ROOT / "src/buildscale" / name).read_text()
        assert same, f"{name} is stale: start a hub, then run BUILDSCALE_URL=… python generate.py in clients/python"


def program_of_the_readme() -> str:
    match = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert match
    return match[1]


def test_the_program_of_the_readme_does_what_it_says(server: Hub, tmp_path: Path) -> None:
    code = program_of_the_readme()
    assert len(code.strip().splitlines()) <= 22
    (tmp_path / "readme.py").write_text(code)
    said = run(sys.executable, str(tmp_path / "readme.py"), BUILDSCALE_URL=server.url)
    assert "Done. This is what happened" in said and "# Hello from BuildScale" in said


def test_mypy_finds_no_fault_and_knows_each_route(tmp_path: Path) -> None:
    (tmp_path / "readme.py").write_text(program_of_the_readme())
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from buildscale import Client\nClient().post('/api/v1/workspaces', body={'nam': 'x'})\nClient().get('/api/v2')\n")
    mypy = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache")]
    run(*mypy)
    run(*mypy, "--strict", str(tmp_path / "readme.py"))
    found = subprocess.run([*mypy, "--strict", str(wrong)], cwd=ROOT, capture_output=True, text=True).stdout
    assert [int(line) for line in re.findall(r"wrong\.py:(\d+): error", found)] == [2, 3], found


def test_the_distributions_have_code_types_and_readme(tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path))
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"buildscale/__init__.py", "buildscale/schema.py", "buildscale/py.typed"} <= names
    assert all(name.startswith(("buildscale/", "buildscale-0.1.0.dist-info/")) for name in names), names
    metadata = zipfile.ZipFile(wheel).read("buildscale-0.1.0.dist-info/METADATA").decode()
    assert re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE) == ["httpx<1,>=0.27"]
    (sdist,) = tmp_path.glob("*.tar.gz")
    inside = {name.partition("/")[2] for name in tarfile.open(sdist).getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/buildscale/client.py", "generate.py"} <= inside


def test_events_are_parsed_however_their_bytes_are_cut() -> None:
    text = ': hello\nid: 1\nevent: a\ndata: {"x":\r\ndata: 1}\n\nid: 2\r\ndata:two\r\n\r\nid: 3\nevent: cursor\nretry: 2000\n\nevent: b\ndata: é\n\n'
    expected = [Block("1", "a", '{"x":\n1}'), Block("2", "message", "two"), Block("3", "b", "é")]
    sent = text.encode()
    for size in range(1, len(sent) + 1):
        parser = Parser()
        blocks = [block for at in range(0, len(sent), size) for block in parser.push(sent[at : at + size])]
        assert blocks == expected, f"pieces of {size}"
        assert (parser.last_id, parser.retry_ms) == ("3", 2000)
