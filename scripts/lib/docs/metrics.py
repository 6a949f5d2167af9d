"""reference/metrics.md: every family of /metrics, from the places that write it."""

import re

import rust
from rust import Fault, table

STRING = r'"((?:[^"\\]|\\.)*)"'


def families():
    found = {}

    def add(name, kind, labels, help_, where):
        found.setdefault(name, (kind, labels, help_, where))

    for path, text in rust.files():
        for sort, name, help_ in re.findall(rf'\b(gauge|total)\(\s*out,\s*"([a-z_]+)",\s*{STRING}', text):
            add(name + ("_total" if sort == "total" else ""), "counter" if sort == "total" else "gauge", "", help_, path)
        for name, labels, help_ in re.findall(rf'\(\s*"(buildscale_[a-z_]+_total)",\s*"([a-z]+)",\s*{STRING},?\s*\)', text):
            add(name, "counter", labels, help_, path)
        for name, kind, labels, help_ in re.findall(rf'\(\s*"(buildscale_[a-z_]+)",\s*"(histogram|counter|gauge)",\s*"([a-z, ]*)",\s*{STRING},?\s*\)', text):
            add(name, kind, labels, help_, path)
        for name, kind, help_ in re.findall(r'# HELP (buildscale_[a-z_]+)()\s+([^\\"]+?)(?:\\n|")', text):
            sort = re.search(rf"# TYPE {name} (\w+)", text)
            labels = re.search(r'let labels = format!\("([^;]*)"\);', text)
            add(name, sort.group(1) if sort else "", ", ".join(re.findall(r"(\w+)=", labels.group(1))) if labels else "", help_, path)
        for name, kind, help_ in re.findall(rf'metric\(\s*"(\w+)",\s*"(\w+)",\s*{STRING}', text):
            add(name, kind, "", help_, path)
        for name, help_ in re.findall(rf'family\(\s*"(buildscale_[a-z_]+)",\s*{STRING}', text):
            add(name, "counter", "sweep", help_, path)
        for name, kind, help_, labels in re.findall(rf'[A-Z_]+ "\w+" "(buildscale_[a-z_]+)" (\w+) {STRING} \[([^\]]*)\];', text):
            sort = {"Gauge": "gauge", "Counter": "counter", "Seconds": "histogram", "Tokens": "histogram", "Bytes": "histogram"}[kind]
            add(name, sort, ", ".join(re.findall(r'"(\w+)"', labels)), help_, path)
        # Names that are put together elsewhere in the same file.
        for name in re.findall(r'let name = "(buildscale_[a-z_]+)";', text):
            near = text[text.index(f'let name = "{name}"'):][:900]
            help_ = re.search(r"# HELP \{name\} ([^\\\"]+)", near)
            sort = re.search(r"# TYPE \{name\} (\w+)", near)
            if help_ and sort:
                labels = re.findall(r'[{,](\w+)=\\"', near)
                if name == "buildscale_flow_metrics_info":
                    # Its labels are put together where the manifests of flows are read.
                    _, selection = rust.file_with(r"^fn about\(flow", "shared/telemetry")
                    labels = re.findall(r'\("(\w+)", (?:flow|&version|metric|description)\)', selection)
                add(name, sort.group(1), ", ".join(dict.fromkeys(labels)), help_.group(1), path)
        for name, help_ in re.findall(rf'let build = format!\("(buildscale_build_info)[^;]*;\s*metric\(&build, "gauge", {STRING}', text):
            add(name, "gauge", "version", help_, path)
    return found


INTRO = """`GET /metrics` answers in Prometheus' text format. A hub without accounts gives it to everybody who may call the API. A hub with accounts, and
the functions on AWS, give it to the holder of `auth.metrics_token` alone. See [configuration](configuration.md).

Counters begin at 0 when the process starts. `_seconds` are seconds, `_bytes` are bytes. A histogram has `_bucket`, `_sum` and `_count`.
"""


def on_aws():
    """The metrics that functions write to their logs for CloudWatch, once per invocation."""
    _, text = rust.file_with(r"^const METRICS: \[\(&str, &str, &str\)", "functions/assembly")
    inside = re.search(r"^const METRICS: [^=]+= \[(.*?)^\];", text, re.S | re.M).group(1)
    rows = re.findall(r'\("(\w+)", "(\w+)", "((?:[^"\\]|\\.)*)"\)', inside)
    namespace = re.search(r'const NAMESPACE: &str = "(\w+)"', text).group(1)
    shown = [(f"`{name}`", f"`{family}`" + (f" with `{rust.unquote(chr(34) + label + chr(34))}`" if label else "")) for name, family, label in rows]
    return (f"## CloudWatch\n\nFunctions on AWS write one line per invocation in CloudWatch's embedded metric format, under the namespace `{namespace}`. Each metric is the sum of a family, or of those of its\n"
            "series that have a label.\n\n" + table(["metric", "sum of"], shown))  # fmt: skip


def pages():
    found = families()
    mentioned = set()
    for path, text in rust.files():
        # A metric for CloudWatch alone has no family here.
        if "const METRICS: [(&str, &str, &str)" in text:
            continue
        for name in re.findall(r'"(buildscale_[a-z_]+)"', text):
            mentioned.add(name)
    families_ = set(found) | {name.removesuffix("_total") for name in found}
    unknown = sorted(name for name in mentioned if name not in families_)
    if unknown:
        raise Fault(f"these families are counted somewhere, and the generator does not see how: {unknown}")
    groups = [
        ("Process", lambda path, name: name.startswith("process_") or name.endswith("build_info")),
        ("HTTP and event streams", lambda path, name: "http" in name or "stream" in name or "connections" in name),
        ("Actors, turns and models", lambda path, name: "assembly/src/activity" in path or "assembly/src/model_metrics" in path or "traced" in name or "actors" in name or "deliveries" in name),
        ("Flows and tasks", lambda path, name: path.startswith(("shared/flow", "shared/telemetry"))),
        ("Everything else", lambda path, name: True),
    ]
    out, rest = [INTRO], dict(found)
    for title, belongs in groups:
        mine = {name: rest[name] for name in sorted(rest) if belongs(rest[name][3], name)}
        rest = {name: value for name, value in rest.items() if name not in mine}
        rows = [(f"`{name}`", kind, ", ".join(f"`{each}`" for each in labels.split(", ") if each), help_) for name, (kind, labels, help_, _) in mine.items()]
        if rows:
            out.append(f"## {title}\n\n" + table(["name", "type", "labels", "is"], rows))
    out.append(on_aws())
    return {"reference/metrics.md": rust.generated("Metrics", "the code that counts", "\n".join(out))}
