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
    let head = if args.by == UsageBy::Day { "day (UTC)" } else { "person" };
    let mut table = Table::new(&[head, "model", "turns", "calls", "tokens in", "tokens out", "dollars"]);
    for ((of, model), figures) in &rows(&used, args.by, &names) {
        table.row([vec![(of.clone(), None), (model.clone(), None)], cells(figures, None)].concat());
    }
    let total = used.get("total").unwrap_or(&Value::Null);
    let head = vec![("total".to_owned(), Some(Look::Bold)), (String::new(), None)];
    table.row([head, cells(&figures(total), Some(Look::Bold))].concat());
    table.print(out)
}

/// The figures by day or person, and model. The work outside of turns is a part of the total, and of no person.
fn rows(used: &Value, by: UsageBy, names: &BTreeMap<String, String>) -> BTreeMap<(String, String), [f64; 5]> {
    let mut rows = BTreeMap::<_, [f64; 5]>::new();
    let mut add = |of: String, model: String, part: &Value| {
        let row = rows.entry((of, model)).or_default();
        row.iter_mut().zip(figures(part)).for_each(|(sum, figure)| *sum += figure);
    };
    for part in list(used, "parts") {
        let of = match (by, text(part, "user_id")) {
            (UsageBy::Day, _) => text(part, "day"),
            (UsageBy::Person, "") => "unknown",
            (UsageBy::Person, id) => names.get(id).map_or(id, |name| name),
        };
        let model = match text(part, "model") {
            "" => "default",
            model => model,
        };
        add(of.to_owned(), one_line(model, 40), part);
    }
    for work in list(used, "other") {
        let of = if by == UsageBy::Day { text(work, "day") } else { "nobody" };
        let name = format!("{}: {}", text(work, "purpose"), text(work, "model"));
        add(of.to_owned(), one_line(&name, 52), work);
    }
    rows
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_rows_add_up_to_the_total() {
        let part = json!({ "day": "2026-11-29", "user_id": "u", "model": "a/b", "turns": 1, "calls": 2, "input_tokens": 30,
            "output_tokens": 4, "cost_usd": 0.5 });
        let older = json!({ "day": "2026-11-28", "model": null, "turns": 1, "calls": 1, "input_tokens": 1, "output_tokens": 1,
            "cost_usd": 0.0 });
        let work = json!({ "day": "2026-11-29", "purpose": "embedding", "model": "c/d", "calls": 3, "input_tokens": 5,
            "output_tokens": 0, "cost_usd": 0.25 });
        let used = json!({ "parts": [part.clone(), part, older], "other": [work] });
        let names = BTreeMap::from([("u".to_owned(), "ann".to_owned())]);
        let rows = |by| -> Vec<(String, String, [f64; 5])> {
            super::rows(&used, by, &names).into_iter().map(|((of, model), figures)| (of, model, figures)).collect()
        };
        let row = |of: &str, model: &str, figures: [f64; 5]| (of.to_owned(), model.to_owned(), figures);
        let (twice, once) = ([2.0, 4.0, 60.0, 8.0, 1.0], [1.0, 1.0, 1.0, 1.0, 0.0]);
        let outside = [0.0, 3.0, 5.0, 0.0, 0.25];
        assert_eq!(
            rows(UsageBy::Day),
            [
                row("2026-11-28", "default", once),
                row("2026-11-29", "a/b", twice),
                row("2026-11-29", "embedding: c/d", outside),
            ]
        );
        assert_eq!(
            rows(UsageBy::Person),
            [row("ann", "a/b", twice), row("nobody", "embedding: c/d", outside), row("unknown", "default", once)]
        );
    }
}
