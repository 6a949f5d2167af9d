"""Whether the templates agree with each other and with the code: what no linter of single files can see.

Run by scripts/lint-infra, with the Python of its tools, which has YAML and TOML.
"""

import re
import sys
from pathlib import Path

import tomlkit
import yaml

ROOT = Path(__file__).resolve().parents[2]
FAULTS = []


class Loader(yaml.SafeLoader):
    """Reads CloudFormation's short forms as what they are: `!Ref x` is {"Ref": "x"}, `!GetAtt a.b` {"Fn::GetAtt": "a.b"}."""


def short_form(loader, suffix, node):
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


Loader.add_multi_constructor("!", short_form)


def template(path):
    return yaml.load((ROOT / path).read_text(), Loader)


def walk(value):
    """Every mapping in a template, however deep."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        yield from walk(inner)


def fault(text):
    FAULTS.append(text)


def nested_stacks(root):
    """Each nested stack gets exactly the parameters that it has, and is asked only for what it gives."""
    stacks = {}
    for name, resource in root["Resources"].items():
        if resource["Type"] != "AWS::CloudFormation::Stack":
            continue
        path = resource["Properties"]["TemplateURL"]
        if not (ROOT / path).is_file():
            fault(f"template.yaml: {name} is made of {path}, and there is no such file")
            continue
        stacks[name] = template(path)
        given, declared = set(resource["Properties"].get("Parameters", {})), stacks[name].get("Parameters", {})
        needed = {parameter for parameter, of in declared.items() if "Default" not in of}
        for parameter in sorted(given - set(declared)):
            fault(f"template.yaml: {name} is given {parameter}, which {path} does not have")
        for parameter in sorted(needed - given):
            fault(f"template.yaml: {name} is not given {parameter}, which {path} needs")
    for mapping in walk(root):
        asked = re.fullmatch(r"(\w+)\.Outputs\.(\w+)", str(mapping.get("Fn::GetAtt", "")))
        if asked and asked[2] not in stacks.get(asked[1], {}).get("Outputs", {}):
            fault(f"template.yaml: {asked[1]} has no output {asked[2]}")
    return stacks


def environment(stacks):
    """The variables that templates set and those that the code reads are the same."""
    sources = "".join(path.read_text() for folder in ("functions", "shared") for path in sorted((ROOT / folder).rglob("*.rs")))
    read = set(re.findall(r'const \w+: &str = "(BUILDSCALE__AWS__\w+[^_])"', sources))
    written = set()
    for stack in stacks.values():
        for mapping in walk(stack):
            if "Variables" in mapping:
                written |= set(mapping["Variables"])
            for entry in mapping.get("Environment", []) if isinstance(mapping.get("Environment"), list) else []:
                written |= {inner["Name"] for inner in walk(entry) if "Name" in inner}
            for entry in mapping.get("Secrets", []) if isinstance(mapping.get("Secrets"), list) else []:
                written.add(entry["Name"])
    for name in sorted(read - written):
        fault(f"the code reads {name}, and no template sets it")
    for name in sorted(written):
        if not knows(sources, name):
            fault(f"a template sets {name}, and no code reads it")


def knows(sources, name):
    """Whether the code names a variable, or, as hubs read theirs, has a field for the last part of a `BUILDSCALE__A__B`."""
    if f'"{name}"' in sources:
        return True
    field = name.rsplit("__", 1)[-1].lower()
    return name.startswith("BUILDSCALE__") and re.search(rf"\bpub {field}: ", sources) is not None


def numbers(stacks):
    """Numbers in different files that only make sense together."""
    functions, data = stacks["Functions"]["Resources"], stacks["Data"]["Resources"]
    worker, timer = (functions[name]["Properties"]["Timeout"] for name in ("Worker", "Timer"))
    commands, delays = (data[name]["Properties"]["VisibilityTimeout"] for name in ("Commands", "Delays"))
    if commands < worker:
        fault(f"commands are invisible for {commands} s, and a worker may take {worker} s: Lambda refuses that")
    if delays < 6 * timer:
        fault(f"delays are invisible for {delays} s, which is not six times the timer's {timer} s")
    options = (ROOT / "functions/stream/src/options.rs").read_text()
    silence, idle = (
        int(re.search(rf"{name}: Duration::from_secs\((\d+)\)", options)[1]) for name in ("keep_alive", "head_timeout")
    )
    attributes = stacks["Containers"]["Resources"]["Balancer"]["Properties"]["LoadBalancerAttributes"]
    cut = next(int(each["Value"]) for each in attributes if each["Key"] == "idle_timeout.timeout_seconds")
    if not silence < cut < idle:
        fault(f"the balancer cuts off after {cut} s: not between the stream's heartbeat ({silence} s) and its own idle time-out ({idle} s)")


def choices(root):
    """samconfig.toml chooses among what there is to choose, and everything without a default."""
    declared = root["Parameters"]
    for name, config in tomlkit.parse((ROOT / "samconfig.toml").read_text()).unwrap().items():
        if not isinstance(config, dict):
            continue
        chosen = dict(entry.split("=", 1) for entry in config["deploy"]["parameters"]["parameter_overrides"])
        for parameter, value in chosen.items():
            allowed = declared.get(parameter, {}).get("AllowedValues")
            if parameter not in declared:
                fault(f"samconfig.toml: {name} sets {parameter}, which template.yaml does not have")
            elif allowed and value not in allowed:
                fault(f"samconfig.toml: {name} sets {parameter} to {value}, which is none of {', '.join(allowed)}")
        for parameter, of in declared.items():
            if "Default" not in of and parameter not in chosen:
                fault(f"samconfig.toml: {name} does not set {parameter}")


def reasons(stacks):
    """Whoever switches a check off says why."""
    for name, stack in stacks.items():
        for mapping in walk(stack):
            for skipped in mapping.get("checkov", {}).get("skip", []) if isinstance(mapping.get("checkov"), dict) else []:
                if not skipped.get("comment"):
                    fault(f"{name}: {skipped['id']} is switched off without a reason")


def toolchains():
    """The images are built with a Rust that the code can be built with, the same one everywhere in a file."""
    oldest = tomlkit.parse((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    parts = lambda version: [int(part) for part in version.split(".")]
    for path in sorted((ROOT / "infra/containers").glob("*.Dockerfile")):
        used = set(re.findall(r"(?:RUST=|RUSTUP_TOOLCHAIN=)([0-9.]+)", path.read_text()))
        if len(used) != 1 or parts(used.pop()) < parts(oldest):
            fault(f"{path.relative_to(ROOT)}: its Rust has to be one, and {oldest} or newer (rust-version in Cargo.toml)")


def main():
    root = template("template.yaml")
    stacks = nested_stacks(root)
    if not FAULTS:
        environment(stacks)
        numbers(stacks)
    choices(root)
    toolchains()
    reasons({"template.yaml": root, **stacks})
    for text in FAULTS:
        print(text, file=sys.stderr)
    return 1 if FAULTS else 0


if __name__ == "__main__":
    sys.exit(main())
