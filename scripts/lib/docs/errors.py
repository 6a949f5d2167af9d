"""reference/errors.md: every stable code, its HTTP status, and the messages and hints that come with it."""

import re

import rust
from rust import Fault, table

HTTP = {
    "OK": 200, "BAD_REQUEST": 400, "UNAUTHORIZED": 401, "FORBIDDEN": 403, "NOT_FOUND": 404, "CONFLICT": 409,
    "PRECONDITION_FAILED": 412, "PAYLOAD_TOO_LARGE": 413, "UNPROCESSABLE_ENTITY": 422, "TOO_MANY_REQUESTS": 429,
    "INTERNAL_SERVER_ERROR": 500, "BAD_GATEWAY": 502, "SERVICE_UNAVAILABLE": 503, "GATEWAY_TIMEOUT": 504,
    "INSUFFICIENT_STORAGE": 507,
}  # fmt: skip
STRING = r'"(?:[^"\\]|\\.)*"'


def statuses():
    _, text = rust.file_with(r"pub fn status_of\(code: Code\)")
    at = text.index("pub fn status_of")
    body = text[at : rust.balanced(text, text.index("{", at))]
    found = {}
    for codes, status in re.findall(r"((?:Code::\w+\s*\|?\s*)+)=> StatusCode::(from_u16\(\d+\)|\w+)", body):
        number = int(re.search(r"\((\d+)\)", status).group(1)) if "(" in status else HTTP[status]
        for code in re.findall(r"Code::(\w+)", codes):
            found[code] = number
    return found


def hints():
    """Message and hint by code: each `.hint(…)` with the code and the message that its statement names."""
    found = {}
    for path, text in rust.files():
        if path.startswith(("functions/cli/src", "shared/flow/src/load")):
            continue
        for match in re.finditer(rf"\.hint\(\s*(?:format!\(\s*)?({STRING})", text):
            statement = text[:match.start()]
            cut = max(statement.rfind(each) for each in (";\n", "=>", "{\n", "}\n"))
            # The beginning of the statement: a chain may hold closures, so look a little further back for the code.
            head = statement[cut:] if re.search(r"Code::\w+|Error::(invalid|not_found)\(", statement[cut:]) else statement[-400:]
            codes = list(re.finditer(r"Code::(\w+)|Error::(invalid|not_found)\(|\b(invalid|not_found)\(", head))
            if not codes:
                continue
            last = codes[-1]
            code = last.group(1) or {"invalid": "InvalidArgument", "not_found": "NotFound"}[last.group(2) or last.group(3)]
            after = head[last.end():]
            # Another statement, or another arm, is about something else; but an error may get its hint in the next line.
            between = re.sub(r";\s*(?:return )?(?:Err\()?\w+$", "", re.sub(STRING, "", after))
            if re.search(r";|=>|\blet\b|\bfn\b|\belse\b", between):
                continue
            texts = [rust.unquote(each) for each in re.findall(STRING, after)]
            if (last.group(2) or last.group(3)) == "not_found":
                message = f"there is no {texts[0]} …" if texts else ""
            else:
                message = next((each for each in texts if " " in each), "")
            if message:
                found.setdefault(code, {}).setdefault((message, rust.unquote(match.group(1))), path)
    return found


def shown(text):
    return re.sub(r"\{[^{}]*\}", "…", text.replace("{{", "\x01").replace("}}", "\x02")).replace("\x01", "{").replace("\x02", "}")


def exit_codes():
    _, text = rust.file_with(r"^pub const EXIT_CODES: &str", "functions/cli")
    literal = re.search(rf"const EXIT_CODES: &str = ({STRING});", text, re.S).group(1)
    return re.findall(r"^\s+(\d+)\s+(.+)$", rust.unquote(literal), re.M)


def own_codes():
    """The codes that the command line has beside those of the API: its own, and those of a hub that does not start, of backups, and of the store."""
    codes = set()
    for folder, pattern in [
        ("functions/cli", "pub fn code(&self) -> &str"),
        ("functions/hub", "pub fn code(&self) -> &'static str"),
        ("shared/embedded", "pub fn code(&self) -> &'static str"),
    ]:
        found = [text for _, text in rust.files(folder) if pattern in text]
        if not found:
            raise Fault(f"{folder} has no `{pattern}`: change the generator")
        for text in found:
            at = text.index(pattern)
            codes |= set(re.findall(r'=> "([A-Z_]+)"', text[at : rust.balanced(text, text.index("{", at))]))
    return sorted(codes)


