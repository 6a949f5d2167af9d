"""reference/chat-events.md, task-events.md and workspace-events.md: from the enums of events and from the functions that put them on the wire."""

import re
from dataclasses import replace

import rust
from rust import Fault, bare, table

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
    """The arms of the function that writes the events of an enum: the name of each on the wire, and the keys of its data."""

    # Chats and tasks write to a serializer. Workspaces make a value.
    WRITER = r"pub fn (?:write<S: Serializer>|encode)\(event: &%s\b[^{]*\{\s*(?:Ok\(Some\()?match event \{"

    def __init__(self, enum):
        self.enum = enum
        self.path, self.text = rust.file_with(self.WRITER % enum.name)
        at = re.search(self.WRITER % enum.name, self.text).end()
        inside = self.text[at : rust.balanced(self.text, at - 1) - 1]
        self.variants = {variant.name: variant for variant in enum.variants}
        self.arms = []
        for names, pattern, code in self.split(re.sub(r"^\s*//.*$", "", inside, flags=re.M), enum.name):
            self.arms += self.facts(names[0], code) or [(names, pattern, code)]

    def facts(self, name, code):
        """The arms of an event that holds one of several facts, which clients see as events of their own."""
        match = re.match(r"match &\*\*(\w+) \{", code)
        if not match:
            return []
        at = next(field for field in self.variants[name].fields if field.name == match.group(1))
        facts = rust.item(bare(at.type)[0], "shared/domain")
        del self.variants[name]
        self.variants |= {f"{facts.name}::{variant.name}": variant for variant in facts.variants}
        inside = code[match.end() : rust.balanced(code, match.end() - 1) - 1]
        return [([f"{facts.name}::{each}" for each in names], *rest) for names, *rest in self.split(inside, facts.name)]

    def split(self, text, enum):
        """The variants, the pattern and the code of each arm."""
        at = 0
        pattern = re.compile(rf"\s*((?:{enum}::\w+(?: \{{[^}}]*\}}|\((?:\w+ \{{[^}}]*\}}|[^)]*)\))?\s*\|?\s*)+)=>\s*")
        while text[at:].strip():
            match = pattern.match(text, at)
            if not match:
                raise Fault(f"{self.path}: no arm of {enum}: {text[at:at + 60]!r}")
            at = match.end()
            if text[at] == "{":
                end = rust.balanced(text, at)
                code = text[at + 1 : end - 1]
                at = end + (1 if text[end : end + 1] == "," else 0)
            else:
                code = rust.split_first(text[at:])
                at += len(code) + 1
            yield re.findall(rf"{enum}::(\w+)", match.group(1)), match.group(1), code.strip()

    def end(self, code):
        """The names on the wire, and the expression that makes the data, at the end of the code of an arm."""
        match = re.search(r'\(\s*(?:"(\w+)"|if \w+ \{ "(\w+)" \} else \{ "(\w+)" \}|name),\s+(.+?),?\s*\)$', code, re.S)
        if not match:
            raise Fault(f"{self.path}: no name and no data at the end of {code[-60:]!r}")
        return [name for name in match.groups()[:3] if name], match.group(4)


