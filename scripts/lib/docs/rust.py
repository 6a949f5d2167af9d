"""Reads Rust sources for the reference pages: structs, enums, their documentation, constants and defaults.

This is no parser of Rust. It understands code as rustfmt writes it, and fails with the place where it does not.
"""

import os
import re
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
OPEN, CLOSE = "([{<", ")]}>"


class Fault(Exception):
    """A page cannot be written: the source is not where, or not as, the generator expects it."""


@dataclass
class Field:
    name: str
    type: str
    doc: str
    attrs: list = field(default_factory=list)


@dataclass
class Variant:
    name: str
    doc: str
    attrs: list
    fields: list
    payload: str


@dataclass
class Item:
    kind: str
    name: str
    doc: str
    attrs: list
    fields: list
    variants: list
    path: str

    def attr(self, name):
        return attr(self.attrs, name)


def attr(attrs, name):
    """The inside of `#[name(…)]`, all of them joined; none when there is none."""
    found = [a[len(name) + 1 : -1] for a in attrs if a.startswith(name + "(")]
    return ", ".join(found) if found else None


def skip_string(text, at):
    """The position after the string literal that begins at `at`."""
    if text[at] == "'":
        # A character, or a lifetime.
        match = re.compile(r"'(?:\\.[^']*|[^'\\])'").match(text, at)
        return match.end() if match else at + 1
    at += 1
    while text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return at + 1


def code(text, at=0):
    """Each character from `at` on with its position, but for those in texts and comments."""
    while at < len(text):
        if text[at] in "\"'":
            at = skip_string(text, at)
        elif text.startswith("//", at):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        else:
            yield at, text[at]
            at += 1


def balanced(text, at):
    """The position after the bracket that closes the one at `at`; angle brackets are not counted."""
    depth = 0
    for at, char in code(text, at):
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth == 0:
                return at + 1
    raise Fault("a bracket is not closed")


def separators(text, separator=","):
    """The positions of the separators that are in no bracket and in no text."""
    depth = 0
    for at, char in code(text):
        if char in OPEN:
            depth += 1
        elif char in CLOSE and not (char == ">" and text[at - 1] in "-="):
            depth -= 1
        elif char == separator and depth == 0:
            yield at


def split(text, separator=","):
    """The parts of `text` between its separators."""
    bounds = pairwise([-1, *separators(text, separator), len(text)])
    parts = [text[begin + 1 : end].strip() for begin, end in bounds]
    return [part for part in parts if part]


def split_first(text):
    """The part of `text` before its first comma."""
    return text[: next(separators(text), len(text))]


def unquote(literal):
    """The text of a string literal; line ends that a backslash continues are taken out."""
    literal = re.sub(r"\\\n\s*", "", literal.strip())
    return literal[1:-1].replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")


class Members:
    """Fields or variants, one after the other, with their documentation and attributes."""

    def __init__(self, text, path):
        self.text, self.path = text, path

    def __iter__(self):
        text, at, doc, attrs = self.text, 0, [], []
        space = re.compile(r"\s+")
        comment = re.compile(r"//[^\n]*")
        head = re.compile(r"(?:pub(?:\([^)]*\))?\s+)?(r#)?(\w+)\s*")
        while at < len(text):
            match = space.match(text, at)
            if match:
                at = match.end()
                continue
            match = comment.match(text, at)
            if match:
                if match.group().startswith("///"):
                    doc.append(match.group()[3:].strip())
                at = match.end()
                continue
            if text.startswith("#[", at):
                end = balanced(text, at + 1)
                attrs.append(re.sub(r"\s*\n\s*", " ", text[at + 2 : end - 1]))
                at = end
                continue
            match = head.match(text, at)
            if not match:
                raise Fault(f"{self.path}: no field and no variant: {text[at:at + 40]!r}")
            name, at = match.group(2), match.end()
            # Up to the next comma that is in no bracket.
            rest = split_first(text[at:])
            at += len(rest) + 1
            yield name, rest.strip(), paragraph(doc), attrs
            doc, attrs = [], []


def paragraph(lines):
    """Documentation as one paragraph each, without references to texts that readers do not have."""
    text = "\n".join(lines)
    text = re.sub(r"(?<!\n)\n(?!\n)", " ", text).strip()
    text = re.sub(r"\s*\((?:seed \d+[^)]*|[a-z]+\.md, \"[^\"]*\")\)", "", text)
    # Links of rustdoc are names here.
    text = re.sub(r"\[`(?:crate::|Self::|self::)?([^`]+)`\](?:\([^)]*\))?", r"`\1`", text)
    return re.sub(r"\s*Boxed, so[^.]*\.", "", text).strip()


@lru_cache(None)
def files(*folders):
    """Every Rust file of the product below these folders, as path and text, without tests."""
    found = []
    for folder in folders or ("shared", "functions"):
        for path in sorted((ROOT / folder).rglob("*.rs")):
            parts = path.relative_to(ROOT).parts
            if "tests" in parts or "target" in parts or parts[-1] in ("tests.rs", "build.rs") or "testkit" in parts:
                continue
            text = path.read_text()
            text = re.split(r"\n#\[cfg\(test\)\]\n(?:#\[[^\n]*\n)*mod \w+ \{", text)[0]
            found.append(("/".join(parts), text))
    return found


