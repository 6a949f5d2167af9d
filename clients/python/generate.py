"""Writes the types of the API, `schema.py` and `_routes.py`, from the OpenAPI document of a hub.

    BUILDSCALE_URL=http://127.0.0.1:8686 python generate.py [folder]
"""

from __future__ import annotations

import json
import keyword
import os
import re
import sys
import urllib.request
from pathlib import Path
from typing import Any

Schema = dict[str, Any]
METHODS = ("get", "post", "put", "patch", "delete")
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
NOTE = '"""{}\n\nThis file is written by generate.py. Do not edit it.\n"""\n\nfrom __future__ import annotations\n\n'


class Types:
    """The schemas of a document as `TypedDict` classes, `Literal` types and unions. An inline object gets a name from its place."""

    def __init__(self, schemas: dict[str, Schema]) -> None:
        self.schemas = schemas
        self.blocks: dict[str, str] = {}
        for name, schema in schemas.items():
            self.define(name, schema)

    def define(self, name: str, schema: Schema) -> str:
        if name in self.blocks:
            return name
        self.blocks[name] = ""
        if "properties" in schema or "allOf" in schema:
            self.blocks[name] = self.typed_dict(name, schema)
        else:
            note = comment(schema.get("description"), "")
            self.blocks[name] = f"{note}{name}: TypeAlias = {json.dumps(self.of(schema, name, named=True), ensure_ascii=False)}\n"
        return name

    def of(self, schema: Schema, place: str, named: bool = False) -> str:
        """The type of a schema; `place` is the name that an object at this place would get."""
        if "$ref" in schema:
            return str(schema["$ref"].rsplit("/", 1)[1])
        if "enum" in schema:
            return f"Literal[{', '.join(repr(value) for value in schema['enum'])}]"
        for union in ("oneOf", "anyOf"):
            if union in schema:
                return either([self.of(one, place + variant(one, at)) for at, one in enumerate(schema[union])])
        if "allOf" in schema or "properties" in schema:
            return self.define(place, schema)
        kind = schema.get("type")
        if isinstance(kind, list):
            return either([self.of({**schema, "type": one}, place) for one in kind])
        if kind == "array":
            return f"list[{self.of(schema.get('items', {}), place + 'Item')}]"
        if kind == "object":
            values = schema.get("additionalProperties")
            return f"dict[str, {self.of(values, place + 'Value') if isinstance(values, dict) else 'Any'}]"
        return SCALARS.get(kind or "", "Any")

    def merged(self, schema: Schema) -> Schema:
        """An object with the properties of all its parts."""
        if "$ref" in schema:
            return self.merged(self.schemas[schema["$ref"].rsplit("/", 1)[1]])
        whole: Schema = {"properties": dict(schema.get("properties", {})), "required": list(schema.get("required", []))}
        for part in schema.get("allOf", []):
            found = self.merged(part)
            whole["properties"] |= found["properties"]
            whole["required"] += found["required"]
        return whole

    def typed_dict(self, name: str, schema: Schema) -> str:
        whole = self.merged(schema)
        fields = []
        for key, value in whole["properties"].items():
            kind = self.of(value, name + camel(key))
            fields.append((key, kind if key in whole["required"] else f"NotRequired[{kind}]", value.get("description")))
        return typed_dict(name, schema.get("description"), fields)


def typed_dict(name: str, text: str | None, fields: list[tuple[str, str, str | None]]) -> str:
    if any(keyword.iskeyword(key) or not key.isidentifier() for key, _, _ in fields):
        lines = "".join(f"{comment(note, '    ')}    {key!r}: {kind!r},\n" for key, kind, note in fields)
        return f"{comment(text, '')}{name} = TypedDict({name!r}, {{\n{lines}}})\n"
    lines = "".join(f"{comment(note, '    ')}    {key}: {kind}\n" for key, kind, note in fields)
    if text:
        quoted = text.replace("\\", "\\\\").replace('"""', "'''").replace("\n", "\n    ")
        lines = f'    """{quoted}"""\n\n{lines}'
    return f"class {name}(TypedDict):\n{lines or '    pass' + chr(10)}"


def comment(text: str | None, indent: str) -> str:
    return "".join(f"{indent}# {line}\n" for line in (text or "").splitlines())


def either(kinds: list[str]) -> str:
    return " | ".join(dict.fromkeys(kinds))


def camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", name))


def variant(schema: Schema, at: int) -> str:
    """A name for one of several objects: the value of its tag, else its only property, else its number."""
    properties: dict[str, Schema] = schema.get("properties", {})
    tags = [value["enum"][0] for value in properties.values() if len(value.get("enum", [])) == 1]
    if tags:
        return camel(str(tags[0]))
    return camel(next(iter(properties))) if len(properties) == 1 else f"{at + 1}"