ABOUT_OWN = {
    "UNREACHABLE": "No hub answers at the address. Start it, or give another with `--url`.",
    "ISSUER": "The issuer of tokens does not answer, or not as one. Try again; `buildscale auth login` begins anew.",
    "NOT_A_HUB": "Something answers that is no BuildScale hub, or one of another version. Check `--url` and `BUILDSCALE_URL`.",
    "IO": "A file of this machine, or standard output, cannot be read or written.",
    "HUB": "The hub of `buildscale serve` did not start, or ended badly; or its configuration is wrong.",
    "DATA_IN_USE": "A hub, or another process, works on the data folder.",
    "STORE_TOO_NEW": "A later version of BuildScale wrote the store. It was not changed.",
    "STORE_TOO_OLD": "The store is older than all that this version reads. It was not changed.",
    "STORE_MISSING": "The store is missing or empty, but workspaces that it knew are there.",
    "STORE_NOT_MIGRATED": "The store could not be brought to this version's schema, and is as it was.",
    "STORE_UNREADABLE": "SQLite cannot open the store.",
    "NOT_A_DATA_FOLDER": "`--data-dir` is no data folder of a hub: it has no store.",
    "NOT_A_BACKUP": "The folder is no backup; or it is to become one, and has other things in it.",
    "BACKUP_NOT_WHOLE": "The backup was interrupted, and there is none before it.",
    "BACKUP_DAMAGED": "Files of the backup are missing, or not what was written.",
    "BACKUP_TOO_NEW": "A later version of BuildScale made the backup.",
    "BACKUP_OF_ANOTHER": "The folder has the backup of a hub with other workspaces.",
    "BACKUP_IN_USE": "Another process writes or reads the backup.",
    "DATA_NOT_EMPTY": "The data folder has something in it. `--replace` moves that aside.",
    "INDEX_UNREADABLE": "The index of the files cannot be read in the copy of the store.",
}

INTRO = """Every refusal of the API has one envelope. Codes are stable: a code never changes its meaning. Messages may change.

```json
{"error": {"code": "NOT_FOUND", "message": "there is no route GET /x", "hint": "GET /openapi.json lists every route",
           "request_id": "…", "details": {}}}
```

`hint` names the remedy, and may be absent. `details` holds facts for programs, such as the `field` at fault. `request_id` finds the request in
the log. `429` and `503` have the header `Retry-After`, in seconds.

Events and histories have the same codes, without a status: in `error` of a task, in `code` of an observation.
"""


def pages():
    enum = rust.item("Code", "shared/domain")
    status, known = statuses(), hints()
    missing = [v.name for v in enum.variants if v.name not in status]
    if missing:
        raise Fault(f"these codes have no status in status_of: {missing}")
    name = {v.name: rust.renamed(v, enum.attrs) for v in enum.variants}
    out = [INTRO, "## Codes\n"]
    out.append(table(["code", "status", "means"], [(f"[`{name[v.name]}`](#{name[v.name].lower()})", str(status[v.name]), v.doc) for v in enum.variants]))
    out.append("## Messages and hints\n\nThese are the messages that come with a fixed hint; `…` stands for the parts that differ.\n")
    for v in enum.variants:
        pairs = sorted({(shown(m), shown(h)) for m, h in known.get(v.name, {})})
        body = table(["message", "hint"], pairs) if pairs else "No message with a fixed hint.\n"
        out.append(f"### `{name[v.name]}`\n\n{v.doc} Status {status[v.name]}.\n\n{body}")
    out.append("## Codes of the command line\n\nWith `--json` the command line prints the same envelope on standard error. It has these codes beside those of the API:\n")
    own = [code for code in own_codes() if code not in name.values()]
    unknown = [code for code in own if code not in ABOUT_OWN]
    if unknown:
        raise Fault(f"the command line has codes that the generator knows nothing of: {unknown}")
    out.append(table(["code", "means"], [(f"`{code}`", ABOUT_OWN[code]) for code in own]))
    out.append("## Exit codes of the command line\n")
    out.append(table(["exit code", "means"], [(f"`{code}`", about) for code, about in exit_codes()]))
    sources = f"`{enum.path}`, the handlers, and the command line"
    return {"reference/errors.md": rust.generated("Errors", sources, "\n".join(out))}
