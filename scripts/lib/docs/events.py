"""reference/chat-events.md, task-events.md and workspace-events.md: from the enums of events and from the functions that put them on the wire."""

import re

import rust
from rust import Fault, bare, cell, table

JSON = {
    "String": "string", "str": "string", "bool": "boolean", "f64": "number", "Value": "any", "Timestamp": "string, RFC 3339",
    "Uuid": "string, an id", "FilePath": "string, a path", "NodeId": "string, a node", "ChildName": "string", "Sha256": "string", "Code": "string, an [error code](errors.md)",
}  # fmt: skip


def json_type(type_):
    """The JSON type of a Rust type, and the type whose documentation says more."""
    name, optional = bare(type_)
    inner = re.fullmatch(r"Vec<(.+)>", name)
    if inner:
        return f"array of {json_type(inner.group(1))[0]}", optional
    if name.startswith(("Map<", "serde_json::Map<", "BTreeMap<")):
        return "object", optional
    if re.fullmatch(r"[ui](8|16|32|64|size)", name):
        return "integer", optional
    if name in JSON:
        return JSON[name], optional
    if name.endswith("Id"):
        return "string, an id", optional
    item = rust.find(name, "shared/domain")
    if item and item.kind == "enum" and not any(v.fields or v.payload for v in item.variants):
        return "string: " + ", ".join(f"`{rust.renamed(v, item.attrs)}`" for v in item.variants), optional
    return f"object, `{name}`" if item else name, optional


class Arms:
    """The arms of the function `encode`: an event's name on the wire, and where each key of its data comes from."""

    def __init__(self, enum, text, path):
        self.enum, self.text, self.path = enum, text, path
        at = re.search(rf"pub fn encode\(event: &{enum.name}\)[^{{]*\{{", text)
        if not at:
            raise Fault(f"{path} has no `pub fn encode(event: &{enum.name})`: change the generator")
        body = text[at.end() - 1 : rust.balanced(text, at.end() - 1)]
        match = re.search(r"match event \{", body)
        inside = body[match.end() : rust.balanced(body, match.end() - 1) - 1]
        self.variants = {variant.name: variant for variant in enum.variants}
        self.arms = []
        for names, code in self.split(re.sub(r"^\s*//.*$", "", inside, flags=re.M), enum.name):
            self.arms += self.facts(names[0], code) or [(names, code)]

    def facts(self, name, code):
        """The arms of an event that holds one of several facts, which clients see as events of their own."""
        match = re.match(r"match &\*\*(\w+) \{", code.strip())
        if not match:
            return []
        at = next(field for field in self.variants[name].fields if field.name == match.group(1))
        facts = rust.find(bare(at.type)[0], "shared/domain")
        del self.variants[name]
        self.variants |= {f"{facts.name}::{variant.name}": variant for variant in facts.variants}
        inside = code.strip()[match.end() : rust.balanced(code.strip(), match.end() - 1) - 1]
        return [([f"{facts.name}::{each}" for each in names], arm) for names, arm in self.split(inside, facts.name)]

    def split(self, text, enum):
        at = 0
        pattern = re.compile(rf"\s*((?:{enum}::\w+(?: \{{[^}}]*\}}|\((?:\w+ \{{[^}}]*\}}|[^)]*)\))?\s*\|?\s*)+)=>\s*")
        while text[at:].strip():
            match = pattern.match(text, at)
            if not match:
                raise Fault(f"{self.path}: no arm of {enum}: {text[at:at + 60]!r}")
            at = match.end()
            if text[at] == "{":
                end = rust.balanced(text, at)
                code = text[at:end]
                at = end + (1 if text[end : end + 1] == "," else 0)
            else:
                code = rust.split_first(text[at:])
                at += len(code) + 1
            yield re.findall(rf"{enum}::(\w+)", match.group(1)), code

    def keys(self, code, depth=0):
        """The keys of the data, with the expression of each and whether it may be left out."""
        found = {}
        for match in re.finditer(r"json!\(\{", code):
            # Objects inside of the data are described with their key.
            if re.search(r"(\] = |\| )$", code[: match.start()]):
                continue
            inside = code[match.end() : rust.balanced(code, match.end() - 1) - 1]
            for pair in rust.split(inside):
                key, _, expression = pair.partition(":")
                if key.startswith('"'):
                    found.setdefault(key.strip('"'), (expression.strip(), False))
        for key, expression in re.findall(r'data\["(\w+)"\] = json!\(((?:[^()]|\([^()]*\))+)\)', code):
            found.setdefault(key, (expression, True))
        for name, argument in re.findall(r"\b(\w+)\((\w[\w.]*)(?:\.as_str\(\))?(?:, \w+)?\)", code):
            inner = re.search(rf"^fn {name}\((\w+): &(\w+)[^{{]*\{{", self.text, re.M)
            if inner and depth < 2:
                body = self.text[inner.end() - 1 : rust.balanced(self.text, inner.end() - 1)]
                for key, (expression, optional) in self.keys(body, depth + 1).items():
                    moved = re.sub(rf"^{inner.group(1)}\b", argument, expression)
                    found.setdefault(key, (moved, optional))
        # A helper with two arguments: the second is the struct.
        for name, _, argument in re.findall(r"\b(\w+)\((\w+)\.as_str\(\), (\w+)\)", code):
            inner = re.search(rf"^fn {name}\((\w+): &str, (\w+): &(\w+)[^{{]*\{{", self.text, re.M)
            if inner:
                body = self.text[inner.end() - 1 : rust.balanced(self.text, inner.end() - 1)]
                for key, (expression, optional) in self.keys(body, depth + 1).items():
                    found.setdefault(key, (re.sub(rf"^{inner.group(2)}\b", argument, expression), optional))
        if re.search(r"with_error\(", code):
            found.setdefault("error", ("error", True))
        return found