ITEM = re.compile(r"^(?:pub(?:\([^)]*\))? )?(struct|enum) (\w+)(?:<[^>{]*>)? ?\{", re.M)


@lru_cache(None)
def items(*folders):
    """All structs with named fields and all enums, by name; each name has a list, as crates may share it."""
    found = {}
    for path, text in files(*folders):
        for match in ITEM.finditer(text):
            kind, name = match.groups()
            at = match.end() - 1
            body = text[at + 1 : balanced(text, at) - 1]
            doc, attrs = before(text, match.start())
            fields, variants = [], []
            for member, rest, about, marks in Members(body, path):
                if kind == "struct":
                    fields.append(Field(member, rest.lstrip(":").strip(), about, marks))
                elif rest.startswith("{"):
                    inner = rest[1 : balanced(rest, 0) - 1]
                    inside = [Field(n, t.lstrip(":").strip(), d, a) for n, t, d, a in Members(inner, path)]
                    variants.append(Variant(member, about, marks, inside, ""))
                else:
                    payload = rest[1 : balanced(rest, 0) - 1].strip() if rest.startswith("(") else ""
                    variants.append(Variant(member, about, marks, [], payload))
            found.setdefault(name, []).append(Item(kind, name, doc, attrs, fields, variants, path))
    return found


def before(text, at):
    """The documentation and the attributes in front of an item."""
    lines, kept, depth = text[:at].split("\n")[:-1], [], 0
    for line in reversed(lines):
        bare = line.strip()
        depth += bare.count("]") + bare.count(")") - bare.count("[") - bare.count("(") if not bare.startswith("//") else 0
        if not (bare.startswith(("///", "#[")) or depth > 0 or (kept and kept[-1].endswith("]") and bare and not bare.endswith((";", "}", "{")))):
            break
        kept.append(line)
    doc = [line.strip()[3:].strip() for line in reversed(kept) if line.strip().startswith("///")]
    code = "\n".join(line for line in reversed(kept) if not line.strip().startswith("//"))
    attrs, at = [], code.find("#[")
    while at >= 0:
        end = balanced(code, at + 1)
        attrs.append(re.sub(r"\s*\n\s*", " ", code[at + 2 : end - 1]))
        at = code.find("#[", end)
    return paragraph(doc), attrs


def item(name, near="", folders=()):
    """The item of this name; where several have it, the one whose path has most in common with `near`."""
    found = items(*folders).get(name, [])
    if not found:
        raise Fault(f"the sources have no struct or enum {name}: change the generator")
    return max(found, key=lambda one: len(os.path.commonprefix([one.path, near])))


def find(name, near="", folders=()):
    """As `item`, and none when there is none."""
    return item(name, near, folders) if name in items(*folders) else None


def file_with(pattern, *folders):
    """The one file in which `pattern` is found, as path and text."""
    found = [(path, text) for path, text in files(*folders) if re.search(pattern, text, re.M)]
    if len(found) != 1:
        names = ", ".join(path for path, _ in found) or "no file"
        raise Fault(f"{pattern} should be in one file, and is in: {names}. Change the generator")
    return found[0]


@lru_cache(None)
def constant(name, near=""):
    """The expression that a constant is set to. Of several constants with the name it is that of the file or of the crate `near`."""
    whole, _, last = name.rpartition("::")
    crate = whole.split("::")[0]
    matches = [(path, re.search(rf"\bconst {last}: [^=]+=\s+([^;]+);", text)) for path, text in files()]
    found = [(path, match.group(1).strip()) for path, match in matches if match]
    for beginning in (f"shared/{crate}/" if crate else "", near, "/".join(near.split("/")[:2])):
        own = {value for path, value in found if beginning and path.startswith(beginning)}
        if own:
            break
    else:
        own = {value for _, value in found}
    if len(own) > 1:
        raise Fault(f"the constant {name} has several values: {', '.join(sorted(own))}")
    return next(iter(own), None)


@lru_cache(None)
def defaults(name, near=""):
    """The defaults of a struct, by field, as expressions; those of `#[derive(Default)]` are not in it."""
    candidates = [(p, t) for p, t in files() if re.search(rf"^impl Default for {name} \{{", t, re.M)]
    candidates = [c for c in candidates if near and near in c[0]] or candidates
    if not candidates:
        return {}
    text = candidates[0][1]
    at = re.search(rf"^impl Default for {name} \{{", text, re.M).end() - 1
    body = text[at : balanced(text, at)]
    known = {}
    for match in re.finditer(r"let (\w+) \{ ([^}]*) \} = \w+::default\(\);", body):
        inner = defaults(match.group(1))
        for each in split(match.group(2)):
            known[each] = inner.get(each)
    match = re.search(r"(?<!-> )\bSelf \{", body)
    if not match:
        return {}
    inside = body[match.end() : balanced(body, match.end() - 1) - 1]
    found = {}
    for part in split(inside):
        key, _, expression = part.partition(":")
        expression = expression.strip() or key
        seconds = re.fullmatch(r"(\w+)\.as_secs\(\)", expression)
        if seconds and seconds.group(1) in known:
            expression = known[seconds.group(1)] or expression
        found[key.strip()] = known.get(expression, expression) or expression
    return found


