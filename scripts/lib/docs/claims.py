"""Checks the claims of hand-written documents about the product, as far as a program can: paths, commands, options, routes and keys exist, and
variables of examples are set."""

import re
import subprocess

import cli
import configuration
import links
import routes
import rust
from rust import ROOT

# Written by guards or by tests, or about the code as it once was.
NOT_OURS = {"docs/findings.md", "docs/paragraphs.md", "docs/permissions.md", "CHANGELOG.md"}
# Routes of programs that are examples.
NOT_SERVED = {"/hooks"}
FOLDERS = "functions|shared|tests|infra|scripts|docs"


def commands():
    """Each command with its options."""
    text = cli.pages()["reference/cli.md"]
    shared = set(re.findall(r"`--([\w-]+)", text.split("## buildscale", 1)[0])) | {"help", "version"}
    found, above = {}, {}
    for part in re.split(r"^(?=#+ buildscale )", text, flags=re.M)[1:]:
        words = tuple(re.match(r"#+ buildscale (.+)", part).group(1).split())
        own = {name for names in re.findall(r"^\| `(-[^`]*)` \|", part, re.M) for name in re.findall(r"--([\w-]+)", names)}
        above[words] = own
        found[words] = own | above.get(words[:1], set()) | shared
    return found


def sources():
    """The path of every file of Rust, behind a slash."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.rs"], cwd=ROOT, capture_output=True, text=True)
    return [f"/{name}" for name in listed.stdout.split("\n") if name] or [f"/{path.relative_to(ROOT).as_posix()}" for path in ROOT.rglob("*.rs")]


def code_of(text):
    """The lines of code of a document, without the remarks behind them."""
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.S | re.M)
    lines = [line for line in text.split("\n") if line.startswith("    ")] + "\n".join(fenced).split("\n") + re.findall(r"`([^`\n]+)`", text)
    return [re.sub(r"\s+#.*$", "", line).strip() for line in lines]


METHOD = r"GET|POST|PUT|PATCH|DELETE"
# The beginnings of addresses in examples, and the paths that they stand for.
HUB = {"$api": "/api/v1", "$hub": "", "localhost:8686": "", "127.0.0.1:8686": ""}
# The page that sets the variables of examples.
SETS = "docs/how-to/curl.md"


def calls(text):
    """The routes that a document asks for: `POST …/chats/:id/stop` in words, and curl with an address of a hub."""
    for first, more, path in re.findall(rf"\b({METHOD})((?:(?:,| and| or|`,? `)* ?(?:{METHOD}))*) (…?/[\w/{{}}<>:.*-]*\w\}}?)", text):
        yield from ((method, path) for method in [first, *re.findall(METHOD, more)])
    for call in re.findall(r"\bcurl ([^\n]*)", re.sub(r"\\\n\s*", " ", text)):
        found = re.search(rf"({'|'.join(map(re.escape, HUB))})(/[^\s\"'`)?]*)", call)
        if found:
            method = re.search(rf"-X ({METHOD})", call)
            sends = re.search(r"\s(?:-d|-F|--json|--data-binary)\s", call)
            yield method.group(1) if method else "POST" if sends else "GET", HUB[found.group(1)] + found.group(2)


def is_route(method, path, routes):
    """Whether there is a route of this path, or one that ends so where the path begins with `…`. A word in capital letters may stand for anything."""
    named = re.sub(r"\{\w+\}|<[^>]*>|:\w+|\$\w+|(?<=/)[A-Z]+(?=/|$)", "*", path).rstrip("/.")
    asked = named.lstrip("…").split("/")[1:]

    def fits(route):
        parts = route.split("/")[1:]
        if named.startswith("…"):
            parts = parts[-len(asked) :]
        return len(parts) == len(asked) and all(part in ("*", word) for part, word in zip(parts, asked))

    return path == "/" or any(method == known and fits(route) for known, route in routes)


def unset(name, text):
    """The variables of examples that a page uses, and neither sets nor says where they are set."""
    used = set(re.findall(r"\$(api|json|W|C)\b", text)) - set(re.findall(r"(?:^|[\s(])(api|json|W|C)=", text))
    is_led = f"({SETS.rsplit('/', 1)[1]})" in text
    return [] if is_led else [f"{name}: ${each} is not set: set it, or link to {SETS}" for each in sorted(used)]


def told(known, served):
    """The faults of what the program tells people: commands with their options, and routes."""
    for path, text in rust.files():
        for words in re.findall(r'"((?:[^"\\]|\\.)*)"', re.sub(r"^\s*//.*$", "", text, flags=re.M)):
            for method, each in calls(words):
                if each.startswith(("/api/", "/v1/", "…/")) and not is_route(method, each, served):
                    yield f"{path}: there is no route {method} {each}"
            for call in re.findall(r"`buildscale ([a-z][^`]*)`", words):
                begin = tuple(re.match(r"[a-z]+(?:-[a-z]+)*(?: [a-z]+)?", call).group().split())
                chosen = begin if begin in known else begin[:1]
                options = re.findall(r"(?<=\s)--([\w-]+)", call)
                if chosen not in known or set(options) - known[chosen]:
                    yield f"{path}: there is no buildscale {call}"


def check():
    known = commands()
    page = configuration.pages()["reference/configuration.md"]
    keys = set(re.findall(r"^\| `([\w.]+)` \|", page, re.M))
    keys |= {key.replace("ai.PROVIDER", provider) for key in keys for provider in re.findall(r"^- `\[(ai\.\w+)\]`", page, re.M)}
    sections = {key.split(".")[0] for key in keys if "." in key}
    served = [(method, re.sub(r"\{[\w*]+\}", "*", path)) for method, path in re.findall(r"`([A-Z]+) (/[^`]*)`", routes.pages()["reference/routes.md"])]
    paths = {path for _, path in served}
    faults, files = list(told(known, served)), sources()
    for path in links.documents():
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text()
        # The specification also speaks of parts that are not built.
        if name in NOT_OURS or name.startswith("docs/spec/") or text.startswith("<!-- Written by"):
            continue
        faults += [f"{name}: there is no route {method} {each}" for method, each in calls(text) if not is_route(method, each, served) and each not in NOT_SERVED]
        faults += unset(name, text)
        # The folder of a crate may be left out: `tools/src/effects.rs`, `effects.rs`.
        for each in re.findall(r"`([\w/-]+\.rs)(?::\d+)?`", text):
            if not any(file.endswith(f"/{each}") for file in files):
                faults.append(f"{name}: there is no {each}")
        for line in code_of(text):
            for call in re.findall(r"(?:^|\$\(|; |&& )buildscale ([a-z][^;|&)]*)", line):
                words = tuple(re.match(r"[a-z]+(?:-[a-z]+)*(?: [a-z]+)?", call).group().split())
                chosen = words if words in known else words[:1]
                if chosen not in known:
                    faults.append(f"{name}: there is no command buildscale {' '.join(words)}")
                    continue
                options = re.findall(r"(?<=\s)--([\w-]+)", re.sub(r"'[^']*'|\"[^\"]*\"", "''", call))
                faults += [f"{name}: buildscale {' '.join(chosen)} has no --{each}" for each in options if each not in known[chosen]]
            for each in re.findall(rf"(?<![\w./…-])((?:{FOLDERS})/[\w./-]*\w)", line):
                if not re.search(r"/[A-Z]+$", each) and not (ROOT / each).exists() and not list(ROOT.glob(each + "*")):
                    faults.append(f"{name}: there is no {each}")
            for each in re.findall(r"^(?:[A-Z]+ )?(/api/v1/[\w/{}]+)$", line):
                if re.sub(r"\{\w+\}", "*", each) not in paths:
                    faults.append(f"{name}: there is no route {each}")
        for section, key in re.findall(rf"`({'|'.join(sorted(sections))})\.([a-z_.]+)(?: = [^`]*)?`", text):
            # In the pages of clients `hub` is a variable.
            if f"{section}.{key}" not in keys and not name.startswith("clients/") and not key.endswith(("yaml", "json", "md", "rs")):
                faults.append(f"{name}: there is no key {section}.{key} in the configuration")
        for variable in re.findall(r"BUILDSCALE__([A-Z_]+)", text):
            if variable.lower().replace("__", ".") not in keys:
                faults.append(f"{name}: there is no key for BUILDSCALE__{variable}")
    return sorted(set(faults))
