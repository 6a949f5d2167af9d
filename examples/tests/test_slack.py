"""The bot for Slack, with a hub and a stub of Slack."""

from __future__ import annotations

import hashlib
import hmac
import json
import queue
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from hub import Hub
from program import ROOT, Server

from buildscale import Client

SIGNING = "signing-secret-of-slack"


class Slack(ThreadingHTTPServer):
    """An incoming webhook. It refuses the first `failures` messages."""

    def __init__(self) -> None:
        self.failures = 0
        self.texts: queue.Queue[str] = queue.Queue()
        slack = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
                is_taken, slack.failures = slack.failures <= 0, slack.failures - 1
                self.send_response(200 if is_taken else 500)
                self.end_headers()
                self.wfile.write(b"ok")
                if is_taken:
                    slack.texts.put(sent["text"])

            def log_message(self, format: str, *args: Any) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


@pytest.fixture
def slack() -> Iterator[Slack]:
    server = Slack()
    yield server
    server.shutdown()
    server.server_close()


def command(bot: Server, text: str, trigger: str = "1", secret: str = SIGNING, age: int = 0) -> httpx.Response:
    """A command as Slack sends it."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    body = urlencode({"command": "/ask", "text": escaped, "user_name": "sam", "trigger_id": trigger}).encode()
    sent = str(int(time.time()) - age)
    signature = hmac.new(secret.encode(), f"v0:{sent}:".encode() + body, hashlib.sha256).hexdigest()
    headers = {
        "content-type": "application/x-www-form-urlencoded",
        "x-slack-request-timestamp": sent,
        "x-slack-signature": f"v0={signature}",
    }
    return httpx.post(f"{bot.url}/slack", content=body, headers=headers)


def test_a_command_starts_a_chat_and_the_channel_hears_its_question_and_its_answer(slack: Slack) -> None:
    server = Hub(
        BUILDSCALE__AI__SCRIPT=str(ROOT / "tests/script.yaml"),
        BUILDSCALE__AI__MODEL="scripted/script",
        BUILDSCALE__WEBHOOKS__ALLOW_PRIVATE="true",
    )
    hub = Client(server.url)
    workspace = hub.post("/api/v1/workspaces", body={"name": "parts"})["workspace_id"]
    webhooks = "/api/v1/workspaces/{workspace_id}/webhooks"
    made = hub.post(
        webhooks, workspace_id=workspace,
        body={"name": "Slack", "url": "http://127.0.0.1:9/hub", "events": ["turn.ended", "question.asked", "permission.asked"]},
    )  # fmt: skip
    bot = Server(
        "slack/bot.py",
        BUILDSCALE_URL=server.url,
        BUILDSCALE_WORKSPACE=workspace,
        BUILDSCALE_WEBHOOK_SECRET=made["secret"],
        SLACK_SIGNING_SECRET=SIGNING,
        SLACK_WEBHOOK_URL=f"http://127.0.0.1:{slack.server_port}/services/T/B/x",
    )
    try:
        webhook = made["webhook"]["webhook_id"]
        hub.patch(
            "/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}",
            workspace_id=workspace, webhook_id=webhook, body={"url": f"{bot.url}/hub"},
        )  # fmt: skip
        assert command(bot, "Which <bolt>?", secret="another").status_code == 401
        assert command(bot, "Which <bolt>?", age=400).status_code == 401, "a request that somebody has recorded"
        assert httpx.post(f"{bot.url}/hub", json={"type": "turn.ended", "data": {}}).status_code == 401
        assert "Write what you want to know" in command(bot, " ").json()["text"]

        # Slack is down at first, and the hub sends the question again.
        slack.failures = 1
        answer = command(bot, "Which <bolt>?").json()
        assert command(bot, "Which <bolt>?").json() == answer, "a command that comes again starts no second chat"
        chats = hub.get("/api/v1/workspaces/{workspace_id}/chats", workspace_id=workspace)["chats"]
        link = f"<{server.url}/#/w/{workspace}/chats/{chats[0]['chat_id']}>"
        assert (answer, len(chats)) == ({"response_type": "ephemeral", "text": f"I work on it: {link}"}, 1)
        asked = slack.texts.get(timeout=60)
        assert asked == f"I have a question:\n• M8 &amp; longer?\nAnswer here: {link}"

        chat = hub.get("/api/v1/workspaces/{workspace_id}/chats/{chat_id}", workspace_id=workspace, chat_id=chats[0]["chat_id"])
        hub.post(
            "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/answers/{question_id}",
            workspace_id=workspace, chat_id=chats[0]["chat_id"], question_id=chat["waiting_for"][0]["data"]["question_id"],
            body={"answers": {"size": "M10"}},
        )  # fmt: skip
        ended = slack.texts.get(timeout=60)
        assert ended.startswith("&lt;!channel&gt; the ") and "M10" in ended and ended.endswith(f"\n{link}"), ended

        # A person sends the delivery again: the channel has it already.
        of_webhook = {"workspace_id": workspace, "webhook_id": webhook}
        newest = f"{webhooks}/{{webhook_id}}/deliveries"
        # poll: no stream tells of deliveries
        while (delivery := hub.get(newest, **of_webhook)["deliveries"][0])["status"] != "delivered":
            pass
        hub.post(f"{newest}/{{delivery_id}}/retry", **of_webhook, delivery_id=delivery["delivery_id"])
        while (again := hub.get(newest, **of_webhook)["deliveries"][0])["attempts_made"] < 2:
            pass
        assert (again["type"], again["status"], slack.texts.qsize()) == ("turn.ended", "delivered", 0)
    finally:
        bot.kill()
        server.stop()