def resolve(key, expression, variant, arms):
    """The type and the documentation of the value of an expression of an arm."""
    path = re.sub(r"^(args_data|\w+_data)\((\w+)\)$", r"\2", expression)
    path = re.sub(r"\.as_ref\(\)|\.name\(\)|\.as_str\(\)", "", path)
    if path.startswith('"'):
        return f"string: `{rust.unquote(path)}`", ""
    if path.startswith(("crate::Code::", "Code::")):
        return f"string: `{rust.cased(path.split('::')[-1], 'SCREAMING_SNAKE_CASE')}`", "See [errors](errors.md)."
    names = path.split(".")
    fields = {field.name: field for field in variant.fields}
    if names[0] == "true" and key in fields:
        return "boolean: `true`", fields[key].doc
    if path.startswith("{"):
        inner = re.findall(r'"(\w+)":', path)
        names = [key]
        shape = "object: " + ", ".join(f"`{each}`" for each in inner)
    else:
        shape = None
    if names[0] not in fields:
        # A field of the one thing that the event carries.
        for field in variant.fields:
            owner = rust.find(bare(field.type)[0], "shared/domain")
            for each in owner.fields if owner and owner.kind == "struct" else []:
                fields.setdefault(each.name, each)
            # Or a variant of it, as the key of its name.
            for each in owner.variants if owner and owner.kind == "enum" else []:
                fields.setdefault(rust.cased(each.name, "snake_case"), rust.Field(each.name, each.payload, each.doc))
    if names[0] not in fields and key in fields:
        # The content of the optional field of this name, under another.
        names = [key]
    if names[0] not in fields:
        raise Fault(f"{arms.path}: the field {key} of {arms.enum.name}::{variant.name} is made of {expression}, which the generator does not understand")
    at = fields[names[0]]
    if key in INSIDE.get(arms.enum.name + "::" + variant.name, {}):
        shape = INSIDE[arms.enum.name + "::" + variant.name][key]
    if shape:
        return shape, at.doc
    for name in names[1:]:
        owner = rust.find(bare(at.type)[0], "shared/domain")
        at = next((field for field in owner.fields if field.name == name), None) if owner else None
        if at is None:
            return "", ""
    kind, _ = json_type(at.type)
    return ("object or string" if "args_data" in expression else kind), at.doc


def rows_of(variant, code, arms):
    keys = arms.keys(code)
    rows = []
    whole = re.search(r"json!\((\w+)\)", code)
    if whole and not keys:
        held = next(field for field in variant.fields if field.name == whole.group(1))
        owner = rust.find(bare(held.type)[0], "shared/domain")
        return [(f"`{each.name}`", json_type(each.type)[0], "not always" if bare(each.type)[1] else "always", each.doc) for each in owner.fields]
    for key, (expression, optional) in keys.items():
        kind, doc = resolve(key, expression, variant, arms)
        direct = next((field for field in variant.fields if field.name == expression), None)
        nullable = bool(direct) and bare(direct.type)[1] and not optional
        presence = "not always" if optional else "may be `null`" if nullable else "always"
        rows.append((f"`{key}`", kind or "any", presence, doc))
    return rows


