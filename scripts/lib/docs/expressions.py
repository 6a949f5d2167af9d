"""reference/expressions.md: the functions of expressions, and the registered functions that nodes and tools can be bound to."""

import re

import rust
from rust import Fault, table

STRING = r'"(?:[^"\\]|\\.)*"'
STANDS = {"Before": "before its value", "After": "after its value", "Either": "on either side of it", "Macro": "as in the example"}

INTRO = """Manifests have [CEL](https://cel.dev) expressions: `op.expr`, `split.over`, `merge.score`, assertions of evaluations, and `{{…}}` in texts. An expression knows these names:

| name | is |
|---|---|
| `input` | the input of the node; in a `command` of `tools.yaml` the arguments of the tool; in `merge.score` one arrival |
| `outputs.NODE` | the output of a node that ran before in this task |
| `context` | the memory that the node is given: `items`, each with `store`, `key`, `content`, `tags` and `at`; the sum of their `tokens`; `left_out` |
| `task` | `id`, `flow`, `files`; in a clone or subtask its `name` and its `index`, from 0 |

A key that is not there is an error, so ask `has(input.due)` before. A whole number and a decimal are compared, but not combined: `double(input.n) * 1.5`. `7 / 2` is 3. `+` joins texts and lists; `in` looks for an element or a
key; `a ? b : c` chooses. An expression has at most 4,096 bytes, reads no clock, and ends with an error where it asks for too much work.
"""


def functions():
    _, text = rust.file_with(r"^pub\(super\) const FUNCTIONS: \[\(&str, Side", "shared/flow")
    count = int(re.search(r"const FUNCTIONS: \[[^;]+; (\d+)\]", text).group(1))
    row = rf"\(\s*{STRING},\s*\w+,\s*{STRING},\s*{STRING},\s*{STRING},?\s*\)"
    cells = rf"({STRING}),\s*(\w+),\s*({STRING}),\s*({STRING}),\s*({STRING})"
    found = [re.search(cells, each).groups() for each in re.findall(row, text)]
    if len(found) != count:
        raise Fault(f"the table of functions has {count} rows, and {len(found)} are read: change the generator")
    found = [(rust.unquote(name), stands, *map(rust.unquote, rest)) for name, stands, *rest in found]
    return [(f"`{name}`", STANDS[stands], does, f"`{example}`", f"`{gives}`") for name, stands, does, example, gives in sorted(found)]


def check_names():
    _, text = rust.file_with(r"^pub const ROOTS: ", "shared/flow")
    names = re.findall(r'"(\w+)"', re.search(r"^pub const ROOTS: [^=]+= \[(.*?)\];", text, re.S | re.M).group(1))
    missing = [name for name in names if not re.search(rf"^\| `{name}[.`]", INTRO, re.M)]
    if missing:
        raise Fault(f"these names of expressions are not described: {missing}")


def registered():
    _, text = rust.file_with(r"fn make_builtin\(\)", "shared/flow")
    names = re.findall(r'\badd\("(\w+:\w+)"', text)
    _, text = rust.file_with(r"fn builtin\(name: &str\) -> Option<Signature>", "shared/flow")
    does = {name: rust.unquote(text_) for name, text_ in re.findall(rf'"(\w+:\w+)" => (?:\{{\s*)?\(\s*({STRING})', text)}
    if set(names) != set(does):
        raise Fault(f"these registered functions are not described: {sorted(set(names) ^ set(does))}")
    return [(f"`{name}`", does[name]) for name in sorted(names)]


def pages():
    check_names()
    out = [INTRO, "## Functions\n", "The examples have the input `{\"items\": [3, 1, 2], \"name\": \"Ada\"}`.\n"]
    out.append(table(["function", "stands", "is", "example", "gives"], functions()))
    out.append("## Registered functions\n\n`op.function` of a node and `entrypoint` of a tool name one. It is given the whole input of the node, or the arguments of the tool.\n")
    out.append(table(["function", "is"], registered()))
    return {"reference/expressions.md": rust.generated("Expressions", "`shared/flow/src/op`", "\n".join(out))}
