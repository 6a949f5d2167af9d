//! API keys and members.

use crate::{
    args::{IdPrefix, KeyArgs, KeyCommand, MemberArgs, MemberCommand, named},
    client::{Body, Client},
    failure::CliError,
    locate,
    output::{Look, Output, one_line},
    table::{Table, moment, when},
    value::{list, text},
};
use ports::{Clock, SystemClock};
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

/// More than anybody lists.
const MOST: usize = 10_000;

/// `buildscale key`.
pub(crate) async fn key(args: KeyArgs, out: &mut Output) -> Result<(), CliError> {
    let client = Client::new(&args.connection)?;
    match args.command.unwrap_or(KeyCommand::List) {
        KeyCommand::List => {
            let keys = client.list(&["keys"], "keys", &[], MOST).await?;
            if out.is_json() {
                return out.json(&json!({ "keys": keys }));
            }
            let mut table = Table::new(&["id", "made", "good", "scopes", "name"]);
            for key in &keys {
                let is_void = key.get("revoked_at").is_some();
                let good = match text(key, "expires_at") {
                    _ if is_void => "revoked".to_owned(),
                    "" => "for ever".to_owned(),
                    at => format!("until {}", moment(at)),
                };
                let scopes: Vec<_> = list(key, "scopes").iter().filter_map(Value::as_str).collect();
                let cells = [
                    text(key, "key_id").to_owned(),
                    when(text(key, "created_at"), out),
                    good,
                    scopes.join(","),
                    one_line(text(key, "name"), 40),
                ];
                let look = is_void.then_some(Look::Dim);
                table.row(cells.into_iter().map(|cell| (cell, look)).collect());
            }
            table.print(out)?;
            if keys.is_empty() {
                out.notice("no API keys yet; make one with: buildscale key create NAME --scope read")?;
            }
            Ok(())
        }
        KeyCommand::Create { name, scopes, workspaces, life } => {
            let scopes: Vec<_> = scopes.into_iter().map(named).collect();
            let mut body = json!({ "name": name, "scopes": scopes });
            if !workspaces.is_empty() {
                body["workspaces"] = json!(workspaces);
            }
            if let Some(life) = life {
                body["expires_at"] = json!(SystemClock.now() + life);
            }
            // Not a command that may be sent again: a key that no person saw would be left behind.
            let made = client.change(Method::POST, &["keys"], Body::Json(body), None).await?;
            if out.is_json() {
                return out.json(&made);
            }
            out.line(text(&made, "key"))?;
            out.notice("keep it now: it is not shown again")
        }
        KeyCommand::Revoke { id } => {
            let id = match Uuid::try_parse(id.as_str()) {
                Ok(id) => id.to_string(),
                Err(_) => {
                    let keys = client.list(&["keys"], "keys", &[], MOST).await?;
                    locate::beginning(&keys, "key_id", id.as_str(), "API key", "key list")?
                }
            };
            let gone = client.change(Method::DELETE, &["keys", &id], Body::None, None).await?;
            if out.is_json() { out.json(&gone) } else { out.line("revoked") }
        }
    }
}

/// `buildscale member`.
pub(crate) async fn member(args: MemberArgs, out: &mut Output) -> Result<(), CliError> {
    let client = Client::new(&args.connection)?;
    let workspace = locate::workspace(&client, args.workspace.as_deref()).await?;
    let members = ["workspaces", &workspace, "members"];
    let answer = match args.command.unwrap_or(MemberCommand::List) {
        MemberCommand::List => {
            let all = client.list(&members, "members", &[], MOST).await?;
            if out.is_json() {
                return out.json(&json!({ "members": all }));
            }
            let mut table = Table::new(&["id", "role", "since", "name"]);
            for member in &all {
                table.row(vec![
                    (text(member, "user_id").to_owned(), None),
                    (text(member, "role").to_owned(), None),
                    (when(text(member, "added_at"), out), None),
                    (one_line(text(member, "subject"), 200), None),
                ]);
            }
            table.print(out)?;
            return if all.is_empty() { out.notice("no members: a hub without accounts has none") } else { Ok(()) };
        }
        MemberCommand::Me => {
            let me = client.get(&["workspaces", &workspace, "members", "me"], &[]).await?;
            if !out.is_json() {
                let may: Vec<_> = list(&me, "may").iter().filter_map(Value::as_str).collect();
                return out.line(format_args!(
                    "{}  {}  may {}",
                    text(&me, "user_id"),
                    text(&me, "role"),
                    may.join(", ")
                ));
            }
            me
        }
        MemberCommand::Add { who, role } => {
            let name = if Uuid::try_parse(&who).is_ok() { "user_id" } else { "subject" };
            client.post(&members, &json!({ name: who, "role": named(role) })).await?
        }
        MemberCommand::Role { who, role } => {
            let id = find(&client, &members, &who).await?;
            let body = Body::Json(json!({ "role": named(role) }));
            client.change(Method::PATCH, &["workspaces", &workspace, "members", &id], body, None).await?
        }
        MemberCommand::Remove { who, erase_home } => {
            let id = find(&client, &members, &who).await?;
            let erased = [("erase_home", "true")];
            let query = if erase_home { &erased[..] } else { &[] };
            client.remove(&["workspaces", &workspace, "members", &id], query).await?;
            return if out.is_json() { out.json(&json!({ "user_id": id })) } else { out.line("removed") };
        }
    };
    if out.is_json() { out.json(&answer) } else { out.line(member_line(&answer)) }
}

fn member_line(member: &Value) -> String {
    let (id, role) = (text(member, "user_id"), text(member, "role"));
    let name = one_line(text(member, "subject"), 60);
    format!("{id}  {role:6}  {}  {name}", moment(text(member, "added_at"))).trim_end().to_owned()
}

/// The id of a member: `who` itself, or of the one with that name, or of the one whose id begins so.
async fn find(client: &Client, members: &[&str], who: &str) -> Result<String, CliError> {
    if Uuid::try_parse(who).is_ok() {
        return Ok(who.to_owned());
    }
    let all = client.list(members, "members", &[], MOST).await?;
    if let Some(named) = all.iter().find(|member| text(member, "subject") == who) {
        return Ok(text(named, "user_id").to_owned());
    }
    match who.parse::<IdPrefix>() {
        Ok(begin) => locate::beginning(&all, "user_id", begin.as_str(), "member", "member list"),
        Err(_) => Err(CliError::NotFound(format!("{who:?} is no member; `buildscale member list` lists them"))),
    }
}