# Lists of objects that are made on the spot.
INSIDE = {"TaskEvent::ContextAssembled": {"items": "array of object: `store`, `key`, `tokens`"}}

SPECIAL = {
    ("ChatEvent", "MessageAdded"): [
        ("`message_id`", "string, an id", "always", "The message; for `role: tool` the call."),
        ("`role`", "string: `user`, `assistant`, `system`, `tool`", "always", "The speaker."),
        ("`content`", "string", "always", "The whole text."),
        ("`files`", "array of string, a path", "not always", "Attached files, of a user's message."),
    ],
    ("ChatEvent", "AgentUpdated"): [
        ("`call_id`", "string, an id", "not always", "The tool call, if it is about one. A new call is a `call` instead, and its end an `observation`."),
        ("`update`", "object", "always", "The session update of the Agent Client Protocol. A plan is an `agent_plan` with its `entries` instead."),
    ],
    ("ChatEvent", "Failed"): [
        ("`code`", "string", "always", "See [errors](errors.md)."),
        ("`message`", "string", "always", "The error in words, for people."),
        ("`hint`", "string", "not always", "The remedy."),
        ("`details`", "object", "not always", "Further facts, for programs."),
    ],
}  # fmt: skip


# Events whose names on the wire are made in a function of their own.
NAMES = {("ChatEvent", "AgentUpdated"): ["agent_update"]}


def page(enum_name, title, intro):
    path, text = rust.file_with(rf"pub fn encode\(event: &{enum_name}\)")
    enum = rust.item(enum_name, "shared/domain")
    for variant in enum.variants:
        # An event that is a struct has the fields of it.
        held = rust.find(variant.payload, "shared/domain") if variant.payload and not variant.fields else None
        if held and held.kind == "struct":
            variant.fields = held.fields
    arms = Arms(enum, text, path)
    variants = arms.variants
    sections, hidden, seen, names_on_wire = {}, [], set(), {}
    for names, code in arms.arms:
        for name in names:
            if name not in variants:
                raise Fault(f"{path} encodes {enum_name}::{name}, which is no variant")
            if re.search(r"return None|^None$", code.strip()):
                if name not in seen:
                    hidden.append((name, variants[name]))
                continue
            seen.add(name)
            wire = re.findall(r'(?:^|[({\s])"([a-z_]+)"(?=,|\s*\})', code.split("json!")[0] if code.lstrip().startswith("(") else code)
            ends = re.findall(r'\(\s*(?:if .*?\{ )?"([a-z_]+)"(?: \} else \{ "([a-z_]+)" \})?,', code)
            wire = [each for pair in ends[-1:] for each in pair if each] or wire[-1:]
            wire = NAMES.get((enum_name, name)) or wire
            rows = SPECIAL.get((enum_name, name)) or rows_of(variants[name], code, arms)
            if enum_name == "TaskEvent" and name == "Waiting":
                rows = waiting(rows)
            names_on_wire[name] = wire[0]
            sections.setdefault(" and ".join(f"`{each}`" for each in wire), []).append((variants[name], rows))
    missing = set(variants) - seen - {name for name, _ in hidden}
    if missing:
        raise Fault(f"{path} encodes no {enum_name}::{', '.join(sorted(missing))}")
    order = [names for names in sections]
    out = [intro, "## All events\n"]
    out.append(table(["event", "means"], [(f"[{name}](#{anchor(name)})", " / ".join(v.doc for v, _ in sections[name])) for name in order]))
    objects = set()
    for name in order:
        out.append(f"## {name}\n")
        for number, (variant, rows) in enumerate(sections[name]):
            out.append(variant.doc + "\n" if number == 0 else f"Also: {variant.doc}\n")
            out.append(table(["field", "type", "present", "is"], rows) if rows else "No fields.\n")
            objects |= {each for row in rows for each in re.findall(r"object, `(\w+)`", row[1])}
    out += described(objects)
    if not hidden:
        return finished(enum, path, title, names_on_wire, out)
    out.append("## Facts without an event\n")
    out.append("The log also holds facts that only the state machine needs. They have numbers, so clients see gaps in `id:`.\n")
    out.append(table(["fact", "is"], [(f"`{fact(name)}`" + (" (again, after a crash)" if name in seen else ""), v.doc) for name, v in hidden]))
    return finished(enum, path, title, names_on_wire, out)


