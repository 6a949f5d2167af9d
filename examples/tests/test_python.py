"""The examples in Python, against a real hub."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from hub import Hub
from program import ROOT, Server, python

from buildscale import Client

SECRET = "secret-of-the-webhook"


def test_a_flow_asks_the_person_at_the_terminal() -> None:
    hub = Hub()
    try:
        goal = json.dumps({"goal": "Document the parser", "approve": True})
        workspace = Client(hub.url).post("/api/v1/workspaces", body={"name": "one"})["workspace_id"]
        at = {"BUILDSCALE_URL": hub.url, "BUILDSCALE_WORKSPACE": workspace}
        run = python("ask-a-person/run.py", "plan_and_execute", goal, **at)
        output, told = run.communicate("maybe\nyes\n", timeout=60)
        assert "Both steps of the demo were done" in json.loads(output)["report"]
        assert run.returncode == 0 and "This is to be yes or no." in told and "success  approve" in told, told
        refused = python("ask-a-person/run.py", "plan_and_execute", goal, **at)
        _, told = refused.communicate("no\n", timeout=60)
        assert refused.returncode == 1 and "success  approve" in told, told
    finally:
        hub.stop()


class GitHub(ThreadingHTTPServer):
    """The routes of GitHub that the receiver uses."""

    def __init__(self) -> None:
        self.comments: list[str] = []
        self.labels: list[str] = []
        github = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.reply(200, [{"body": body} for body in github.comments])

            def do_POST(self) -> None:
                sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
                assert self.headers["authorization"] == "Bearer token-of-github"
                if self.path == "/repos/acme/app/issues/7/comments":
                    github.comments.append(sent["body"])
                if self.path == "/repos/acme/app/issues/7/labels":
                    github.labels += sent["labels"]
                # Last: the receiver says that it is done once it has the answer.
                self.reply(201, {})

            def reply(self, status: int, body: Any) -> None:
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, format: str, *args: Any) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


@pytest.fixture
def github() -> Iterator[GitHub]:
    server = GitHub()
    yield server
    server.shutdown()
    server.server_close()


class Receiver(Server):
    def __init__(self, hub: Hub, workspace: str, github: GitHub) -> None:
        super().__init__(
            "github-issues/receiver.py",
            BUILDSCALE_URL=hub.url,
            BUILDSCALE_WORKSPACE=workspace,
            GITHUB_WEBHOOK_SECRET=SECRET,
            GITHUB_TOKEN="token-of-github",
            GITHUB_API_URL=f"http://127.0.0.1:{github.server_port}",
        )

    def send(self, payload: Any, secret: str = SECRET, delivery: str = "delivery-1") -> httpx.Response:
        body = json.dumps(payload).encode()
        signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        headers = {"x-hub-signature-256": f"sha256={signature}", "x-github-event": "issues", "x-github-delivery": delivery}
        return httpx.post(self.url, content=body, headers=headers)


def test_an_issue_becomes_a_comment_that_a_person_approved(github: GitHub) -> None:
    server = Hub(BUILDSCALE__AI__SCRIPT=str(ROOT / "tests/script.yaml"), BUILDSCALE__AI__MODEL="scripted/script")
    hub = Client(server.url)
    workspace = hub.post("/api/v1/workspaces", body={"name": "app"})["workspace_id"]
    receiver = Receiver(server, workspace, github)
    issue = {"number": 7, "title": "A crash on start", "body": None, "user": {"login": "sam"}}
    opened = {"action": "opened", "issue": issue, "repository": {"full_name": "acme/app"}}
    try:
        assert receiver.send(opened, secret="another").status_code == 401
        assert receiver.send({"action": "closed"}).status_code == 200
        assert receiver.send({"action": "opened"}).status_code == 400
        task = receiver.send(opened).text
        assert receiver.send(opened).text == task, "a delivery that comes again starts no second task"
        receiver.until(f"task {task} waits for a person")
        # The receiver, and then the hub, are killed while the person thinks.
        receiver.kill()
        server.kill()
        server.restart()
        receiver = Receiver(server, workspace, github)
        assert github.comments == []
        hub.post(
            "/api/v1/workspaces/{workspace_id}/tasks/{task_id}/answers/{node}",
            workspace_id=workspace,
            task_id=task,
            node="approve",
            body={"answers": {"approved": True}},
        )
        receiver.until("commented on acme/app#7")
        assert (github.comments, github.labels) == ([f"The parser reads past the end.\n\n<!-- {task} -->"], ["bug"])
        tasks = hub.get("/api/v1/workspaces/{workspace_id}/tasks", workspace_id=workspace)["tasks"]
        assert [one["task_id"] for one in tasks] == [task]
    finally:
        receiver.kill()
        server.stop()


def test_the_flow_passes_its_own_evaluations() -> None:
    server = Hub()
    try:
        flow, program = ROOT / "github-issues/flow", os.environ["BUILDSCALE_BIN"]
        command = [program, "flow", "eval", str(flow), "--url", server.url]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BUILDSCALE")}
        Client(server.url).post("/api/v1/workspaces", body={"name": "evaluations"})
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0 and "2 passed, 0 failed" in done.stderr + done.stdout, done.stderr
    finally:
        server.stop()


@pytest.mark.parametrize("program", ["tools.py", "tools.mjs"])
def test_agents_call_the_functions_of_a_program(program: str, tmp_path: Path) -> None:
    server = Hub(BUILDSCALE__AI__SCRIPT=str(ROOT / "tests/script.yaml"), BUILDSCALE__AI__MODEL="scripted/script")
    # A program in JavaScript finds the package beside itself.
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/buildscale").symlink_to(ROOT.parent / "clients/typescript")
    copied = tmp_path / program
    copied.write_text((ROOT / "own-tools" / program).read_text())
    hub = Client(server.url)
    workspace = hub.post("/api/v1/workspaces", body={"name": "one"})["workspace_id"]
    at = os.environ | {"BUILDSCALE_URL": server.url, "BUILDSCALE_WORKSPACE": workspace}
    command = [sys.executable if program.endswith(".py") else "node", str(copied)]
    running = subprocess.Popen(command, env=at)
    try:
        # A function is there once its declaration is.
        for event in hub.watch_workspace(workspace, after=0):
            if event["event"] == "file_updated" and event["data"]["path"] == "/system/tools/order.json":
                break
        made = hub.post("/api/v1/workspaces/{workspace_id}/chats", workspace_id=workspace, body={"goal": "Order three bolts"})
        for event in hub.watch_chat(workspace, made["chat_id"], after=0):
            if event["event"] == "permission_required":
                hub.post(
                    "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/permissions/{permission_id}",
                    workspace_id=workspace, chat_id=made["chat_id"], permission_id=event["data"]["permission_id"],
                    body={"outcome": "approved"},
                )
            if event["event"] == "done":
                words = event["data"]["message"]
                break
        assert '"count":7' in words and "3 of bolt are ordered" in words, words
    finally:
        running.kill()
        running.wait()
        server.stop()