class Data:
    """The keys of the data of one event: a row of the page for each."""

    def __init__(self, arms, variant, pattern):
        self.text, self.place = arms.text, f"{arms.path}: {arms.enum.name}::{variant.name}"
        self.fields = {field.name: field for field in variant.fields}
        for name, some, bound in re.findall(r"(\w+): (Some\()?(\w+)", pattern):
            if name in self.fields:
                at = self.fields[name]
                self.fields[bound] = replace(at, type=bare(at.type)[0]) if some else at

    def rows(self, code, data, known):
        """The rows of what `data` makes at the end of this code. `known` are the values of names that are no fields."""
        statements = rust.split(code, ";")
        for statement in statements:
            let = re.match(r"let (?:mut )?(\w+)(?:: [^=]+)? =\s+", statement)
            if let:
                known = known | {let.group(1): plain(statement[let.end() :], known)}
        data = data.removesuffix(".serialize(to)?")
        data = known.get(data, data)
        helper = re.fullmatch(r"(\w+)\((.+), to\)\?", data)
        if helper:
            name, given = helper.groups()
            match = re.search(rf"^fn {name}<S: Serializer>\((.+), to: S\)[^{{]*\{{", self.text, re.M)
            body = self.text[match.end() : rust.balanced(self.text, match.end() - 1) - 1].strip() if match else ""
            made = re.search(r"\bOk\((.+)\)$", body, re.S)
            if not made:
                raise Fault(f"{self.place} is made by {name}, which the generator does not understand")
            arguments = [plain(each, known) for each in rust.split(given)]
            return self.rows(body, made.group(1), dict(zip(re.findall(r"(\w+): &", match.group(1)), arguments, strict=True)))
        rows = []
        for part in rust.split(re.sub(r"^(?:object|json)!\((?:\s*to,)?(.+)\)$", r"\1", data, flags=re.S)):
            if part in self.fields:
                rows += whole(rust.item(bare(self.fields[part].type)[0], "shared/domain"))
            elif part.endswith("}"):
                pairs = [pair.split(":", 1) for pair in rust.split(part[part.index("{") + 1 : -1])]
                rows += [self.row(key.strip('"'), value.strip(), part.startswith("maybe"), known) for key, value in pairs]
            else:
                raise Fault(f"{self.place} is made of {part}, which the generator does not understand")
        # A value that is written into the data is always there, unless a condition is around it.
        for statement in statements:
            for key, value in re.findall(r'data\["(\w+)"\] = json!\((\w+)\)', statement):
                rows.append(self.row(key, value, not statement.startswith("data"), known))
        return rows

    def row(self, key, expression, maybe, known):
        """The row of a key with this value; with `maybe` it is left out where the value is none."""
        some = re.fullmatch(r"Some\((.+)\)", expression)
        kind, optional, doc = self.value(key, plain(some.group(1) if some else expression, known))
        return f"`{key}`", kind, "not always" if maybe and not some else "may be `null`" if optional else "always", doc

    def value(self, key, expression):
        """The JSON type of a value, whether it may be null, and its documentation."""
        if expression.startswith('"'):
            return f"string: `{rust.unquote(expression)}`", False, ""
        if re.match(r"(?:crate::)?Code::", expression):
            return f"string: `{rust.cased(expression.split('::')[-1], 'SCREAMING_SNAKE_CASE')}`", False, "See [errors](errors.md)."
        call = re.fullmatch(r"(\w+)\((.+)\)", expression)
        if call and call.group(1) == "args_data":
            return "object or string", False, self.fields[call.group(2)].doc
        if call:
            return returned(call.group(1))
        path, rest = re.match(r"((?:\w+(?!\()\b\.?)*)(.*)", expression, re.S).groups()
        first, *names = path.strip(".").split(".")
        at = self.fields.get(first) or self.called(key)
        for name in names:
            owner = rust.item(bare(at.type)[0], "shared/domain")
            at = next((field for field in owner.fields if field.name == name), None)
            if not at:
                raise Fault(f"{self.place}: {key} is made of {expression}, and {owner.name} has no {name}")
        inner = re.search(r"json!\(\{(.+?)\}", rest, re.S)
        if inner:
            keys = ", ".join(f"`{each}`" for each in re.findall(r'"(\w+)":', inner.group(1)))
            return ("array of object: " if "iter()" in rest else "object: ") + keys, False, at.doc
        method = re.fullmatch(r"(\w+)\(\)", rest)
        if method:
            return returned(method.group(1), bare(at.type)[0])
        if rest:
            raise Fault(f"{self.place}: {key} is made of {expression}, which the generator does not understand")
        kind, optional = json_type(at.type)
        return "boolean: `true`" if path == "true" else kind, optional, at.doc

    def called(self, key):
        """The field with the name of the key: of the event, else of a struct or an enum in it."""
        found = dict(self.fields)
        for field in self.fields.values():
            owner = rust.find(bare(field.type)[0], "shared/domain")
            for each in owner.fields if owner else []:
                found.setdefault(each.name, each)
            for each in owner.variants if owner else []:
                found.setdefault(rust.cased(each.name, "snake_case"), rust.Field(each.name, each.payload, each.doc))
        if key not in found:
            raise Fault(f"{self.place} has the key {key}, whose source the generator does not find")
        return found[key]


def plain(expression, known):
    """An expression without the parts that only Rust needs, in terms of the fields of the event."""
    if expression.startswith(("object!", "json!")):
        return expression
    expression = re.sub(r"\s+(?=\.)|\.as_(?:ref|deref|str)\(\)", "", expression)
    expression = re.sub(r"^.*\.then_some\(&?(.+)\)$", r"\1", expression)
    expression = re.sub(r"\.map\((?:\|(\w+)\| \1\.(.+)|\w+::(\w+))\)$", lambda m: "." + (m.group(2) or m.group(3) + "()"), expression)
    return re.sub(r"(?:^|(?<=\.map\())\w+", lambda match: known.get(match.group(), match.group()), expression)


def returned(name, owner=""):
    """The JSON type of the result of a function or of a method of `owner`, whether it may be null, and its documentation."""
    inside = rf"^impl {owner} \{{\n(?:(?!\}}).*\n)*?    " if owner else "^"
    pattern = rf"{inside}pub fn {name}\(.*\) -> (.+) \{{$"
    _, text = rust.file_with(pattern, "shared/domain")
    match = re.search(pattern, text, re.M)
    return *json_type(match.group(1)), rust.before(text, text.rindex("\n", 0, match.end()) + 1)[0]


