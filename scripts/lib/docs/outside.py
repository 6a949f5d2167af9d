"""A preprocessor of mdBook: documents beside docs/ that pages link to become pages of the site, and links lead there.

In the repository these links lead to the documents themselves, as readers of the sources expect.
"""

import json
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
# The documents that become pages, under their titles.
PAGES = {
    "ARCHITECTURE.md": "The map",
    "infra/README.md": "Runbook for AWS",
    "CONTRIBUTING.md": "Contributing",
    "SECURITY.md": "Security",
    "CHANGELOG.md": "Changelog",
}
# The documents that stand first in a part of docs/SUMMARY.md; the others have a part of their own, at the end.
FIRST_IN = {"ARCHITECTURE.md": "Architecture"}
# Of a link or an image: the mark of images, text, target, anchor.
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(<?([^)\s>#]+)(#[^)\s>]*)?>?\)")


def place(document):
    """The path of a document of the repository in the site, from its root; none when it is not in it."""
    if document.is_relative_to(DOCS):
        return document.relative_to(DOCS).as_posix()
    name = document.relative_to(ROOT).as_posix() if document.is_relative_to(ROOT) else ""
    return "repository/" + name.replace("/", "-") if name in PAGES else None


def rewritten(text, document, own):
    """The text of a document with links for the site; files of the repository that are no pages are named without a link."""

    def link(match):
        image, label, target, anchor = match.groups()
        path = (document.parent / target).resolve()
        # Other sites; and code that looks like a link.
        if re.match(r"[a-z]+:", target) or not path.exists():
            return match.group()
        to = place(path)
        if to is None:
            return label if re.search(r"[` ]", label) else f"`{label}`"
        return f"{image}[{label}]({os.path.relpath(to, os.path.dirname(own) or '.')}{anchor or ''})"

    return LINK.sub(link, text)


def walk(items):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            if chapter.get("path"):
                chapter["content"] = rewritten(chapter["content"], DOCS / chapter["path"], chapter["path"])
            walk(chapter["sub_items"])


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    # The list has this name since mdBook 0.5, and had the other one before.
    items = book["items"] if "items" in book else book["sections"]
    walk(items)
    others = [{"PartTitle": "The repository"}]
    for name, title in PAGES.items():
        own = place(ROOT / name)
        text = rewritten((ROOT / name).read_text(), ROOT / name, own)
        chapter = {"Chapter": {
            "name": title, "content": text, "number": None, "sub_items": [], "path": own, "source_path": None, "parent_names": [],
        }}  # fmt: skip
        if name in FIRST_IN:
            items.insert(items.index({"PartTitle": FIRST_IN[name]}) + 1, chapter)
        else:
            others.append(chapter)
    items += others
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()
