"""The client of LangGraph for Python: assistants, a thread with runs, an interrupt, a join, the store, a refusal."""

import json
import os

from langgraph_sdk import get_sync_client

client = get_sync_client(
    url=os.environ["HUB"] + "/langgraph",
    api_key="any",
    headers={"X-Workspace-Id": os.environ["WORKSPACE"]},
)
out = {"assistants": any(one["graph_id"] == "assistant" for one in client.assistants.search(limit=100))}
thread = client.threads.create()["thread_id"]
said = {"messages": [{"role": "user", "content": "say it"}]}
events = list(client.runs.stream(thread, "assistant", input=said, stream_mode=["values", "messages-tuple", "updates"]))
out["events"] = sorted({event.event for event in events})
out["text"] = "".join(event.data[0]["content"] for event in events if event.event == "messages")

asks = client.runs.wait(thread, "assistant", input={"messages": [("user", "ask me")]})
out["asks"] = asks["__interrupt__"][0]["value"]["questions"][0]["name"]
answered = client.runs.wait(thread, "assistant", command={"resume": {"colour": "blue"}})
out["answered"] = answered["messages"][-1]["content"]

run = client.runs.create(thread, "assistant", input=said)
out["joined"] = client.runs.join(thread, run["run_id"])["messages"][-1]["content"]
out["status"] = client.runs.get(thread, run["run_id"])["status"]
out["again"] = sorted({event.event for event in client.runs.join_stream(thread, run["run_id"])})
out["history"] = len(client.threads.get_history(thread, limit=100)) > 4
client.store.put_item(["notes"], key="one", value={"text": "kept"})
out["store"] = client.store.get_item(["notes"], key="one")["value"]
try:
    client.runs.create(thread, "assistant", input=said, webhook="https://example.com")
    out["refused"] = "taken"
except Exception as error:
    out["refused"] = [type(error).__name__, error.response.json()["error"]["details"]["field"]]
print(json.dumps(out))
