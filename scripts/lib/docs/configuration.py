"""reference/configuration.md: from the structs that the configuration is read into, and their defaults."""

import re
import textwrap

import rust
from rust import Fault, bare, table

TOML = {
    "String": "string", "bool": "boolean", "PathBuf": "string, a path", "Secret": "string, a secret",
    "u16": "integer", "u32": "integer", "u64": "integer", "usize": "integer", "f64": "number",
    "Duration": "seconds",
}  # fmt: skip


# In place of a default.
REQUIRED = "required"


def crate(path):
    return "/".join(path.split("/")[:2])


def toml_type(type_, near):
    name, optional = bare(type_)
    inner = re.fullmatch(r"Vec<(.+)>", name)
    if inner:
        kind, _, item = toml_type(inner.group(1), near)
        return f"array of {kind}", optional, item
    inner = re.fullmatch(r"BTreeMap<String, (.+)>", name)
    if inner:
        kind, _, item = toml_type(inner.group(1), near)
        return f"table of {kind}", optional, item
    if name in TOML:
        return TOML[name], optional, None
    item = rust.find(name, near)
    if item and item.kind == "enum":
        return ", ".join(f"`{rust.renamed(v, item.attrs)}`" for v in item.variants if not v.fields), optional, None
    return "table", optional, item


def default_of(struct, field):
    known = rust.defaults(struct.name, crate(struct.path))
    if field.name in known:
        return rust.evaluate(known[field.name], struct.path) or ("[]" if bare(field.type)[0].startswith("Vec<") else "")
    inline = re.search(r'default = "(\w+)"', rust.attr(field.attrs, "serde") or "")
    if inline:
        return ""
    name, optional = bare(field.type)
    if optional:
        return elsewhere(struct, field)
    if not re.search(r"\bdefault\b", (rust.attr(struct.attrs, "serde") or "") + " " + (rust.attr(field.attrs, "serde") or "")):
        return REQUIRED
    item = rust.find(name, crate(struct.path))
    if item and item.kind == "enum":
        chosen = next((v for v in item.variants if "default" in v.attrs), None)
        return rust.renamed(chosen, item.attrs) if chosen else ""
    return {"bool": "false"}.get(name, "[]" if name.startswith("Vec<") else "")


def elsewhere(struct, field):
    """The default of an optional key, where the code that reads it has one constant for it."""
    if struct.name == "Auth" and field.name in ("issuer", "audience"):
        return rust.unquote(rust.constant("OURSELVES") or '""')
    if struct.name != "Server":
        return ""
    if field.name == "drain_seconds":
        return rust.evaluate(rust.defaults("Options", "functions/worker").get("drain", '""'))
    for _, text in rust.files("functions/hub", "functions/assembly"):
        found = re.search(rf"\.{field.name}\b[^;{{}}]{{0,120}}?\.unwrap_or(?:_else)?\((?:\|\| )?([\w:]+)", text)
        if found:
            own = re.search(rf"const {found.group(1)}: [^=;]+= ([^;]+);", text)
            value = rust.evaluate(own.group(1) if own else found.group(1)).strip('"')
            if re.fullmatch(r"[\d.:]+", value):
                return value
    return ""


def section(prefix, struct, into):
    """The keys of a struct, and those of the tables in it as sections of their own."""
    rows, later = [], []
    for field in struct.fields:
        serde = rust.attr(field.attrs, "serde") or ""
        if re.search(r"\bskip\b(?!_)", serde):
            continue
        if "flatten" in serde:
            flat = rust.item("Config", "shared/models")
            more, deeper = section(prefix, flat, into)
            rows += more
            later += deeper
            continue
        key = f"{prefix.replace('[]', '')}.{field.name}" if prefix else field.name
        kind, _, item = toml_type(field.type, crate(struct.path))
        if item and item.kind == "struct":
            ending = ".NAME" if kind.startswith("table of") else "[]" if kind.startswith("array of") else ""
            later.append((key + ending, item, field.doc))
            continue
        default = default_of(struct, field)
        if kind in ("integer", "number") and default not in ("", REQUIRED) and not re.fullmatch(r"-?[\d.]+", default):
            raise Fault(f"the default of {key} is no number: {default}")
        rows.append((key, kind, default, field.doc))
    return rows, later


