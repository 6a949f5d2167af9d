# Converts a table on the standard input or in a file. Variables: from (csv, tsv, markdown), to (csv, tsv, markdown, json), separator (of csv).
# The first row is the header. Exit codes: 0 done, 1 wrong variables, 2 a row that does not fit the header.

function fail(code, message) {
    print message > "/dev/stderr"
    failed = code
    exit code
}

# The text with each character of `set` that `as` names written as that.
function written(text, set, as,    i, c, out) {
    out = ""
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        out = out (index(set, c) ? as[c] : c)
    }
    return out
}

# Takes the cells of a record of CSV into cell[1..n]; gives n, or 0 where a quoted cell has not ended.
function csv(text,    i, c, n, quoted, now) {
    n = 1; now = ""; quoted = 0
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (quoted) {
            if (c != "\"") now = now c
            else if (substr(text, i + 1, 1) == "\"") { now = now "\""; i++ }
            else quoted = 0
        } else if (c == "\"" && now == "") quoted = 1
        else if (c == separator) { cell[n++] = now; now = "" }
        else now = now c
    }
    cell[n] = now
    return quoted ? 0 : n
}

function markdown(text,    i, c, n, now) {
    sub(/^[ \t]*\|/, "", text)
    n = 1; now = ""
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "\\" && substr(text, i + 1, 1) == "|") { now = now "|"; i++ }
        else if (c == "|") { cell[n++] = trimmed(now); now = "" }
        else now = now c
    }
    if (trimmed(now) != "") cell[n++] = trimmed(now)
    return n - 1
}

function trimmed(text) {
    sub(/^[ \t]+/, "", text)
    sub(/[ \t]+$/, "", text)
    return text
}

function shown(text) {
    if (to == "csv") {
        if (index(text, separator) || index(text, "\"") || index(text, "\n")) return "\"" written(text, "\"", of_csv) "\""
        return text
    }
    if (to == "tsv") return written(text, "\t\n", of_tsv)
    return written(text, "|\n", of_markdown)
}

function row(n,    i, line) {
    rows++
    if (rows == 1) { columns = n; for (i = 1; i <= n; i++) head[i] = cell[i] }
    if (n != columns) fail(2, "row " rows " (line " NR ") has " n " cells; the header has " columns)
    if (to == "json") {
        if (rows == 1) return
        line = ""
        for (i = 1; i <= n; i++) line = line (i > 1 ? ", " : "") json(head[i]) ": " json(cell[i])
        printf "%s  {%s}", (rows > 2 ? ",\n" : "\n"), line
        return
    }
    line = ""
    for (i = 1; i <= n; i++) line = line (i > 1 ? between : "") shown(cell[i])
    print before line after
    if (to == "markdown" && rows == 1) {
        line = "|"
        for (i = 1; i <= n; i++) line = line "---|"
        print line
    }
}

function json(text) {
    return "\"" written(text, control, of_json) "\""
}

BEGIN {
    if (separator == "") separator = ","
    if (from !~ /^(csv|tsv|markdown)$/) fail(1, "from is csv, tsv or markdown, as in -v from=csv")
    if (to !~ /^(csv|tsv|markdown|json)$/) fail(1, "to is csv, tsv, markdown or json, as in -v to=markdown")
    if (length(separator) != 1) fail(1, "separator is one character")
    between = to == "csv" ? separator : to == "tsv" ? "\t" : " | "
    if (to == "markdown") { before = "| "; after = " |" }
    of_csv["\""] = "\"\""
    of_tsv["\t"] = " "; of_tsv["\n"] = " "
    of_markdown["|"] = "\\|"; of_markdown["\n"] = "<br>"
    control = "\"\\"
    for (i = 1; i < 32; i++) { c = sprintf("%c", i); control = control c; of_json[c] = sprintf("\\u%04x", i) }
    of_json["\""] = "\\\""; of_json["\\"] = "\\\\"; of_json["\n"] = "\\n"; of_json["\t"] = "\\t"
    if (to == "json") printf "["
}

NR == 1 { sub(/^\357\273\277/, "") }
{ sub(/\r$/, "") }
from == "csv" {
    record = open ? record "\n" $0 : $0
    if (!open && record == "") next
    n = csv(record)
    open = n == 0
    if (!open) row(n)
    next
}
/^[ \t]*$/ { next }
from == "tsv" { n = split($0, cell, "\t"); row(n); next }
{
    if ($0 ~ /^[ \t]*\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/) next
    row(markdown($0))
}

END {
    if (failed) exit failed
    if (open) { print "the last quoted cell has no end" > "/dev/stderr"; exit 2 }
    if (to == "json") print (rows > 1 ? "\n]" : "]")
    print (rows > 0 ? rows - 1 : 0) " rows" > "/dev/stderr"
}
