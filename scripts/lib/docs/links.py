"""Links within the repository: every relative link leads to a file, and every anchor to a heading of it."""

import re
import subprocess
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

from rust import ROOT

LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
REFERENCE = re.compile(r"^\[[^\]]+\]:\s+(\S+)", re.M)
HTML = re.compile(r"<(?:a|img)\s[^>]*?(?:href|src)=\"([^\"]+)\"")
NOT_OURS = ("http://", "https://", "mailto:")


def documents():
    """Every Markdown file that is, or would be, in the repository, but those of test data and of builds."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True)
    found = [ROOT / name for name in listed.stdout.split("\n") if name] if listed.returncode == 0 else ROOT.glob("docs/**/*.md")
    # Files of templates and fixtures are parts of programs, and link to places that are theirs.
    return sorted(path for path in found if path.is_file() and not {"src", "tests", "fuzz"} & set(path.relative_to(ROOT).parts))


def prose(text):
    """A document without its code and its comments."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"^(```|~~~).*?^\1\s*$", "", text, flags=re.S | re.M)
    text = "\n".join(line for line in text.split("\n") if not re.match(r"(?: {4}|\t)(?![-*] |\d+\. )", line))
    return re.sub(r"(`+)(?:(?!\1).)*?\1", "", text)


@lru_cache(None)
def anchors(path):
    """The anchors of a document's headings, as mdBook and GitHub name them."""
    text = re.sub(r"^(```|~~~).*?^\1\s*$", "", path.read_text(), flags=re.S | re.M)
    found, seen = set(), {}
    for title in re.findall(r"^#{1,6}\s+(.+?)\s*#*$", text, re.M):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("&lt;", "<")
        name = re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
        count = seen.get(name, 0)
        seen[name] = count + 1
        found.add(f"{name}-{count}" if count else name)
    found |= set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))
    return found


def check():
    """Every fault, as a line."""
    faults = []
    for path in documents():
        name = path.relative_to(ROOT)
        text = prose(path.read_text())
        for target in LINK.findall(text) + REFERENCE.findall(text) + HTML.findall(text):
            if target.startswith(NOT_OURS):
                continue
            place, _, anchor = unquote(target).partition("#")
            to = (path.parent / place).resolve() if place else path
            if not to.is_relative_to(ROOT):
                faults.append(f"{name}: {target} leads out of the repository")
            elif not to.exists():
                faults.append(f"{name}: there is no {target}")
            elif anchor and to.suffix == ".md" and anchor not in anchors(to):
                faults.append(f"{name}: {target}: there is no such heading")
    return faults + summary()


def summary():
    """Every page is in the table of contents, once, and every entry is a page."""
    book = ROOT / "docs"
    listed = re.findall(r"\]\(([^)]+\.md)\)", (book / "SUMMARY.md").read_text())
    pages = {path.relative_to(book).as_posix() for path in book.rglob("*.md")} - {"SUMMARY.md"}
    faults = [f"docs/SUMMARY.md does not list {page}" for page in sorted(pages - set(listed))]
    return faults + [f"docs/SUMMARY.md lists {page} twice" for page in sorted({each for each in listed if listed.count(each) > 1})]
