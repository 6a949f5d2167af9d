"""reference/routes.md: every route of the API, from the handlers' descriptions."""

import re

import rust
from rust import Fault, table

INTRO = """The API speaks JSON over HTTP/1.1. Its full description is OpenAPI 3.1 at `GET /openapi.json`, with a schema for each body. It
needs no token on a hub. The [console](../how-to/console.md) shows it to people: at `/docs` of a hub, and at `#/reference` everywhere.

- Commands answer `202` once they are durable; their results are in the event stream.
- Lists have `limit` and `next_cursor`. A `limit` above the list's bound is refused with `INVALID_ARGUMENT`; the bound is in the hint.
- The description has a schema for each [event](streams.md), the refusals that each route can give with their codes, and the bounds of
  parameters and bodies.
- `PUT …/files/by-path?path=…` makes or changes a file in one request and one version. `If-None-Match: *` makes it only where nothing is,
  `If-Match` changes only the version that it names; else the answer is 412 `STALE_VERSION`. The ETag by `file_id` is the version. The ETag by path
  names the file, too, since another file may take the place of the one at a path: send it as it was given.
- A `POST` may carry the header `Idempotency-Key`. The same key with the same request gives the first answer again; with another path, query, body
  or `X-Workspace-Id` it is refused with `IDEMPOTENCY_MISMATCH`.
- Errors have one envelope: see [errors](errors.md). The right that a route needs is in [permissions](../permissions.md).
"""


def pages():
    found = {}
    for path, text in rust.files("functions"):
        for match in re.finditer(r"#\[utoipa::path\(", text):
            end = rust.balanced(text, match.start() + 1)
            inside = text[match.end() : end - 2]
            parts = rust.split(inside)
            method = parts[0].strip()
            route = re.search(r'\bpath = "([^"]+)"', inside)
            tag = re.search(r'\btag = "([^"]+)"', inside)
            doc, _ = rust.before(text, match.start())
            handler = text[end : end + 900].split("\n}")[0]
            access = re.search(r"Access<(\w+),", handler)
            if not route:
                raise Fault(f"{path}: a route without a path")
            found.setdefault(tag.group(1) if tag else "other", []).append((route.group(1), method.upper(), doc, access.group(1).lower() if access else ""))
    if sum(map(len, found.values())) < 40:
        raise Fault("fewer than 40 routes were found: change the generator")
    out = [INTRO]
    order = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    for tag in sorted(found):
        rows = sorted(found[tag], key=lambda row: (row[0], order.index(row[1]) if row[1] in order else 9))
        out.append(f"## {tag}\n\n" + table(["route", "right", "does"], [(f"`{method} {route}`", f"`{right}`" if right else "", doc) for route, method, doc, right in rows]))
    return {"reference/routes.md": rust.generated("Routes of the API", "the handlers in `functions/api/src`", "\n".join(out))}
