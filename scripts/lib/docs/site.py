"""Whether every link of the built site leads to a page of it, and every anchor to an element. Run by scripts/site with the site's folder."""

import re
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote

# Links elsewhere, which are not followed: the check needs no network.
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//")
# These repeat other pages, or have links from the server's root.
NO_PAGES = ("print.html", "toc.html", "404.html")


def faults_of(site):
    """Every fault, as a line, and the number of pages."""
    pages = {path: path.read_text() for path in site.rglob("*.html") if path.name not in NO_PAGES}
    anchors = {path: {unescape(each) for each in re.findall(r'\sid="([^"]+)"', text)} for path, text in pages.items()}
    faults = set()
    # The table of contents is a page of its own, which every page shows in a frame or by a script.
    contents = site / "toc.html"
    linking = {**pages, contents: contents.read_text()}
    for path, text in linking.items():
        for target in re.findall(r'\s(?:href|src)="([^"]*)"', text):
            if ELSEWHERE.match(target):
                continue
            place, _, anchor = unquote(unescape(target)).partition("#")
            to = (path.parent / place).resolve() if place else path
            if to.is_dir():
                to /= "index.html"
            where = f"{path.relative_to(site)}: {target or 'an empty link'}"
            if not to.is_relative_to(site) or not to.is_file():
                faults.add(f"{where} leads nowhere")
            elif anchor and to in anchors and anchor not in anchors[to]:
                faults.add(f"{where}: the page has no such anchor")
            elif not anchor and target.endswith("#"):
                faults.add(f"{where} leads to its own page")
    return sorted(faults), len(pages)


def main(folder):
    site = Path(folder).resolve()
    faults, pages = faults_of(site)
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"the site has {pages} pages: {site}/index.html")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
