"""Receives webhooks of GitHub. Each new issue starts the flow beside this file, and a comment that a person approved is posted.

    python receiver.py

| variable | is |
|---|---|
| BUILDSCALE_URL, BUILDSCALE_TOKEN | the hub, and a token or API key |
| BUILDSCALE_WORKSPACE | the workspace with the code |
| GITHUB_WEBHOOK_SECRET | the secret of the webhook: the receiver takes nothing that is not signed with it |
| GITHUB_TOKEN | a token that may write issues |
| GITHUB_API_URL | another address than https://api.github.com |
| PORT | where it listens, 8787 |
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from buildscale import Client, HubError

FLOW = "github_issues"
LONGEST = 25 * 1024 * 1024


def put_flow(hub: Client, workspace: str) -> None:
    """Puts the folder of the flow into the workspace. A file that is there already gets no new version."""
    folder = Path(__file__).parent / "flow"
    for file in sorted(folder.rglob("*.*")):
        path = f"/system/flows/{FLOW}/{file.relative_to(folder)}"
        hub.put(
            "/api/v1/workspaces/{workspace_id}/files/by-path",
            workspace_id=workspace, query={"path": path}, body={"content": file.read_text()},
        )  # fmt: skip


def issue_of(payload: dict[str, Any]) -> dict[str, Any]:
    """The input of the flow: what it needs of the payload, and no more."""
    issue = payload["issue"]
    return {
        "repository": payload["repository"]["full_name"],
        "number": issue["number"],
        "title": issue["title"],
        "body": (issue["body"] or "")[:65_536],
        "author": issue["user"]["login"],
    }


class Receiver:
    """Starts tasks, and posts what comes of them."""

    def __init__(self, hub: Client, workspace: str, github: httpx.Client) -> None:
        self.hub, self.workspace, self.github = hub, workspace, github
        self.followed: set[str] = set()
        self.lock = threading.Lock()

    def receive(self, payload: dict[str, Any], delivery: str) -> str:
        """Starts a task. A delivery that GitHub sends again starts no second one: its id is the idempotency key."""
        issue = issue_of(payload)
        task = self.hub.post(
            "/api/v1/workspaces/{workspace_id}/flows/{flow}/tasks",
            workspace_id=self.workspace, flow=FLOW, body={"input": issue}, idempotency_key=f"github-{delivery}",
        )["task_id"]  # fmt: skip
        self.begin_to_follow(task)
        return task

    def go_on(self) -> None:
        """Follows the tasks of before a restart that have not ended."""
        for task in self.hub.all("/api/v1/workspaces/{workspace_id}/tasks", workspace_id=self.workspace, query={"flow": FLOW}):
            if task["phase"] != "finished":
                self.begin_to_follow(task["task_id"])

    def begin_to_follow(self, task: str) -> None:
        with self.lock:
            if task not in self.followed:
                self.followed.add(task)
                threading.Thread(target=self.follow, args=(task,), daemon=True).start()

    def follow(self, task: str) -> None:
        """Waits for the end of a task, hours if a person takes hours, and posts its comment."""
        issue: Any = None
        for event in self.hub.watch_task(self.workspace, task, after=0):
            if event["event"] == "node_finished" and event["data"]["node"] == "receive":
                issue = event["data"]["output"]
            if event["event"] == "question":
                print(f"task {task} waits for a person: buildscale task answer {task} --approve", flush=True)
            if event["event"] == "done":
                output = event["data"]["output"]
                print(f"task {task} ended: {event['data']['status']}", flush=True)
                if issue and event["data"]["exit"] == "done":
                    self.post(task, issue, output)

    def post(self, task: str, issue: dict[str, Any], output: dict[str, Any]) -> None:
        place = f"/repos/{issue['repository']}/issues/{issue['number']}"
        mark = f"<!-- {task} -->"
        # The mark tells that the comment is there, so that a restart posts no second one.
        if any(mark in comment["body"] for comment in self.github.get(f"{place}/comments").raise_for_status().json()):
            return
        self.github.post(f"{place}/comments", json={"body": f"{output['comment']}\n\n{mark}"}).raise_for_status()
        self.github.post(f"{place}/labels", json={"labels": output["labels"]}).raise_for_status()
        print(f"task {task} commented on {issue['repository']}#{issue['number']}", flush=True)


def is_signed(body: bytes, signature: str, secret: str) -> bool:
    expected = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(f"sha256={expected}", signature)


def handler(receiver: Receiver, secret: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            if not 0 < length <= LONGEST:
                return self.reply(413, "The length is not that of a webhook.")
            body = self.rfile.read(length)
            if not is_signed(body, self.headers.get("x-hub-signature-256", ""), secret):
                return self.reply(401, "The signature is wrong.")
            try:
                payload = json.loads(body)
                if self.headers.get("x-github-event") != "issues" or payload["action"] != "opened":
                    return self.reply(200, "Nothing to do.")
                self.reply(202, receiver.receive(payload, self.headers["x-github-delivery"]))
            except (ValueError, KeyError, TypeError):
                self.reply(400, "This is no event of an issue.")
            except HubError as refusal:
                self.reply(502 if refusal.is_passing else 422, str(refusal))

        def reply(self, status: int, text: str) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def main() -> None:
    try:
        secret, workspace = os.environ["GITHUB_WEBHOOK_SECRET"], os.environ["BUILDSCALE_WORKSPACE"]
    except KeyError as missing:
        sys.exit(f"{missing} is not set.\n\n{__doc__}")
    github = httpx.Client(
        base_url=os.environ.get("GITHUB_API_URL", "https://api.github.com"),
        headers={"authorization": f"Bearer {os.environ.get('GITHUB_TOKEN', '')}", "accept": "application/vnd.github+json"},
        timeout=30,
    )
    hub = Client(os.environ.get("BUILDSCALE_URL", "http://127.0.0.1:8686"), os.environ.get("BUILDSCALE_TOKEN"))
    put_flow(hub, workspace)
    receiver = Receiver(hub, workspace, github)
    receiver.go_on()
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8787"))), handler(receiver, secret))
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