def whole(item):
    """A row for each field of a struct, or of `Wait`, by reason."""
    if item.kind == "enum":
        return waiting()
    rows = []
    for field in item.fields:
        kind, optional = json_type(field.type)
        left_out = "skip_serializing_if" in (rust.attr(field.attrs, "serde") or "")
        presence = "not always" if left_out else "may be `null`" if optional else "always"
        rows.append((f"`{rust.renamed(field, item.attrs)}`", kind, presence, field.doc))
    return rows


SPECIAL = {
    ("ChatEvent", "MessageAdded"): [
        ("`message_id`", "string, an id", "always", "The message; for `role: tool` the call."),
        ("`role`", "string: `user`, `assistant`, `system`, `tool`", "always", "The speaker."),
        ("`content`", "string", "always", "The whole text."),
        ("`files`", "array of string, a path", "not always", "Attached files, of a user's message."),
        ("`user_id`", "string, an id", "not always", "The person who wrote it, of a user's message. Messages of programs and of older logs lack it."),
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
    enum = rust.item(enum_name, "shared/domain")
    for variant in enum.variants:
        # An event that is a struct has the fields of it.
        held = rust.find(variant.payload, "shared/domain") if variant.payload and not variant.fields else None
        if held and held.kind == "struct":
            variant.fields = held.fields
    arms = Arms(enum)
    path, variants = arms.path, arms.variants
    sections, hidden, seen, names_on_wire = {}, [], set(), {}
    for names, pattern, code in arms.arms:
        for name in names:
            if name not in variants:
                raise Fault(f"{path} encodes {enum_name}::{name}, which is no variant")
            if code == "return Ok(None)":
                if name not in seen:
                    hidden.append((name, variants[name]))
                continue
            seen.add(name)
            wire, data = arms.end(code)
            wire = NAMES.get((enum_name, name)) or wire
            rows = SPECIAL.get((enum_name, name)) or Data(arms, variants[name], pattern).rows(code, data, {})
            names_on_wire[name] = wire[0]
            sections.setdefault(" and ".join(f"`{each}`" for each in wire), []).append((variants[name], rows))
    missing = set(variants) - seen - {name for name, _ in hidden}
    if missing:
        raise Fault(f"{path} encodes no {enum_name}::{', '.join(sorted(missing))}")
    out = [intro, "## All events\n"]
    out.append(table(["event", "means"], [(f"[{name}](#{anchor(name)})", " / ".join(v.doc for v, _ in sections[name])) for name in sections]))
    objects = set()
    for name in sections:
        out.append(f"## {name}\n")
        for number, (variant, rows) in enumerate(sections[name]):
            out.append(variant.doc + "\n" if number == 0 else f"Also: {variant.doc}\n")
            out.append(table(["field", "type", "present", "is"], rows) if rows else "No fields.\n")
            objects |= {each for row in rows for each in re.findall(r"object, `(\w+)`", row[1])}
    out += described(objects)
    if hidden:
        out.append("## Facts without an event\n")
        out.append("The log also holds facts that only the state machine needs. They have numbers, so clients see gaps in `id:`.\n")
        out.append(table(["fact", "is"], [(f"`{fact(name)}`" + (" (again, after a crash)" if name in seen else ""), v.doc) for name, v in hidden]))
    sources = " and ".join(f"`{each}`" for each in dict.fromkeys([enum.path, path]))
    text = re.sub(rf"`(?:{enum_name}::)?([A-Z]\w+)`", lambda match: f"`{names_on_wire.get(match.group(1), match.group(1))}`", "\n".join(out))
    return rust.generated(title, sources, text)


def fact(name):
    """The name of a fact: `steer_requested`, or `team_late` for `TeamFact::Late`."""
    return rust.cased(name.replace("Fact::", ""), "snake_case")


def waiting():
    """`waiting` of a task has the fields of `Wait`, by reason."""
    wait = rust.item("Wait", "shared/domain")
    out = [("`reason`", "string: " + ", ".join(f"`{rust.cased(v.name, 'snake_case')}`" for v in wait.variants), "always", "Why the node waits.")]
    for variant in wait.variants:
        for field in variant.fields:
            out.append((f"`{field.name}`", json_type(field.type)[0], f"with `{rust.cased(variant.name, 'snake_case')}`", field.doc))
    return out


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
        rows = whole(found)
        todo += [each for row in rows for each in re.findall(r"object, `(\w+)`", row[1]) if each not in done]
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
the start of the running turn, or live when no turn runs. A turn ends with `done` or `stopped`; the stream stays open until the chat is deleted.
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
