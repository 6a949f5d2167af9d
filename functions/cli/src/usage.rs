//! The usage of a workspace.

use crate::{
    args::{UsageArgs, UsageBy},
    client::Client,
    failure::CliError,
    locate,
    output::{Look, Output, one_line},
    table::Table,
    value::{list, number, text},
};
use domain::Principal;
use serde_json::Value;
use std::collections::BTreeMap;

/// `buildscale usage`: by day or person, and the sum.
pub(crate) async fn usage(args: UsageArgs, out: &mut Output) -> Result<(), CliError> {
    let client = Client::new(&args.connection)?;
    let workspace = locate::workspace(&client, args.workspace.as_deref()).await?;
    let days = [("from", args.from.as_deref()), ("to", args.to.as_deref())];
    let query: Vec<(&str, &str)> = days.into_iter().filter_map(|(name, day)| Some((name, day?))).collect();
    let used = client.get(&["workspaces", &workspace, "usage"], &query).await?;
    if out.is_json() {
        return out.json(&used);
    }
    let names = match args.by {
        UsageBy::Day => BTreeMap::new(),
        UsageBy::Person => names(&client, &workspace).await?,
    };
    let of = |part: &Value| match (args.by, text(part, "user_id")) {
        (UsageBy::Day, _) => text(part, "day").to_owned(),
        (UsageBy::Person, "") => "unknown".to_owned(),
        (UsageBy::Person, id) => names.get(id).map_or(id, |name| name).to_owned(),
    };
    let head = if args.by == UsageBy::Day { "day" } else { "person" };
    let mut table = Table::new(&[head, "model", "turns", "calls", "tokens in", "tokens out", "dollars"]);
    let mut rows = BTreeMap::<(String, String), [f64; 5]>::new();
    for part in list(&used, "parts") {
        let model = match text(part, "model") {
            "" => "default",
            model => model,
        };
        let row = rows.entry((of(part), one_line(model, 40))).or_default();
        row.iter_mut().zip(figures(part)).for_each(|(sum, figure)| *sum += figure);
    }
    for ((of, model), figures) in &rows {
        table.row([vec![(of.clone(), None), (model.clone(), None)], cells(figures, None)].concat());
    }
    let total = used.get("total").unwrap_or(&Value::Null);
    let head = vec![("total".to_owned(), Some(Look::Bold)), (String::new(), None)];
    table.row([head, cells(&figures(total), Some(Look::Bold))].concat());
    table.print(out)
}

/// The names of the members of a workspace, by their ids. The machine's own person is on no list.
async fn names(client: &Client, workspace: &str) -> Result<BTreeMap<String, String>, CliError> {
    const MOST: usize = 1_000;
    let members = client.list(&["workspaces", workspace, "members"], "members", &[], MOST).await?;
    let named = members.iter().filter(|member| !text(member, "subject").is_empty());
    let named = named.map(|member| (text(member, "user_id").to_owned(), one_line(text(member, "subject"), 40)));
    Ok(named.chain([(Principal::local().user().to_string(), "operator".to_owned())]).collect())
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
