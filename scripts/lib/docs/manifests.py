"""reference/manifests.md: every key of every manifest of a flow, from the types that they are read into."""

import re

import rust
from rust import Fault, bare, table

WHERE = ("shared/flow",)


def kind_of(type_, todo, near):
    name, optional = bare(re.sub(r"^#\[.*?\)\]\s*", "", type_))
    inner = re.fullmatch(r"Vec<(.+)>", name)
    if inner:
        return f"list of {kind_of(inner.group(1), todo, near)[0]}", optional
    inner = re.fullmatch(r"(?:BTree)?Map<String, (.+)>", name)
    if inner:
        value = kind_of(inner.group(1), todo, near)[0]
        return "object" if value == "any" else f"object of {value}", optional
    if re.fullmatch(r"[ui](8|16|32|64|size)", name):
        return "integer", optional
    plain = {"String": "text", "bool": "boolean", "f64": "number", "f32": "number", "Value": "any"}.get(name)
    if plain:
        return plain, optional
    item = rust.find(name, near)
    if item is None:
        return name, optional
    if item.kind == "struct":
        todo.append(item)
        return f"[{item.name}](#{item.name.lower()})", optional
    serde = rust.attr(item.attrs, "serde") or ""
    if "untagged" in serde:
        return " or ".join(kind_of(v.payload, todo, near)[0] for v in item.variants), optional
    if all(not v.fields and not v.payload for v in item.variants):
        return ", ".join(f"`{rust.renamed(v, item.attrs)}`" for v in item.variants), optional
    return item.name, optional


def number(match):
    """A bound as people write it."""
    if not match:
        return ""
    value = float(match.group(1))
    return str(int(value)) if value.is_integer() else str(value)


def section(item, todo):
    required = set(re.findall(r'"(\w+)"', (re.search(r'"required" = \[([^\]]*)\]', rust.attr(item.attrs, "schemars") or "") or [""])[0])[1:])
    lenient = re.search(r"\bdefault\b", rust.attr(item.attrs, "serde") or "")
    known = rust.defaults(item.name, "shared/flow")
    rows, choices = [], []
    for field in item.fields:
        serde, schemars = rust.attr(field.attrs, "serde") or "", rust.attr(field.attrs, "schemars") or ""
        if re.search(r"\bskip\b(?!_)", serde):
            continue
        name = rust.renamed(field, item.attrs)
        kind, optional = kind_of(field.type, todo, item.path)
        must = name in required or (not optional and not lenient and not re.search(r"\bdefault\b", serde))
        default = rust.evaluate(known[field.name], item.path) if field.name in known else ""
        bounds = []
        for sort, unit in (("range", ""), ("length", " characters")):
            found = re.search(sort + r"\(([^)]*)\)", schemars)
            if found:
                least, most = (number(re.search(rf"{end} = ([\d.]+)", found.group(1))) for end in ("min", "max"))
                said = f"{least} to {most}" if least and most else f"at least {least}" if least else f"at most {most}"
                bounds.append(said + (" character" if said == "at least 1" and unit else unit))
        about = field.doc
        if default and default not in ("[]",):
            about += f" Default: `{default}`."
        if bounds:
            about += f" Allowed: {', '.join(bounds)}."
        rows.append((f"`{name}`", kind, "yes" if must else "", about))
        choice = rust.find(re.sub(r"^Vec<(.+)>$", r"\1", bare(field.type)[0]), item.path)
        if choice and choice.kind == "enum" and all(not v.fields and not v.payload for v in choice.variants):
            choices.append((name, choice))
    text = table(["key", "type", "required", "is"], rows)
    for name, choice in choices:
        values = [(f"`{rust.renamed(v, choice.attrs)}`", v.doc) for v in choice.variants]
        text += f"\nValues of `{name}`:\n\n" + table(["value", "means"], values)
    return text


def pages():
    path, text = rust.file_with(r"const MANIFESTS: &\[", *WHERE)
    listed = re.search(r"const MANIFESTS: &\[.*?= &\[(.*?)\n\];", text, re.S).group(1)
    kinds = re.findall(r'\("(\w+)", &\[([^\]]*)\], "(\w*)"\)', listed)
    _, schemas = rust.file_with(r'\("workflow", of::<', *WHERE)
    types = dict(re.findall(r'\("(\w+)", of::<(\w+)>\(\)\)', schemas))
    if {kind for kind, _, _ in kinds} != set(types):
        raise Fault(f"{path} lists other manifests than there are schemas for: change the generator")
    done, out = set(), []
    out.append("A flow is a folder of manifests, in YAML or JSON. `workflow.yaml` is required; the others are optional. `buildscale flow check` reports\n"
               "every fault with its line. `buildscale flow schema NAME` prints the JSON Schema of one manifest, for editors.\n\n"
               "Keys that begin with `x-` are left alone everywhere. A key that is not listed here is a fault, or a note where other engines\n"
               "have such a key and it has no effect here. Schemas of inputs and outputs are files `schemas/NAME.json`.\n"
               "HTTP tools of the flow alone are files `tools/NAME.yaml`, with the keys of [those of a workspace](../how-to/own-tools.md#declare-an-http-tool).\n")
    out.append(table(["file", "also", "is", "may be only a list of"], [
        (f"[`{kind}.yaml`](#{kind}yaml)", ", ".join(f"`{n}.yaml`" for n in re.findall(r'"(\w+)"', names)[1:]),
         re.sub(r"^`[^`]+`(?: or `[^`]+`)?: (\w)", lambda m: m.group(1).upper(), rust.item(types[kind], "shared/flow/src/manifest").doc.split(". ")[0].rstrip(".") + "."),
         f"`{key}`" if key else "")
        for kind, names, key in kinds]))  # fmt: skip
    for kind, _, _ in kinds:
        root = rust.item(types[kind], "shared/flow/src/manifest")
        done.add(root.name)
        todo = []
        out.append(f"## {kind}.yaml\n\n{root.doc}\n\n{section(root, todo)}")
        while todo:
            item = todo.pop(0)
            if item.name in done:
                continue
            done.add(item.name)
            out.append(f"### {item.name}\n\n{item.doc}\n\n{section(item, todo)}")
    return {"reference/manifests.md": rust.generated("Manifests of flows", "`shared/flow/src/manifest`", "\n".join(out))}
