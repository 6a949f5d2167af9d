//! The coding agents of this machine: calls of their port ([`AgentCall`]), for the chats of its workspace.

use crate::{
    answer::Answer,
    body::{Body, malformed},
    copies::alone,
    machine::Machine,
};
use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use ports::AgentTurn;
use sandbox::wire::{AgentCall, LONGEST_WAIT, Updates};
use tokio::time::timeout;

pub(crate) async fn call(State(machine): State<Machine>, Body(call): Body<AgentCall>) -> Answer<Response> {
    let (agents, workspace) = (machine.agents(), machine.options().workspace);
    let turn = match &call {
        AgentCall::Prompt(prompt) => Some(prompt.turn),
        AgentCall::Updates { turn, .. }
        | AgentCall::Answer { turn, .. }
        | AgentCall::Settle { turn, .. }
        | AgentCall::Cancel(turn) => Some(*turn),
        AgentCall::End(_) | AgentCall::Commands(_) => None,
    };
    if turn.is_some_and(|turn| turn.workspace != workspace) {
        return Err(malformed("this turn is of another workspace"));
    }
    match call {
        AgentCall::Prompt(prompt) => {
            let (agents, used) = (agents.clone(), machine.idle().used());
            // It goes on after its caller has gone: the next one then finds the turn begun.
            let prompting = tokio::spawn(async move {
                let _used = used;
                agents.prompt(*prompt).await
            });
            prompting.await.map_err(|error| ports::Error::unavailable("the agent", error))??;
        }
        AgentCall::Updates { turn, seen } => return Ok(Json(updates(&machine, turn, seen).await?).into_response()),
        AgentCall::Answer { turn, request, option } => agents.answer(&turn, &request, option.as_deref()).await?,
        AgentCall::Settle { turn, request, refused } => agents.settle(&turn, &request, refused.as_deref()).await?,
        AgentCall::Cancel(turn) => agents.cancel(&turn).await?,
        AgentCall::End(chat) => {
            alone(&machine, agents.end(workspace, chat)).await?;
            machine.batches().forget(chat);
        }
        AgentCall::Commands(chat) => return Ok(Json(agents.commands(workspace, chat).await).into_response()),
    }
    Ok(Json(()).into_response())
}

async fn updates(machine: &Machine, turn: AgentTurn, seen: Option<u64>) -> Answer<Updates> {
    let batches = machine.batches();
    let number = match batches.lacks(&turn, seen) {
        Ok(lacking) => return Ok(lacking),
        Err(number) => number,
    };
    match timeout(LONGEST_WAIT, machine.agents().updates(&turn)).await {
        Ok(updates) => Ok(batches.hand_out(&turn, updates?)),
        Err(_) => Ok(Updates { number, updates: Vec::new() }),
    }
}
