//! The usage of a workspace.

use crate::{
    args::UsageArgs,
    client::Client,
    failure::CliError,
    locate,
    output::{Look, Output, one_line},
    table::Table,
    value::{list, number, text},
};
use serde_json::Value;
use std::collections::BTreeMap;

/// `buildscale usage`: by day, and the sum.
pub(crate) async fn usage(args: UsageArgs, out: &mut Output) -> Result<(), CliError> {
    let client = Client::new(&args.connection)?;
    let workspace = locate::workspace(&client, args.workspace.as_deref()).await?;
    let days = [("from", args.from.as_deref()), ("to", args.to.as_deref())];
    let query: Vec<(&str, &str)> = days.into_iter().filter_map(|(name, day)| Some((name, day?))).collect();
    let used = client.get(&["workspaces", &workspace, "usage"], &query).await?;
    if out.is_json() {
        return out.json(&used);
    }
    let mut table = Table::new(&["day", "model", "turns", "calls", "tokens in", "tokens out", "dollars"]);
    let mut rows = BTreeMap::<(String, String), [f64; 5]>::new();
    for part in list(&used, "parts") {
        let model = match text(part, "model") {
            "" => "default",
            model => model,
        };
        let row = rows.entry((text(part, "day").to_owned(), one_line(model, 40))).or_default();
        row.iter_mut().zip(figures(part)).for_each(|(sum, figure)| *sum += figure);
    }
    for ((day, model), figures) in &rows {
        table.row([vec![(day.clone(), None), (model.clone(), None)], cells(figures, None)].concat());
    }
    let total = used.get("total").unwrap_or(&Value::Null);
    let head = vec![("total".to_owned(), Some(Look::Bold)), (String::new(), None)];
    table.row([head, cells(&figures(total), Some(Look::Bold))].concat());
    table.print(out)
}

fn figures(used: &Value) -> [f64; 5] {
    let count = |key| number(used, key) as f64;
    let cost = used.get("cost_usd").and_then(Value::as_f64).unwrap_or_default();
    [count("turns"), count("calls"), count("input_tokens"), count("output_tokens"), cost]
}

fn cells(figures: &[f64; 5], look: Option<Look>) -> Vec<(String, Option<Look>)> {
    let [turns, calls, input, output, cost] = figures;
    let counts = [turns, calls, input, output].map(|count| (format!("{count:.0}"), look));
    counts.into_iter().chain([(format!("{cost:.4}"), look)]).collect()
}
