"""A model server for the tests of real coding agents: four wire formats, and answers that follow from the last words of the person.

`hello`: a text. `run` and `spy`: a call of the agent's own tool for commands, which makes `ended.txt` at last; then a text. `slow`: the beginning of a text, and no end.
Everything else, such as a title that an agent asks for: a short text. It prints its port."""
import http.server, itertools, json, re, sys, threading

COMMANDS = {"run": "touch made.txt; touch ended.txt", "spy": "cp ../secret.txt made.txt; touch ended.txt"}
# Agents take the same id for the same call.
numbers = itertools.count(1)
log = open(sys.argv[1], "a") if len(sys.argv) > 1 else None


def texts(value):
    """All texts of a message, in whichever format."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(texts(one) for one in value)
    if isinstance(value, dict):
        return "\n".join(texts(value[key]) for key in ("text", "content", "parts") if key in value)
    return ""


def wanted(words, has_result):
    words = words.strip().split("\n")[-1].strip().lower()
    if has_result:
        return "after"
    for verb in ("hello", "run", "spy", "slow"):
        if re.search(r"\b%s it now\b" % verb, words):
            return verb
    return "other"


TEXT = {"hello": "Hello from the model.", "after": "It is over.", "other": "A title", "slow": "Slowly"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self.plain({})

    def do_GET(self):
        self.plain({"data": [{"id": "stub", "object": "model"}], "models": []})

    def plain(self, body):
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def events(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, data, name=None):
        if name:
            self.wfile.write(("event: %s\n" % name).encode())
        self.wfile.write(("data: %s\n\n" % (data if isinstance(data, str) else json.dumps(data))).encode())
        self.wfile.flush()

    def hang(self):
        # The thread ends with the server.
        threading.Event().wait()

    def do_POST(self):
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}") if length else {}
        if log:
            log.write(json.dumps({"path": self.path, "body": body}) + "\n")
            log.flush()
        try:
            if "/responses" in self.path:
                self.openai(body)
            elif "/chat/completions" in self.path:
                self.completions(body)
            elif "enerateContent" in self.path:
                self.gemini(body)
            elif "count_tokens" in self.path:
                self.plain({"input_tokens": 10})
            elif "/messages" in self.path:
                self.anthropic(body)
            else:
                self.plain({})
        except OSError:
            pass

    def openai(self, body):
        items = body.get("input") or []
        users = [texts(item.get("content")) for item in items if item.get("role") == "user"]
        kind = wanted(users[-1] if users else "", bool(items) and items[-1].get("type", "").endswith("_output"))
        names = [tool.get("name") or tool.get("type") for tool in body.get("tools") or []]
        self.events()
        self.event({"type": "response.created", "response": {"id": "r1"}}, "response.created")
        if kind in COMMANDS:
            if "exec_command" in names:
                # By itself it waits a moment for the command, and goes on without it on a busy machine.
                name, args = "exec_command", {"cmd": COMMANDS[kind], "yield_time_ms": 30000}
            elif "shell_command" in names:
                name, args = "shell_command", {"command": COMMANDS[kind]}
            else:
                name, args = "shell", {"command": ["bash", "-lc", COMMANDS[kind]]}
            item = {"type": "function_call", "id": "f1", "call_id": "c%d" % next(numbers), "name": name, "arguments": json.dumps(args)}
        else:
            text = TEXT[kind]
            item = {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
            start = {"type": "message", "id": "m1", "role": "assistant", "content": []}
            self.event({"type": "response.output_item.added", "output_index": 0, "item": start}, "response.output_item.added")
            delta = {"type": "response.output_text.delta", "item_id": "m1", "output_index": 0, "content_index": 0, "delta": text}
            self.event(delta, "response.output_text.delta")
            if kind == "slow":
                return self.hang()
        self.event({"type": "response.output_item.done", "output_index": 0, "item": item}, "response.output_item.done")
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "input_tokens_details": None, "output_tokens_details": None}
        self.event({"type": "response.completed", "response": {"id": "r1", "output": [item], "usage": usage}}, "response.completed")

    def completions(self, body):
        messages = body.get("messages") or []
        users = [texts(message.get("content")) for message in messages if message.get("role") == "user"]
        kind = wanted(users[-1] if users else "", bool(messages) and messages[-1].get("role") == "tool")
        names = [tool["function"]["name"] for tool in body.get("tools") or []]
        if kind in COMMANDS and "bash" not in names:
            kind = "other"
        base = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "stub"}
        chunk = lambda delta, end=None: {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
        self.events()
        if kind in COMMANDS:
            function = {"name": "bash", "arguments": json.dumps({"command": COMMANDS[kind], "description": "makes a file"})}
            call = {"index": 0, "id": "c%d" % next(numbers), "type": "function", "function": function}
            self.event(chunk({"role": "assistant", "tool_calls": [call]}))
            self.event(chunk({}, "tool_calls"))
        else:
            self.event(chunk({"role": "assistant", "content": TEXT[kind]}))
            if kind == "slow":
                return self.hang()
            self.event(chunk({}, "stop"))
        self.event({**base, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
        self.event("[DONE]")

    def gemini(self, body):
        contents = body.get("contents") or []
        users = [texts(one) for one in contents if one.get("role") == "user" and texts(one)]
        has_result = bool(contents) and any("functionResponse" in part for part in contents[-1].get("parts") or [])
        kind = wanted(users[-1] if users else "", has_result)
        declared = [one["name"] for tool in body.get("tools") or [] for one in tool.get("functionDeclarations") or []]
        if kind in COMMANDS and "run_shell_command" not in declared:
            kind = "other"
        if kind in COMMANDS:
            part = {"functionCall": {"name": "run_shell_command", "args": {"command": COMMANDS[kind], "description": "makes a file"}}}
        else:
            part = {"text": TEXT[kind]}
        answer = {
            "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
        }
        if "streamGenerateContent" not in self.path:
            # The program asks which of its models is to answer.
            choice = {"complexity_reasoning": "simple", "complexity_score": 1, "reasoning": "x", "model_choice": "flash"}
            answer["candidates"][0]["content"]["parts"] = [{"text": json.dumps(choice)}]
            return self.plain(answer)
        self.events()
        if kind == "slow":
            del answer["candidates"][0]["finishReason"]
            self.event(answer)
            return self.hang()
        self.event(answer)

    def anthropic(self, body):
        users = [message.get("content") for message in body.get("messages") or [] if message.get("role") == "user"]
        last = users[-1] if users else ""
        blocks = last if isinstance(last, list) else [{"type": "text", "text": last}]
        kinds = ["after" if one.get("type") == "tool_result" else wanted(one.get("text", ""), False) for one in blocks]
        # Reminders of the program are blocks of their own.
        kind = next((kind for kind in reversed(kinds) if kind != "other"), "other")
        names = [tool.get("name") for tool in body.get("tools") or []]
        if kind in COMMANDS and "Bash" not in names:
            kind = "other"
        usage = {"input_tokens": 1, "output_tokens": 1}
        if kind in COMMANDS:
            block = {"type": "tool_use", "id": "toolu_%d" % next(numbers), "name": "Bash", "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps({"command": COMMANDS[kind], "description": "makes a file"})}
            stop, whole = "tool_use", {**block, "input": {"command": COMMANDS[kind]}}
        else:
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": TEXT[kind]}
            stop, whole = "end_turn", {"type": "text", "text": TEXT[kind]}
        message = {"id": "msg_%d" % next(numbers), "type": "message", "role": "assistant", "model": body.get("model"), "stop_sequence": None, "usage": usage}
        if not body.get("stream"):
            return self.plain({**message, "content": [whole], "stop_reason": stop})
        self.events()
        self.event({"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}, "message_start")
        self.event({"type": "content_block_start", "index": 0, "content_block": block}, "content_block_start")
        self.event({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")
        if kind == "slow":
            return self.hang()
        self.event({"type": "content_block_stop", "index": 0}, "content_block_stop")
        end = {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 1}}
        self.event(end, "message_delta")
        self.event({"type": "message_stop"}, "message_stop")


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
# It ends with the holder of its input.
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
