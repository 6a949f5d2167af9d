//! `buildscale search`: files, documents and conversations by their words.

use crate::{
    args::{SearchArgs, SearchKindArg, SearchModeArg},
    client::Client,
    failure::CliError,
    locate,
    output::{Look, Output, clean, counted},
    value::{list, number, text},
};
use serde_json::{Value, json};

/// The best matches, each with its place, its snippet and why it was found.
pub(crate) async fn search(args: SearchArgs, out: &mut Output) -> Result<(), CliError> {
    let client = Client::new(&args.connection)?;
    let workspace = locate::workspace(&client, args.workspace.as_deref()).await?;
    let found = client.post(&["workspaces", &workspace, "search"], &body(&args)).await?;
    if out.is_json() {
        return out.json(&found);
    }
    let style = out.style();
    for result in list(&found, "results") {
        let lines = result.get("lines").filter(|lines| lines.is_object());
        let lines = lines.map(|lines| format!(":{}-{}", number(lines, "first"), number(lines, "last")));
        let place = clean(&format!("{}{}", text(result, "path"), lines.unwrap_or_default()));
        out.line(format_args!(
            "{}  {}",
            style.paint(Look::Bold, place),
            style.paint(Look::Dim, clean(text(result, "why")))
        ))?;
        let parts = list(result, "snippet").iter().map(|part| {
            let shown = clean(text(part, "text"));
            if part.get("mark") == Some(&Value::Bool(true)) { style.paint(Look::Bold, shown) } else { shown }
        });
        let snippet: String = parts.collect();
        for line in snippet.lines() {
            out.line(format_args!("    {line}"))?;
        }
    }
    let (shown, total) = (list(&found, "results").len() as u64, number(&found, "total"));
    if total == 0 {
        out.notice("nothing matches")?;
    } else if total > shown {
        out.notice(format_args!("{shown} of {}; --limit shows more", counted(total, "file")))?;
    }
    if let Some(note) = found.get("note").and_then(Value::as_str) {
        out.notice(clean(note))?;
    }
    let pending = number(&found, "pending");
    if pending > 0 {
        let passages = counted(pending, "passage");
        out.notice(format_args!("not found by their meaning yet: {passages}; search again to find more"))?;
    } else if found.get("complete") == Some(&Value::Bool(false)) {
        out.notice("not everything was searched: search again, or narrow --path, to find more")?;
    }
    Ok(())
}

fn body(args: &SearchArgs) -> Value {
    let mode = match args.mode {
        SearchModeArg::Text => "text",
        SearchModeArg::Regex => "regex",
        SearchModeArg::Semantic => "semantic",
        SearchModeArg::Hybrid => "hybrid",
    };
    let kind = |kind: &SearchKindArg| match kind {
        SearchKindArg::File => "file",
        SearchKindArg::Document => "document",
        SearchKindArg::Chat => "chat",
    };
    let mut body = json!({ "query": query(&args.query), "mode": mode, "limit": args.limit });
    if !args.kinds.is_empty() {
        body["kinds"] = args.kinds.iter().map(kind).collect();
    }
    let path = args.path.as_deref().map(locate::absolute);
    for (key, value) in [
        ("path", path.as_deref()),
        ("author", args.author.as_deref()),
        ("tag", args.tag.as_deref()),
        ("modified_after", args.after.as_deref()),
        ("modified_before", args.before.as_deref()),
    ] {
        if let Some(value) = value {
            body[key] = value.into();
        }
    }
    body
}

/// The words as one query. A shell takes quotation marks away, so one word among several that has spaces was a phrase.
fn query(words: &[String]) -> String {
    let one = |word: &String| {
        let is_phrase = words.len() > 1 && word.contains(' ') && !word.contains('"');
        if is_phrase { format!("\"{word}\"") } else { word.clone() }
    };
    words.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_word_among_others_is_a_phrase() {
        let words = |words: &[&str]| query(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(words(&["parser", "error recovery", "-old"]), "parser \"error recovery\" -old");
        assert_eq!(words(&["error recovery"]), "error recovery");
    }
}
