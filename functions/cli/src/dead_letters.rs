//! `buildscale dead-letters`: messages that a hub put aside after too many attempts, for its operator.

use crate::{
    args::{DeadLettersArgs, DeadLettersCommand},
    client::Client,
    failure::CliError,
    output::{Look, Output, counted, one_line},
    table::{Table, when},
    value::{list, number, text},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The most that the hub lists at once.
const MOST: &str = "200";

/// Runs one of the commands.
pub(crate) async fn run(args: DeadLettersArgs, out: &mut Output) -> Result<(), CliError> {
    let client = Client::new(&args.connection)?;
    match args.command {
        None | Some(DeadLettersCommand::List) => show(&client, out).await,
        Some(DeadLettersCommand::Redrive { group: Some(group), .. }) => {
            let sent = redrive(&client, &group).await?;
            print_sent(sent, out)
        }
        Some(DeadLettersCommand::Redrive { group: None, .. }) => print_sent(redrive_all(&client).await?, out),
    }
}

async fn listed(client: &Client) -> Result<Value, CliError> {
    client.get(&["dead-letters"], &[("limit", MOST)]).await
}

async fn redrive(client: &Client, group: &str) -> Result<u64, CliError> {
    let answer = client.post(&["dead-letters", "redrive"], &json!({ "group": group })).await?;
    Ok(number(&answer, "redriven"))
}

/// Those of every group, once: a group that has dead letters again by then is left, since its cause is not mended.
async fn redrive_all(client: &Client) -> Result<u64, CliError> {
    let (mut sent, mut done) = (0, BTreeSet::new());
    loop {
        let letters = listed(client).await?;
        let groups = list(&letters, "dead_letters").iter().map(|letter| text(letter, "group").to_owned());
        let next: BTreeSet<String> = groups.filter(|group| !done.contains(group)).collect();
        if next.is_empty() {
            return Ok(sent);
        }
        for group in next {
            sent += match redrive(client, &group).await {
                // Another operator was faster.
                Err(failure) if failure.refusal().is_some_and(|refusal| refusal.code == "NOT_FOUND") => 0,
                answer => answer?,
            };
            done.insert(group);
        }
    }
}

fn print_sent(sent: u64, out: &mut Output) -> Result<(), CliError> {
    match out.is_json() {
        true => out.json(&json!({ "redriven": sent })),
        false => out.line(format_args!("{} sent again", counted(sent, "message"))),
    }
}

async fn show(client: &Client, out: &mut Output) -> Result<(), CliError> {
    let answer = listed(client).await?;
    if out.is_json() {
        return out.json(&answer);
    }
    let letters = list(&answer, "dead_letters");
    let mut table = Table::new(&["put aside", "attempts", "group", "id"]);
    for letter in letters {
        table.row(vec![
            (when(text(letter, "put_aside_at"), out), None),
            (number(letter, "attempts").to_string(), None),
            (one_line(text(letter, "group"), 120), Some(Look::Bold)),
            (one_line(text(letter, "id"), 80), Some(Look::Dim)),
        ]);
    }
    table.print(out)?;
    if letters.is_empty() {
        out.notice("no dead letters")?;
    } else if answer.get("has_more") == Some(&Value::Bool(true)) {
        out.notice("and more")?;
    }
    Ok(())
}
