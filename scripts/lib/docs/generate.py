"""Writes the reference pages of docs/ from the sources, or says which are stale; checks links. Run by scripts/docs."""

import re
import sys

import claims
import cli
import configuration
import errors
import events
import expressions
import links
import manifests
import metrics
import routes
from rust import ROOT, Fault

MODULES = (events, routes, manifests, expressions, configuration, cli, errors, metrics)
# Words that a document never has: folders of one machine, and how a text came to be.
UNWANTED = [r"(?<![\w.~*}\])$-])/(?:root|home|Users|work)/", r"\b(?:seed|api|engine|architecture) \d{3}\b"]


def dependencies():
    """Each dependency of the root manifest has its reason in the table."""
    manifest = (ROOT / "Cargo.toml").read_text()
    inside = re.search(r"^\[workspace\.dependencies\]\n(.*?)(?=^\[)", manifest + "\n[", re.S | re.M).group(1)
    names = [name for name, value in re.findall(r"^([\w-]+) = (.+)$", inside, re.M) if "path =" not in value]
    page = (ROOT / "docs/dependencies.md").read_text()
    return [f"docs/dependencies.md: say why {name} is there" for name in names if f"`{name}`" not in page]


def unwanted():
    faults = []
    for path in sorted((ROOT / "docs").rglob("*.md")) + sorted(ROOT.glob("*.md")):
        name = path.relative_to(ROOT).as_posix()
        if name in ("docs/paragraphs.md", "docs/findings.md"):
            continue
        for number, line in enumerate(path.read_text().split("\n"), 1):
            faults += [f"{name}:{number}: {line.strip()[:80]}" for pattern in UNWANTED if re.search(pattern, line)]
    return faults


def main(check):
    faults, written = [], 0
    for module in MODULES:
        try:
            pages = module.pages()
        except Fault as fault:
            faults.append(f"scripts/lib/docs/{module.__name__}.py: {fault}")
            continue
        for name, text in pages.items():
            path = ROOT / "docs" / name
            if path.is_file() and path.read_text() == text:
                continue
            if check:
                faults.append(f"docs/{name} is stale: scripts/docs writes it anew")
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            written += 1
            print(f"wrote docs/{name}")
    faults += links.check() + claims.check() + dependencies() + unwanted()
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        print(f"{len(faults)} faults in the documents", file=sys.stderr)
        return 1
    print("the documents are in order" if check else f"{written} pages written; the documents are in order")
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