def walk(prefix, struct, doc, out):
    rows, later = section(prefix, struct, out)
    if prefix:
        out["sections"].append((prefix, doc, rows))
        providers = struct.name == "ProviderConfig"
        if providers and out["provider"]:
            out["providers"].append(f"- `[{prefix}]`: {doc}")
        else:
            out["provider"] = providers
            title = f"`[[{prefix[:-2]}]]`" if prefix.endswith("[]") else f"`[{prefix}]`"
            if providers:
                title = "`[ai.PROVIDER]`"
                rows = [(key.replace(prefix, "ai.PROVIDER"), kind, default, about) for key, kind, default, about in rows]
                doc = "How one provider of models is reached."
                out["providers"].append(f"- `[{prefix}]`: {struct_doc(prefix)}")
            text = f"## {title}\n\n{doc}\n\n"
            cells = [(f"`{key}`", kind, default if default == REQUIRED else f"`{default}`" if default else "none", about) for key, kind, default, about in rows]
            text += table(["key", "type", "default", "is"], cells) if cells else ""
            out["text"].append(text)
            if providers:
                out["text"].append("@providers@")
            out["keys"] += [(key, kind) for key, kind, _, _ in rows]
    for key, item, about in later:
        walk(key, item, about, out)


def struct_doc(prefix):
    name = prefix.split(".")[-1]
    models = rust.item("Config", "shared/models")
    return next((field.doc for field in models.fields if field.name == name), "")


INTRO = """The hub reads a TOML file, `buildscale.toml` in the data folder, or the file of `--config`. Environment variables override the
file. Flags of `buildscale serve` override both. Every key is optional. An unknown key stops the start.

The functions on AWS read the environment alone.

Each key is also a variable: upper case, with two underscores between the parts. The variable for `server.listen` is
`BUILDSCALE__SERVER__LISTEN`. A value is read as TOML has it (`true`, `5`, `["a", "b"]`); anything else is a string. Keys that end in
`token`, `key` or `secret` are always strings, and so is a value that looks like a number where a string is wanted. A list needs no brackets: `a,b`. A variable that
is set to an empty text counts as not set; `[]` is an empty list and `""` an empty string. The variables of a program keep their case:
`BUILDSCALE__MCP__LIBRARY__ENV__API_KEY` sets `API_KEY` for the server `library`.

`buildscale config check` finds wrong types, unknown keys and values out of their bounds, each with its place. A key that has no effect beside the others, such as
`web.search.url` without a provider, is a note there and a warning of the start.

[buildscale.toml](buildscale.toml) is a file to begin with: it has every key, and sets none.

```toml
[server]
listen = "127.0.0.1:8686"
cors_origins = ["https://app.example.com"]

[ai]
model = "openai/gpt-4o-mini"

[ai.limits]
max_steps = 50
```
"""


def variables():
    """The usual variables of providers, and the others that are read from the environment by their own names."""
    _, text = rust.file_with(r"const USUAL_VARIABLES", "shared/models")
    at = text.index("const USUAL_VARIABLES")
    rows = re.findall(r'\("(\w+)", "([\w.]+)", ', text[at : text.index("];", at)])
    if not rows:
        raise Fault("no usual variable of a provider is found")
    rows = [(f"`{name}`", f"`ai.{key}`") for name, key in rows]
    own = set()
    for path, source in rust.files("functions"):
        own |= set(re.findall(r'"(BUILDSCALE_[A-Z]+(?:_[A-Z]+)*)"', source))
    known = {
        "BUILDSCALE_DATA_DIR": "the data folder of `serve`, `token make`, `config` and `doctor`; default `data`",
        "BUILDSCALE_LOG": "how much is logged, such as `info` or `debug`; default `info`",
        "BUILDSCALE_LOG_FORMAT": "`json` or `text`; default text on a terminal and JSON elsewhere",
        "BUILDSCALE_TOKEN": "the bearer token of the command line",
        "BUILDSCALE_URL": "the hub that the command line calls; default `http://127.0.0.1:8686`",
        "BUILDSCALE_WORKSPACE": "the workspace of the command line, by name or id",
    }
    more = [(f"`{name}`", known[name]) for name in sorted(known) if name in own]
    more += traces()
    return table(["variable", "is"], [(n, "the same as " + k) for n, k in rows] + more)


