"""A bot for Slack, and for chats that take the same webhooks: `/ask` starts a chat, and its answers and questions are posted to a channel.

    python bot.py

| variable | is |
|---|---|
| BUILDSCALE_URL, BUILDSCALE_TOKEN | the hub, and a token or API key |
| BUILDSCALE_WORKSPACE | the workspace of the chats |
| BUILDSCALE_WEBHOOK_SECRET | the secret of the hub's webhook, which posts to /hub here |
| SLACK_SIGNING_SECRET | the signing secret of the app, whose command posts to /slack here |
| SLACK_WEBHOOK_URL | the incoming webhook of the channel |
| PORT | where it listens, 8788 |
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import html
import json
import os
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import httpx

from buildscale import Client, HubError, Unreachable

LONGEST = 1024 * 1024
REMEMBERED = 10_000


def is_fresh(sent: str) -> bool:
    """An old request may be one that somebody has recorded."""
    return sent.isascii() and sent.isdigit() and abs(time.time() - int(sent)) < 300


def is_of_hub(headers: Mapping[str, str], body: bytes, secret: str) -> bool:
    """The signature of Standard Webhooks. There are two of them for a day after a new secret."""
    sent = headers.get("webhook-timestamp", "")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers.get('webhook-id', '')}.{sent}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    given = headers.get("webhook-signature", "").encode().split()
    return is_fresh(sent) and any(hmac.compare_digest(expected, one) for one in given)


def is_of_slack(headers: Mapping[str, str], body: bytes, secret: str) -> bool:
    sent = headers.get("x-slack-request-timestamp", "")
    expected = "v0=" + hmac.new(secret.encode(), f"v0:{sent}:".encode() + body, hashlib.sha256).hexdigest()
    return is_fresh(sent) and hmac.compare_digest(expected.encode(), headers.get("x-slack-signature", "").encode())


def escaped(text: str) -> str:
    """Slack reads `<!channel>` as a call of everybody, so an agent's words are escaped as Slack asks."""
    return html.escape(text, quote=False)


class Bot:
    """Starts chats, and posts what comes of them."""

    def __init__(self, hub: Client, workspace: str, slack: httpx.Client, channel: str) -> None:
        self.hub, self.workspace, self.slack, self.channel = hub, workspace, slack, channel
        self.posted: OrderedDict[str, None] = OrderedDict()
        # A delivery that comes again waits for the first one, and is then known.
        self.lock = threading.Lock()

    def ask(self, command: dict[str, str]) -> str:
        """Starts a chat. A command that somebody sends again starts no second one: its trigger is the idempotency key."""
        goal = html.unescape(command.get("text", "")).strip()
        if not goal:
            return f"Write what you want to know: {command['command']} How many bolts are there?"
        made = self.hub.post(
            "/api/v1/workspaces/{workspace_id}/chats",
            workspace_id=self.workspace, body={"goal": goal}, idempotency_key=f"slack-{command['trigger_id']}",
        )  # fmt: skip
        return f"I work on it: {self.link(made['chat_id'])}"

    def tell(self, event: dict[str, Any], id: str) -> None:
        """Posts an event once. If Slack does not take it, the hub sends it again, for a day."""
        text = self.words(event["type"], event["data"])
        with self.lock:
            if text and id not in self.posted:
                self.slack.post(self.channel, json={"text": text}).raise_for_status()
            self.posted[id] = None
            if len(self.posted) > REMEMBERED:
                self.posted.popitem(last=False)

    def words(self, kind: str, data: dict[str, Any]) -> str | None:
        """The message for an event; nothing for one that the channel does not hear of."""
        at = self.link(data["chat_id"]) if "chat_id" in data else ""
        if kind == "turn.ended":
            return f"{escaped(data['text'] or data.get('reason') or data['stop_reason'])}\n{at}"
        if kind == "question.asked" and at:
            questions = "\n".join(f"• {escaped(one['question'])}" for one in data["questions"])
            return f"I have a question:\n{questions}\nAnswer here: {at}"
        if kind == "permission.asked":
            return f"May I call {escaped(data['tool'])}? {escaped(data['reason'])}\nAnswer here: {at}"
        return "The webhook works." if kind == "webhook.test" else None

    def link(self, chat: str) -> str:
        return f"<{self.hub.url}/#/w/{self.workspace}/chats/{chat}>"


def handler(bot: Bot, of_hub: str, of_slack: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = self.headers.get("content-length", "")
            if not length.isdigit() or int(length) > LONGEST:
                return self.reply(413, {"error": "The length is not that of a webhook."})
            body, headers = self.rfile.read(int(length)), {name.lower(): value for name, value in self.headers.items()}
            checks = {"/hub": (is_of_hub, of_hub, self.take_event), "/slack": (is_of_slack, of_slack, self.take_command)}
            if self.path not in checks:
                return self.reply(404, {"error": "There are /hub and /slack."})
            is_signed, secret, take = checks[self.path]
            if not is_signed(headers, body, secret):
                return self.reply(401, {"error": "The signature is wrong, or old."})
            try:
                take(body)
            except (ValueError, KeyError, TypeError):
                self.reply(400, {"error": "This is not what is sent here."})

        def take_event(self, body: bytes) -> None:
            try:
                bot.tell(json.loads(body), self.headers["webhook-id"])
                self.reply(200, {})
            except httpx.HTTPError as failure:
                print(f"Slack did not take a message: {failure}", flush=True)
                self.reply(502, {"error": "Slack did not take it."})

        def take_command(self, body: bytes) -> None:
            try:
                said = bot.ask({name: values[0] for name, values in parse_qs(body.decode()).items()})
            except (HubError, Unreachable) as refusal:
                said = f"That did not work: {escaped(str(refusal))}"
            # Slack shows the person no answer with another status.
            self.reply(200, {"response_type": "ephemeral", "text": said})

        def reply(self, status: int, body: dict[str, str]) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def main() -> None:
    try:
        workspace, channel = os.environ["BUILDSCALE_WORKSPACE"], os.environ["SLACK_WEBHOOK_URL"]
        of_hub, of_slack = os.environ["BUILDSCALE_WEBHOOK_SECRET"], os.environ["SLACK_SIGNING_SECRET"]
    except KeyError as missing:
        sys.exit(f"{missing} is not set.\n\n{__doc__}")
    # Slack waits three seconds for the answer to a command, the hub fifteen for that to an event.
    hub = Client(os.environ.get("BUILDSCALE_URL", "http://127.0.0.1:8686"), os.environ.get("BUILDSCALE_TOKEN"), patience_s=2)
    bot = Bot(hub, workspace, httpx.Client(timeout=10), channel)
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8788"))), handler(bot, of_hub, of_slack))
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