def evaluate(expression, near=""):
    """A default as people write it in TOML or YAML, of a struct in the file `near`; the expression itself where that is not known."""
    expression = expression.strip()
    seconds = re.fullmatch(r"(.+)\.as_secs\(\)", expression)
    if seconds:
        expression = seconds.group(1)
    other = re.fullmatch(r"(?:\w+::)*(\w+)::default\(\)\.(\w+)", expression)
    if other:
        expression = defaults(other.group(1)).get(other.group(2), expression)
    for _ in range(4):
        name = re.fullmatch(r"(?:\w+::)*[A-Z][A-Z0-9_]+", expression)
        known = constant(expression, near) if name else None
        if known is None:
            break
        expression = known
    wrapped = re.fullmatch(r"(?:\w+::)*Duration::from_(secs|mins|hours|millis)\((.+)\)", expression)
    if wrapped:
        number = evaluate(wrapped.group(2), near)
        factor = {"secs": 1, "mins": 60, "hours": 3600, "millis": 1}[wrapped.group(1)]
        return str(int(number) * factor) if number.isdigit() else number
    plain = expression.replace("_", "") if re.fullmatch(r"[\d_\s*+.()-]+", expression) else ""
    if plain:
        value = eval(plain, {"__builtins__": {}})  # digits and operators alone
        return f"{value:g}" if isinstance(value, float) else str(value)
    if expression in ("true", "false"):
        return expression
    if expression in ("None", "Value::Null"):
        return ""
    if re.fullmatch(r"(Vec|BTreeMap|Map|Table|HashMap)::new\(\)", expression):
        return ""
    if expression.startswith('"'):
        return re.sub(r"\.(into|to_owned|to_string)\(\)$", "", expression)
    listed = re.fullmatch(r"vec!\[(.*)\]", expression, re.S)
    if listed:
        return "[" + ", ".join(evaluate(part, near) for part in split(listed.group(1))) + "]"
    return expression


def renamed(variant_or_field, owner_attrs):
    """The name on the wire."""
    serde = attr(variant_or_field.attrs, "serde") or ""
    own = re.search(r'rename = "([^"]+)"', serde)
    if own:
        return own.group(1)
    rule = re.search(r'rename_all = "([^"]+)"', attr(owner_attrs, "serde") or "")
    return cased(variant_or_field.name, rule.group(1) if rule else "")


def cased(name, rule):
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    if rule == "snake_case":
        return snake
    if rule == "SCREAMING_SNAKE_CASE":
        return snake.upper()
    if rule == "kebab-case":
        return snake.replace("_", "-")
    if rule == "lowercase":
        return name.lower()
    return name


def bare(type_):
    """A type without the parts that only Rust needs, and whether it may be missing."""
    optional = False
    while True:
        match = re.fullmatch(r"(Option|Box|Arc|Cow)<(?:'\w+, )?(.+)>", type_)
        if not match:
            return re.sub(r"^(?:\w+::)+", "", type_), optional
        optional |= match.group(1) == "Option"
        type_ = match.group(2)


def cell(text):
    """A text as it stands in a cell of a table, with braces of templates unchanged."""
    return text.replace("\n\n", "<br>").replace("\n", " ").replace("|", "\\|").strip()


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(cell(each) for each in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def escaped(line):
    """A line with `<name>` unchanged; code and line breaks of tables are left alone."""
    if line.startswith(("    ", "<!--")):
        return line
    parts = re.split(r"(`[^`]*`|<br>)", line)
    return "".join(part if number % 2 else cited(part.replace("<", "&lt;")) for number, part in enumerate(parts))


def cited(text):
    """A text whose references to the specification are links to its paragraphs."""

    def link(match):
        page = next((ROOT / "docs/spec").glob(match.group(1) + "-*.md"), None)
        if page is None:
            return match.group()
        heading = re.search(rf"^#+ (§{re.escape(match.group(2) or '§')}(?![\w.]).*)$", page.read_text(), re.M)
        anchor = "#" + re.sub(r"[^\w\- ]", "", heading.group(1).lower()).strip().replace(" ", "-") if heading else ""
        return f"[{match.group()}](../spec/{page.name}{anchor})"

    return re.sub(r"\bspec (\d{3})(?: §([\d.]*\w))?", link, text)


def generated(title, sources, text):
    """A page, with the note that says where it comes from."""
    note = f"<!-- Written by scripts/docs from {sources}. Do not edit: change the source, then run scripts/docs. -->"
    lines = [escaped(line) for line in text.strip().split("\n")]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines))
    return f"{note}\n\n# {title}\n\n{text}\n"