TRACES = {
    "OTEL_EXPORTER_OTLP_ENDPOINT": "takes precedence over `telemetry.otlp_endpoint`",
    "OTEL_EXPORTER_OTLP_HEADERS": "takes precedence over `telemetry.otlp_headers_secret`",
    "OTEL_SERVICE_NAME": "takes precedence over `telemetry.service_name`",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "takes precedence over `telemetry.content`; `true` or `false`",
}


def traces():
    """The variables of OpenTelemetry that are read."""
    _, text = rust.file_with(r"^pub fn collector\(environment", "shared/sinks")
    read = re.findall(r'get\("(OTEL_\w+)"\)', text)
    unknown = sorted(set(read) ^ set(TRACES))
    if unknown:
        raise Fault(f"these variables of OpenTelemetry are read or described alone: {unknown}")
    return [(f"`{name}`", TRACES[name]) for name in read]


def example(sections):
    """Every key with its description, none of them set: a file to begin with."""
    lines = ["# Every key of the configuration, each with its default or an example. Nothing here is set.", "# Written by scripts/docs from the sources; docs/reference/configuration.md says more."]
    for section, doc, rows in sections:
        doc = doc.replace("`", "")
        lines += ["", *textwrap.wrap(doc, 118, initial_indent="# ", subsequent_indent="# "), f"# [[{section[:-2]}]]" if section.endswith("[]") else f"# [{section}]" if "NAME" in section else f"[{section}]"]
        for key, kind, default, about in rows:
            lines += textwrap.wrap(re.sub(r"`([^`]*)`", r"\1", about), 118, initial_indent="# ", subsequent_indent="# ")
            # Of several words the first; of a table one entry.
            words = re.match(r"`([^`]+)`", kind)
            unset = f'"{words.group(1)}"' if words else '["…"]' if kind.startswith("array") else '{ NAME = "…" }' if kind.startswith("table") else '"…"'
            # An optional integer is a count or a limit, and 0 of them is refused.
            value = (default if default != REQUIRED else "") or {"integer": "1", "number": "0.0", "boolean": "false"}.get(kind, unset)
            plain = re.fullmatch(r"[\d.]+|true|false|\[.*\]|\{.*\}|\".*\"", value) and not re.fullmatch(r"[\d.]*:.*", value) and kind.split(",")[0] != "string"
            lines.append(f"# {key.split('.')[-1]} = {value if plain or value.startswith(('[', '{', chr(34))) else chr(34) + value + chr(34)}")
    return "\n".join(lines) + "\n"


def pages():
    out = {"text": [], "keys": [], "providers": [], "provider": False, "sections": []}
    walk("", rust.item("Config", "functions/assembly"), "", out)
    text = "\n".join(out["text"]).replace("@providers@", "The providers:\n\n" + "\n".join(out["providers"]) + "\n")
    text = f"{INTRO}\n{text}\n## Variables with names of their own\n\nA variable that is set to an empty text counts as not set. The variable of a key, such as `BUILDSCALE__AI__OPENAI__API_KEY`, takes precedence over the usual one of\nits provider.\n\n{variables()}"
    config = rust.item("Config", "functions/assembly").path
    return {"reference/buildscale.toml": example(out["sections"]), "reference/configuration.md": rust.generated("Configuration", f"`{config}` and the types of its sections", text)}