class Routes:
    """The overloads of `get`, `post` and so on: a signature per route, for both clients."""

    def __init__(self, document: Schema, types: Types) -> None:
        self.types = types
        self.dicts: dict[str, str] = {}
        self.signatures: dict[str, list[str]] = {method: [] for method in (*METHODS, "all")}
        self.readable: list[str] = []
        for route, item in document["paths"].items():
            for method in METHODS:
                if method in item:
                    self.add(method, route, item.get("parameters", []), item[method])

    def add(self, method: str, route: str, shared: list[Schema], operation: Schema) -> None:
        parameters = [*shared, *operation.get("parameters", [])]
        arguments = self.arguments(operation["operationId"], parameters)
        content = operation.get("requestBody", {}).get("content")
        if content is not None:
            json_body = content.get("application/json", {}).get("schema")
            place = camel(operation["operationId"]) + "Body"
            kind = "bytes | str" if json_body is None else self.types.of(json_body, place)
            needed = operation["requestBody"].get("required", False)
            arguments.append(f"body: {kind}" if needed else f"body: {kind} | None = None")
        arguments += ["headers: Mapping[str, str] | None = None"]
        if method == "post":
            arguments += ["idempotency_key: str | None = None"]
        answer = self.answer(operation)
        head = f"self, route: Literal[{route!r}], /, *, {', '.join(arguments)}"
        self.signatures[method].append(f"({head}) -> {answer}")
        if method == "get":
            self.readable.append(route)
            item = self.item(answer)
            if item and any(one["name"] == "cursor" for one in parameters):
                self.signatures["all"].append(f"({head}) -> Iterator[{item}]")

    def arguments(self, operation: str, parameters: list[Schema]) -> list[str]:
        arguments = [f"{one['name']}: {self.types.of(one['schema'], '')}" for one in parameters if one["in"] == "path"]
        fields = [one for one in parameters if one["in"] == "query"]
        if fields:
            name = f"{camel(operation)}Query"
            rows = []
            for one in fields:
                kind = self.types.of(one["schema"], name + camel(one["name"]))
                rows.append((one["name"], kind if one.get("required") else f"NotRequired[{kind}]", one.get("description")))
            self.dicts[name] = typed_dict(name, None, rows)
            needed = any(one.get("required") for one in fields)
            arguments.append(f"query: {name}" if needed else f"query: {name} | None = None")
        return arguments

    def answer(self, operation: Schema) -> str:
        kinds = []
        for status, answer in operation["responses"].items():
            if not status.startswith("2"):
                continue
            schema = answer.get("content", {}).get("application/json", {}).get("schema")
            kinds.append("None" if schema is None else self.types.of(schema, camel(operation["operationId"]) + "Answer"))
        return either(kinds) or "None"

    def item(self, answer: str) -> str | None:
        properties: dict[str, Schema] = self.types.schemas.get(answer, {}).get("properties", {})
        lists = [value for value in properties.values() if value.get("type") == "array"]
        return self.types.of(lists[0]["items"], answer + "Item") if len(lists) == 1 else None

    def write(self) -> str:
        names = sorted(name for name in self.types.blocks if name not in self.dicts)
        text = NOTE.format("The routes of a hub: which arguments each takes, and its answer.")
        text += "from collections.abc import AsyncIterator, Iterator, Mapping\nfrom typing import Any, Literal, NotRequired, Protocol, TypeAlias, TypedDict, overload\n\n"
        used = [name for name in names if re.search(rf"\b{name}\b", str(self.signatures) + str(self.dicts))]
        text += "from .schema import (\n" + "".join(f"    {name},\n" for name in used) + ")\n\n"
        text += "# The paths that can be read as they are.\nReadable: TypeAlias = Literal[\n" + "".join(f"    {route!r},\n" for route in self.readable) + "]\n"
        text += "".join(f"\n\n{block}" for _, block in sorted(self.dicts.items()))
        return text + self.client("Routes", "") + self.client("AsyncRoutes", "async ")

    def client(self, name: str, word: str) -> str:
        kind, wait = ("AsyncIterator", "await ") if word else ("Iterator", "")
        text = f'\n\nclass {name}(Protocol):\n    """The typed methods of a client."""\n\n'
        text += f"    {word}def _json(self, method: str, route: str, /, **request: Any) -> Any: ...\n\n"
        text += f"    def _all(self, route: str, /, **request: Any) -> {kind}[Any]: ...\n"
        for method in METHODS:
            text += "".join(f"\n    @overload\n    {word}def {method}{signature}: ...\n" for signature in self.signatures[method])
            text += f"\n    {word}def {method}(self, route: str, /, **request: Any) -> Any:\n        return {wait}self._json({method!r}, route, **request)\n"
        text += "".join(f"\n    @overload\n    def all{signature.replace('Iterator', kind)}: ...\n" for signature in self.signatures["all"])
        return text + f'\n    def all(self, route: str, /, **request: Any) -> {kind}[Any]:\n        """The elements of all pages of a list."""\n        return self._all(route, **request)\n'


def write(document: Schema, folder: Path) -> None:
    """Writes both files into `folder`."""
    types = Types(document["components"]["schemas"])
    routes = Routes(document, types)
    text = NOTE.format("The types of requests, answers and events of a hub.")
    text += "from typing import Any, Literal, NotRequired, TypeAlias, TypedDict\n"
    text += "".join(f"\n\n{block}" for _, block in sorted(types.blocks.items()))
    (folder / "schema.py").write_text(text, encoding="utf-8")
    (folder / "_routes.py").write_text(routes.write(), encoding="utf-8")


if __name__ == "__main__":
    url = os.environ.get("BUILDSCALE_URL", "http://127.0.0.1:8686").rstrip("/")
    with urllib.request.urlopen(f"{url}/openapi.json") as answer:
        write(json.load(answer), Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "src/buildscale")
