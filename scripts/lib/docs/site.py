"""Whether every link of the built site leads to a page of it, and every anchor to an element. Run by scripts/docs after mdbook."""

import re
import sys
from urllib.parse import unquote

from rust import ROOT


def main():
    site = ROOT / "target/book"
    # The first two repeat other pages; the last one has links of the server's root.
    pages = {path: path.read_text() for path in site.rglob("*.html") if path.name not in ("print.html", "toc.html", "404.html")}
    anchors = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in pages.items()}
    faults = set()
    for path, text in pages.items():
        for target in re.findall(r'(?:href|src)="([^"]+)"', text):
            if re.match(r"[a-z]+:|//", target):
                continue
            place, _, anchor = unquote(target).partition("#")
            to = (path.parent / place).resolve() if place else path
            if not to.exists() or (anchor and anchor not in anchors.get(to, {anchor})):
                faults.add(f"{path.relative_to(site)}: {target} leads nowhere")
    for fault in sorted(faults):
        print(fault, file=sys.stderr)
    print(f"the site has {len(pages)} pages: {site.relative_to(ROOT)}/index.html")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
