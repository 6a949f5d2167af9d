"""reference/cli.md: every command and option of the command line, from the types that clap parses them into."""

import re

import rust
from errors import exit_codes
from rust import Fault, bare, table

NEAR = "functions/cli/src/args"
OWN = "functions/hub/src/program"
# The values of a type that is not ours.
SHELLS = ["bash", "elvish", "fish", "powershell", "zsh"]


def arg(field):
    """The words in `#[arg(…)]`, on one line also where the source has a line for each."""
    return " ".join((rust.attr(field.attrs, "arg") or "").split())


def setting(text, name):
    found = re.search(rf'\b{name} = ("(?:[^"\\]|\\.)*"|\'.\'|[\w.:-]+)', text)
    word = found.group(1) if found else None
    if word and re.fullmatch(r"[A-Z][A-Z_]+", word):
        word = rust.constant(word, NEAR) or word
    return word.strip("\"'") if word else None


def word_of(item, variant):
    """The word for a variant on the command line."""
    rule = re.search(r'rename_all = "([^"]+)"', rust.attr(item.attrs, "value") or "")
    return rust.cased(variant, rule.group(1) if rule else "kebab-case")


def flag(text, name):
    return bool(re.search(rf"(?:^|, ){name}(?:,|$)", text))


def options(fields, path):
    """The rows of positional arguments and of options; the tables that are the same everywhere are named instead."""
    positional, named, shared = [], [], []
    for field in fields:
        command = rust.attr(field.attrs, "command") or ""
        if "subcommand" in command:
            continue
        if "flatten" in command:
            inner = rust.item(bare(field.type)[0], path)
            if inner.name == "Connection":
                shared.append(inner)
                continue
            more = options(inner.fields, inner.path)
            positional, named, shared = positional + more[0], named + more[1], shared + more[2]
            continue
        text = arg(field)
        type_, optional = bare(field.type)
        many = re.fullmatch(r"Vec<(.+)>", type_)
        inner = many.group(1) if many else type_
        item = rust.find(re.sub(r"^\w+::", "", inner), path)
        values = re.search(r"value_parser = (\[[^\]]*\]|[A-Z_]+\b)", text)
        values = values.group(1) if values else ""
        choices = re.findall(r'"([^"]+)"', values if values.startswith("[") else rust.constant(values, path) or "")
        if item and item.kind == "enum" and any("ValueEnum" in each for each in item.attrs):
            choices = [word_of(item, v.name) for v in item.variants]
        elif inner == "Shell":
            choices = SHELLS
        default = setting(text, "default_value") or setting(text, "default_value_t")
        if default and "::" in default:
            default = word_of(item, default.split("::")[-1])
        about = field.doc
        extra = []
        if choices:
            extra.append("one of " + ", ".join(f"`{each}`" for each in choices))
        if default:
            extra.append(f"default `{default}`")
        env = setting(text, "env")
        if env:
            extra.append(f"variable `{env}`")
        if extra:
            about = about.rstrip(".") + ": " + "; ".join(extra) if "[default" not in about else about + "; " + "; ".join(extra)
        about = re.sub(r"\[default: ([^\]]+)\]", r"(default: \1)", about)
        long = setting(text, "long") or (field.name.replace("_", "-") if flag(text, "long") else None)
        short = setting(text, "short") or (field.name[0] if flag(text, "short") else None)
        value = setting(text, "value_name") or field.name.upper()
        if not long and not short:
            must = not optional and not default and not (many and "required = true" not in text)
            word = f"<{value}>" if must else f"[{value}]"
            positional.append((word + ("..." if many else ""), about))
            continue
        names = ", ".join(filter(None, [f"-{short}" if short else "", f"--{long}" if long else ""]))
        named.append((names if type_ == "bool" else f"{names} <{value}>", about))
    return positional, named, shared


def entry(words, variant, fields, path, out, sub=None):
    positional, named, shared = options(fields, path)
    usage = " ".join(["buildscale", *words] + (["[OPTIONS]"] if named or shared else []) + (["[COMMAND]" if bare(sub.type)[1] else "<COMMAND>"] if sub else []) + [word for word, _ in positional])
    text = f"{'#' * (1 + len(words))} buildscale {' '.join(words)}\n\n{variant.doc}\n\n    {usage}\n\n"
    alias = setting(rust.attr(variant.attrs, "command") or "", "visible_alias")
    if alias:
        text += f"`buildscale {' '.join([*words[:-1], alias])}` is the same.\n\n"
    if positional:
        text += table(["argument", "is"], [(f"`{word}`", about) for word, about in positional]) + "\n"
    if named:
        text += table(["option", "is"], [(f"`{names}`", about) for names, about in named]) + "\n"
    if shared:
        text += "And the [options that reach a hub](#options-that-reach-a-hub).\n"
    out.append(text)


def walk(words, variant, path, out):
    if "hide = true" in (rust.attr(variant.attrs, "command") or ""):
        return
    if not variant.payload:
        entry(words, variant, variant.fields, path, out)
        return
    # The binary names types of its modules and of the library by their paths.
    args = rust.item(re.sub(r"^(?:\w+::)+|^Box<(?=.*>$)|>$", "", variant.payload), path if "::" not in variant.payload else OWN)
    sub = next((f for f in args.fields if "subcommand" in (rust.attr(f.attrs, "command") or "")), None)
    entry(words, variant, args.fields, args.path, out, sub)
    if sub:
        for each in rust.item(bare(sub.type)[0], args.path).variants:
            walk(words + [rust.cased(each.name, "kebab-case")], each, args.path, out)


def pages():
    program = rust.item("Program", f"{OWN}.rs")
    commands = []
    for variant in rust.item("Command", f"{OWN}.rs").variants:
        if "flatten" in (rust.attr(variant.attrs, "command") or ""):
            library = rust.item("Command", "functions/cli/src/args.rs")
            commands += [(each, library.path) for each in library.variants]
        else:
            commands.append((variant, f"{OWN}.rs"))
    if len(commands) < 10:
        raise Fault("fewer than 10 commands were found: change the generator")
    out = []
    for variant, path in commands:
        walk([rust.cased(variant.name, "kebab-case")], variant, path, out)
    connection = rust.item("Connection", NEAR)
    _, named, _ = options(connection.fields, connection.path)
    intro = f"{program.doc}\n\n`buildscale help COMMAND` prints the same for one command. `-h` is short, `--help` is long. With `--json` each command prints JSON, also for\nerrors. Colours appear on a terminal only, and never when `NO_COLOR` is set.\n\nThe [options that reach a hub](#options-that-reach-a-hub) and `-w, --workspace <WORKSPACE>` may stand before the command or behind it: `buildscale --url URL chats list`\nis `buildscale chats list --url URL`. A command that has no use for one of them refuses it.\n"
    listed = [(f"[`{name}`](#buildscale-{name})", v.doc.split("\n\n")[0]) for v, _ in commands if "hide = true" not in (rust.attr(v.attrs, "command") or "") for name in [rust.cased(v.name, "kebab-case")]]
    shared = "## Options that reach a hub\n\n" + table(["option", "is"], [(f"`{names}`", about) for names, about in named])
    exits = "## Exit codes\n\n" + table(["code", "means"], [(f"`{code}`", about) for code, about in exit_codes()])
    text = "\n".join([intro, table(["command", "does"], listed), shared, *out, exits])
    return {"reference/cli.md": rust.generated("Command line", "`functions/cli/src/args` and `functions/hub/src/program`", text)}
