"""A coding agent for tests: it speaks ACP over its standard streams and does what the words of the prompt say."""
import json, os, subprocess, sys, threading, time

START = sys.argv[1] if len(sys.argv) > 1 else ""
lock, waiting, cancelled, numbers = threading.Lock(), {}, threading.Event(), iter(range(1, 1 << 30))


def send(message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def update(session, what, **fields):
    send({"method": "session/update", "params": {"sessionId": session, "update": {"sessionUpdate": what, **fields}}})


def say(session, text):
    update(session, "agent_message_chunk", content={"type": "text", "text": text})


def announce(session):
    update(session, "available_commands_update", availableCommands=[{"name": "web", "description": "Looks it up"}])


def begin(method, params):
    number, done = "q%d" % next(numbers), threading.Event()
    waiting[number] = [done, None]
    send({"id": number, "method": method, "params": params})
    return number, done


def ask(method, params):
    number, done = begin(method, params)
    done.wait()
    return waiting.pop(number)[1]


def permission(session, number, command):
    options = [("once", "allow_once"), ("ever", "allow_always"), ("no", "reject_once")]
    call = {"toolCallId": number, "title": command, "kind": "execute", "rawInput": {"command": command}}
    update(session, "tool_call", status="pending", **call)
    return {
        "sessionId": session, "toolCall": {"toolCallId": number},
        "options": [{"optionId": name, "name": name, "kind": kind} for name, kind in options],
    }


def options(effort):
    values = [{"value": "low", "name": "Low"}, {"value": "high", "name": "High"}]
    return [{"id": "effort", "name": "Effort", "type": "select", "currentValue": effort, "options": values}]


def outcome(answer):
    return (answer.get("result") or {}).get("outcome", {}).get("optionId", "cancelled")


def work(session, blocks):
    words = blocks[-1]["text"].split()
    verb, rest = words[0], " ".join(words[1:])
    if verb == "say":
        update(session, "agent_thought_chunk", content={"type": "text", "text": "hm"})
        for word in words[1:]:
            say(session, word + " ")
    elif verb == "blocks":
        say(session, json.dumps([block["text"] for block in blocks]))
    elif verb == "call":
        update(session, "tool_call", toolCallId="t1", title="make", kind="execute", status="pending", rawInput={"command": "make"})
        update(session, "tool_call_update", toolCallId="t1", status="completed", rawOutput="built")
    elif verb == "ask":
        say(session, outcome(ask("session/request_permission", permission(session, "t1", rest))))
    elif verb == "asktwice":
        first = begin("session/request_permission", permission(session, "t1", "one"))
        second = begin("session/request_permission", permission(session, "t2", "two"))
        for number, done in (first, second):
            done.wait()
            say(session, outcome(waiting.pop(number)[1]) + " ")
    elif verb == "read":
        say(session, json.dumps(ask("fs/read_text_file", {"sessionId": session, "path": rest, "line": 2, "limit": 1})))
    elif verb == "write":
        say(session, json.dumps(ask("fs/write_text_file", {"sessionId": session, "path": rest, "content": "written"})))
    elif verb == "put":
        name, content = words[1], " ".join(words[2:])
        at = {"sessionId": session, "path": os.path.join(os.getcwd(), name), "content": content}
        say(session, json.dumps(ask("fs/write_text_file", at).get("error", {}).get("message", "written")))
    elif verb in ("sh", "late", "mess"):
        if verb == "late":
            ask("session/request_permission", permission(session, "t1", rest))
        location = [{"path": os.getcwd()}]
        update(session, "tool_call", toolCallId="sh", title=rest, kind="other", status="pending", locations=location)
        done = subprocess.run(rest, shell=True, capture_output=True, text=True)
        if verb == "mess":
            say(session, "begun")
            cancelled.wait()
            return "cancelled"
        update(session, "tool_call_update", toolCallId="sh", status="completed", rawOutput=done.stdout)
        say(session, done.stdout + done.stderr)
    elif verb == "other":
        say(session, json.dumps(ask("other/method", {"sessionId": session})))
    elif verb == "run":
        made = ask("terminal/create", {"sessionId": session, "command": "sh", "args": ["-c", rest]})
        if "error" in made:
            say(session, json.dumps(made))
            return "end_turn"
        at = {"sessionId": session, "terminalId": made["result"]["terminalId"]}
        ended = ask("terminal/wait_for_exit", at)["result"]
        output = ask("terminal/output", at)["result"]["output"]
        ask("terminal/release", at)
        say(session, json.dumps({"exit": ended["exitCode"], "output": output}))
    elif verb == "settings":
        say(session, json.dumps(dict(chosen, session=session), sort_keys=True))
    elif verb == "choose":
        update(session, "current_mode_update", currentModeId=words[1])
        update(session, "config_option_update", configOptions=options(words[2]))
        say(session, "chosen")
    elif verb == "kinds":
        kinds = [block["type"] if block["type"] != "text" else "text: " + block["text"] for block in blocks]
        say(session, json.dumps(kinds))
    elif verb == "env":
        say(session, " ".join(sorted(os.environ)))
    elif verb in ("child", "stray"):
        say(session, str(subprocess.Popen(["sleep", "600"], start_new_session=verb == "stray").pid))
        cancelled.wait()
    elif verb == "crash":
        sys.stderr.write("about to fail with hunter2-secret\n")
        sys.stderr.flush()
        os._exit(7)
    elif verb == "flood":
        while True:
            say(session, "x" * 100_000)
    elif verb == "garbage":
        while True:
            with lock:
                sys.stdout.write("this is no JSON\n")
    elif verb == "long":
        with lock:
            sys.stdout.write("x" * (17 << 20))
            sys.stdout.flush()
    elif verb == "slow":
        say(session, "begun")
        cancelled.wait()
        return "cancelled"
    elif verb == "deaf":
        say(session, "begun")
        time.sleep(600)
    elif verb == "odd":
        for params in ([], "x", 7, None):
            send({"method": "session/update", "params": params})
        say(session, "still here")
    elif verb == "id":
        send({"id": ["x"], "method": "other/method", "params": {}})
        cancelled.wait()
    elif verb == "waits":
        made = ask("terminal/create", {"sessionId": session, "command": "sleep", "args": ["600"]})
        at = {"sessionId": session, "terminalId": made["result"]["terminalId"]}
        number, done = [begin("terminal/wait_for_exit", at) for _ in range(int(words[1]))][-1]
        done.wait()
        say(session, waiting[number][1]["error"]["message"])
    elif verb == "because":
        return words[1] * 1000
    elif verb == "logout":
        raise RuntimeError("Authentication required")
    elif verb == "overloaded":
        raise RuntimeError("the model is overloaded")
    elif verb == "refuse":
        raise RuntimeError("it does not want to")
    return "cancelled" if cancelled.is_set() else "end_turn"


def perform(message):
    try:
        reason = work(message["params"]["sessionId"], message["params"]["prompt"])
        send({"id": message["id"], "result": {"stopReason": reason}})
    except RuntimeError as error:
        code = -32603 if str(error) == "it does not want to" else -32000
        send({"id": message["id"], "error": {"code": code, "message": str(error)}})


chosen = {}


def answer(message):
    method, params = message["method"], message["params"]
    if method == "session/set_mode":
        if params["modeId"] == "fly":
            raise ValueError("there is no such mode")
        chosen["mode"] = params["modeId"]
    if method == "session/set_model":
        chosen["model"] = params["modelId"]
    if method == "session/set_config_option":
        chosen[params["configId"]] = params["value"]
    if method == "initialize":
        return {"protocolVersion": 9 if START == "version" else 1, "agentCapabilities": {"loadSession": START != "forgets", "promptCapabilities": {"image": START == "sees", "audio": START == "hears", "embeddedContext": START == "embeds"}}, "authMethods": [{"id": "chatgpt", "name": "Log in"}, {"id": "api-key", "name": "Key"}, {}]}
    if method == "session/new":
        if START == "out":
            raise PermissionError("Authentication required")
        announce("s-%d" % os.getpid())
        modes = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "plan", "name": "Plan"}]}
        session = {"nameless": "", "named": "s" * 1025}.get(START, "s-%d" % os.getpid())
        return {"sessionId": session, "modes": modes, "configOptions": options("low")}
    if method == "session/load":
        for kind, text in (("user", "hello"), ("agent", "hi "), ("agent", "there")):
            update(params["sessionId"], kind + "_message_chunk", content={"type": "text", "text": text})
        update(params["sessionId"], "tool_call", toolCallId="old", title="make", kind="execute", status="completed")
        update(params["sessionId"], "agent_message_chunk", content={"type": "text", "text": "It is built."})
        announce(params["sessionId"])
        return {}
    return {}


if START == "exit":
    sys.stderr.write("no licence\n")
    sys.exit(3)
if START == "silent":
    time.sleep(600)
if START == "noise":
    print("Welcome!", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "session/prompt":
        cancelled.clear()
        threading.Thread(target=perform, args=(message,), daemon=True).start()
    elif message.get("method") == "session/cancel":
        cancelled.set()
    elif "method" in message:
        try:
            send({"id": message["id"], "result": answer(message)})
        except ValueError as error:
            send({"id": message["id"], "error": {"code": -32602, "message": str(error)}})
        except PermissionError as error:
            send({"id": message["id"], "error": {"code": -32000, "message": str(error)}})
    elif message["id"] in waiting:
        waiting[message["id"]][1] = message
        waiting[message["id"]][0].set()