def fact(name):
    """The name of a fact: `steer_requested`, or `team_late` for `TeamFact::Late`."""
    return rust.cased(name.replace("Fact::", ""), "snake_case")


def finished(enum, path, title, names_on_wire, out):
    sources = " and ".join(f"`{each}`" for each in dict.fromkeys([enum.path, path]))
    text = re.sub(rf"`(?:{enum.name}::)?([A-Z]\w+)`", lambda match: f"`{names_on_wire.get(match.group(1), match.group(1))}`", "\n".join(out))
    return rust.generated(title, sources, text)


def waiting(rows):
    """`waiting` of a task has the fields of `Wait`, by reason."""
    wait = rust.item("Wait", "shared/domain")
    out = [("`reason`", "string: " + ", ".join(f"`{rust.cased(v.name, 'snake_case')}`" for v in wait.variants), "always", "Why the node waits.")]
    for variant in wait.variants:
        for field in variant.fields:
            out.append((f"`{field.name}`", json_type(field.type)[0], f"with `{rust.cased(variant.name, 'snake_case')}`", field.doc))
    return out + [(name, kind, "always", about) for name, kind, _, about in rows]


def described(names):
    """The objects that fields refer to."""
    out, done, todo = [], set(), sorted(names)
    while todo:
        name = todo.pop(0)
        if name in done:
            continue
        done.add(name)
        found = rust.find(name, "shared/domain")
        if not found or found.kind != "struct":
            continue
        rows = []
        for field in found.fields:
            kind, optional = json_type(field.type)
            left_out = "skip_serializing_if" in (rust.attr(field.attrs, "serde") or "")
            presence = "not always" if left_out else "may be `null`" if optional else "always"
            rows.append((f"`{rust.renamed(field, found.attrs)}`", kind, presence, field.doc))
            todo += [each for each in re.findall(r"object, `(\w+)`", kind) if each not in done]
        out.append(f"### The object `{name}`\n\n{found.doc}\n\n" + table(["field", "type", "present", "is"], rows))
    return ["## Objects\n"] + out if out else []


def anchor(title):
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


STREAM = """Every event is one block of Server-Sent Events: `id:` is its number, `event:` its name, `data:` one JSON object.
Numbers grow and never repeat. They have gaps. A client that reconnects sends the last `id:` in the header `Last-Event-ID`, or in
`?after=`, and receives exactly the events after it.

The stream also has blocks that are no events of the log. See [the stream itself](streams.md).
"""


def pages():
    chat = f"""{STREAM}
The events of a chat come from `GET /api/v1/workspaces/{{workspace_id}}/chats/{{chat_id}}/events`. Without a cursor the stream begins at
the start of the running turn, or live when no turn runs. A turn ends with `done` or `stopped`; the stream stays open.
"""
    task = f"""{STREAM}
The events of a task come from `GET /api/v1/workspaces/{{workspace_id}}/tasks/{{task_id}}/events`. Without a cursor the stream begins at
the task's beginning. The last event is `done` or `stopped`; for a clone or subtask that continues in a merge above it, `went_up`.
Clones and subtasks are tasks with streams of their own. The chat of an agent node is a chat; `agent_asked` names it.
"""
    workspace = """Every event is one block of Server-Sent Events: `id:` is a cursor, `event:` its name, `data:` one JSON object.

The changes of a workspace come from `GET /api/v1/workspaces/{workspace_id}/events`: files that anybody changed, and the chats and tasks
that began, ended or wait. Without a cursor the stream begins with the next change. To show a workspace, open the stream first, and then
load the lists.

A change comes at least once. A client that reconnects sends the last `id:` in the header `Last-Event-ID`, or in `?after=`, and may see the
changes of the last seconds again. Chats and tasks are told by their present state: a state that was replaced in the meantime is not told.
[The stream itself](streams.md) has more.
"""
    return {
        "reference/workspace-events.md": page("WorkspaceEvent", "Events of workspaces", workspace),
        "reference/chat-events.md": page("ChatEvent", "Events of chats", chat),
        "reference/task-events.md": page("TaskEvent", "Events of tasks", task),
    }
