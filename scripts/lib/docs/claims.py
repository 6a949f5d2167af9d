"""Checks the claims of hand-written documents about the product, as far as a program can: paths, commands, options, routes and keys exist."""

import re
import subprocess

import cli
import configuration
import links
import routes
from rust import ROOT

# Written by guards or by tests, or about the code as it once was.
NOT_OURS = {"docs/findings.md", "docs/paragraphs.md", "docs/permissions.md", "CHANGELOG.md"}
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


def check():
    known = commands()
    page = configuration.pages()["reference/configuration.md"]
    keys = set(re.findall(r"^\| `([\w.]+)` \|", page, re.M))
    keys |= {key.replace("ai.PROVIDER", provider) for key in keys for provider in re.findall(r"^- `\[(ai\.\w+)\]`", page, re.M)}
    sections = {key.split(".")[0] for key in keys if "." in key}
    paths = {re.sub(r"\{\w+\}", "*", path) for _, path in re.findall(r"`([A-Z]+) (/[^`]*)`", routes.pages()["reference/routes.md"])}
    faults, files = [], sources()
    for path in links.documents():
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text()
        # The specification also speaks of parts that are not built.
        if name in NOT_OURS or name.startswith("docs/spec/") or text.startswith("<!-- Written by") or not (name.startswith("docs/") or "/" not in name):
            continue
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
            if f"{section}.{key}" not in keys and not key.endswith(("yaml", "json", "md", "rs")):
                faults.append(f"{name}: there is no key {section}.{key} in the configuration")
        for variable in re.findall(r"BUILDSCALE__([A-Z_]+)", text):
            if variable.lower().replace("__", ".") not in keys:
                faults.append(f"{name}: there is no key for BUILDSCALE__{variable}")
    return sorted(set(faults))
