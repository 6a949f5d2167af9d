"""Two functions that agents of a workspace call. BUILDSCALE_URL, BUILDSCALE_TOKEN and BUILDSCALE_WORKSPACE say where."""

import os

from buildscale import Client, CodeTool

STOCK = {"bolt": 7, "nut": 0}


def order(part: str, count: int) -> str:
    STOCK[part] = STOCK.get(part, 0) + count
    return f"{count} of {part} are ordered"


part = {"type": "object", "properties": {"part": {"type": "string"}}, "required": ["part"]}
orders = {"type": "object", "properties": {"part": {"type": "string"}, "count": {"type": "integer"}}, "required": ["part", "count"]}
tools = {
    "stock": CodeTool("Tells how many of a part are there.", lambda part: {"part": part, "count": STOCK.get(part, 0)}, part, effects="read"),
    "order": CodeTool("Orders a part.", order, orders, timeout_s=600),
}
hub = Client(os.environ.get("BUILDSCALE_URL", "http://127.0.0.1:8686"), os.environ.get("BUILDSCALE_TOKEN"))
hub.serve_tools(os.environ["BUILDSCALE_WORKSPACE"], tools)
