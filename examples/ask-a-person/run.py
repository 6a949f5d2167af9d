"""Runs a flow, tells of each node as it ends, and asks you in the terminal what the flow asks people.

    python run.py plan_and_execute '{"goal": "Document the parser", "approve": true}'

BUILDSCALE_URL is the address of the hub, BUILDSCALE_TOKEN a token or API key. The output of the flow is all that goes to standard output.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from buildscale import Client, HubError
from buildscale.schema import Question


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def ask(question: Question) -> Any:
    """The answer of the person at the terminal. A text is taken as it is typed; any other type is JSON."""
    names = {True: "yes", False: "no"}
    buttons = " / ".join(names[one] if isinstance(one, bool) else str(one) for one in question.get("buttons") or [])
    say(f"? {question['question']}" + (f" [{buttons}]" if buttons else ""))
    kind = question["schema"].get("type") if isinstance(question["schema"], dict) else None
    while True:
        say(f"{question['name']}: ")
        typed = sys.stdin.readline()
        if not typed:
            sys.exit("Nobody is there to answer. The task waits: answer it later with `buildscale task answer`.")
        typed = typed.strip()
        if kind in (None, "string"):
            return typed
        try:
            return {"yes": True, "no": False}[typed.lower()] if kind == "boolean" else json.loads(typed)
        except (KeyError, ValueError):
            say(f"This is to be {'yes or no' if kind == 'boolean' else f'of the type {kind}, as JSON'}.")


def main(flow: str, goal: Any) -> int:
    with Client(os.environ.get("BUILDSCALE_URL", "http://127.0.0.1:8686"), os.environ.get("BUILDSCALE_TOKEN")) as hub:
        workspace = os.environ.get("BUILDSCALE_WORKSPACE") or hub.post("/api/v1/workspaces", body={"name": "flows"})["workspace_id"]
        task = hub.post("/api/v1/workspaces/{workspace_id}/flows/{flow}/tasks", workspace_id=workspace, flow=flow, body={"input": goal})["task_id"]
        say(f"task {task}")
        for event in hub.watch_task(workspace, task, after=0):
            if event["event"] == "node_finished":
                say(f"{event['data']['status']:8} {event['data']['node']}")
            elif event["event"] == "question":
                node = event["data"]["node"]
                answered = False
                while not answered:
                    answers = {one["name"]: ask(one) for one in event["data"]["questions"]}
                    try:
                        hub.post(
                            "/api/v1/workspaces/{workspace_id}/tasks/{task_id}/answers/{node}",
                            workspace_id=workspace, task_id=task, node=node, body={"answers": answers},
                        )  # fmt: skip
                        answered = True
                    except HubError as refusal:
                        if refusal.code != "INVALID_ARGUMENT":
                            raise
                        say(f"This answer does not fit: {refusal.message}")
            elif event["event"] == "done":
                print(json.dumps(event["data"]["output"], indent=2, ensure_ascii=False))
                return 0 if event["data"]["status"] == "success" else 1
        return 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], json.loads(sys.argv[2])))
