//! `compact` and `context`: the context of a chat, made shorter and shown.

use crate::{
    args::{CompactArgs, ContextArgs},
    client::Client,
    failure::CliError,
    locate,
    output::{Output, counted, one_line},
    table::moment,
    value::{list, number, text},
};
use serde_json::json;

/// Has a chat compacted, or takes the last compaction back.
pub(crate) async fn compact(client: &Client, args: CompactArgs, out: &mut Output) -> Result<(), CliError> {
    let (workspace, chat) = locate::chat(client, args.workspace.as_deref(), &args.chat).await?;
    let path = ["workspaces", &workspace, "chats", &chat, "compact"];
    let (answer, told) = if args.undo {
        (client.remove(&path, &[]).await?, "the words are read again")
    } else {
        let body = args.max.map_or_else(|| json!({}), |max| json!({ "max_summary_chars": max }));
        (client.post(&path, &body).await?, "the earlier turns are being summarised")
    };
    if out.is_json() { out.json(&answer) } else { out.line(told) }
}

/// Shows the contexts of a turn.
pub(crate) async fn show(client: &Client, args: ContextArgs, out: &mut Output) -> Result<(), CliError> {
    let (workspace, chat) = locate::chat(client, args.workspace.as_deref(), &args.chat).await?;
    let query: Vec<(&str, &str)> = args.turn.iter().map(|turn| ("turn", turn.as_str())).collect();
    let answer = client.get(&["workspaces", &workspace, "chats", &chat, "context"], &query).await?;
    if out.is_json() {
        return out.json(&answer);
    }
    if let Some(analysis) = answer.get("analysis") {
        let (strategy, by) = (one_line(text(analysis, "strategy"), 20), one_line(text(analysis, "by"), 20));
        out.words(format_args!("analysed as {strategy} by {by}: {}", one_line(text(analysis, "reasoning"), 200)))?;
    }
    for call in list(&answer, "calls") {
        let (tokens, budget) = (number(call, "tokens"), number(call, "budget"));
        out.words(format_args!("{}  about {tokens} of {}", moment(text(call, "at")), counted(budget, "token")))?;
        for part in list(call, "parts") {
            let lines = match (number(part, "first_line"), number(part, "last_line")) {
                (_, 0) => String::new(),
                (first, last) => format!("lines {first} to {last}"),
            };
            let (name, why) = (one_line(text(part, "part"), 20), one_line(text(part, "why"), 100));
            out.words(format_args!("  {name:8} {:>7} {lines:22} {why}", number(part, "tokens")))?;
        }
        for cut in list(call, "cut") {
            let (part, why) = (one_line(text(cut, "part"), 20), one_line(text(cut, "why"), 100));
            let (before, after) = (number(cut, "tokens_before"), number(cut, "tokens_after"));
            out.words(format_args!("  {part} was cut from {before} to {}: {why}", counted(after, "token")))?;
        }
        let left_out = number(call, "left_out_turns");
        if left_out > 0 {
            let last = number(call, "left_out_lines");
            let turns = counted(left_out, "older turn");
            out.words(format_args!("  not read word for word: {turns}, lines 1 to {last}"))?;
        }
    }
    Ok(())
}
