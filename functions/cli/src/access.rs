//! The decisions of a workspace's policies.

use crate::{
    args::AccessArgs,
    client::Client,
    failure::CliError,
    locate,
    output::{Look, Output},
    table::Table,
    value::{list, text},
};

/// `buildscale access`: a row per action, with the policy that decided and why.
pub(crate) async fn access(args: AccessArgs, out: &mut Output) -> Result<(), CliError> {
    let client = Client::new(&args.connection)?;
    let workspace = locate::workspace(&client, args.workspace.as_deref()).await?;
    let asked =
        [("path", Some(&*args.path)), ("principal", Some(&*args.principal)), ("action", args.action.as_deref())];
    let query: Vec<(&str, &str)> = asked.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let explained = client.get(&["workspaces", &workspace, "access"], &query).await?;
    if out.is_json() {
        return out.json(&explained);
    }
    let mut table = Table::with_whole_sentences(&["action", "decision", "policy", "why"]);
    for decided in list(&explained, "decisions") {
        let decision = text(decided, "decision");
        let look = (decision != "permit").then_some(Look::Bold);
        let cell = |key| (text(decided, key).to_owned(), None);
        table.row(vec![cell("action"), (decision.to_owned(), look), cell("policy"), cell("why")]);
    }
    table.print(out)
}
