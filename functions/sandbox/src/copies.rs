//! The working copies of this machine: calls of their port ([`CopyCall`]).

use crate::{
    answer::Answer,
    body::{Raw, malformed},
    machine::Machine,
};
use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use domain::ChatId;
use ports::WorkingCopies;
use sandbox::wire::{self, CopyCall, HeldCopy, LONGEST_WAIT};
use std::{pin::pin, time::Duration};
use tokio::time::timeout;

/// How often leases that nobody uses are ended, while a caller waits for its copy.
const EXPIRE_EVERY: Duration = Duration::from_secs(5);

pub(crate) async fn call(State(machine): State<Machine>, Raw(body): Raw) -> Answer<Response> {
    let mut parts = wire::unpacked(body).ok_or_else(|| malformed("this is no packed call"))?.into_iter();
    let call: CopyCall = serde_json::from_slice(&parts.next().unwrap_or_default()).map_err(malformed)?;
    let copies = machine.agents().copies().ok_or_else(|| malformed("there are no working copies here"))?;
    let (leases, workspace) = (machine.copy_leases(), machine.options().workspace);
    Ok(match call {
        CopyCall::Hold(chat) => Json(hold(&machine, &*copies, chat).await?).into_response(),
        CopyCall::Scan { hold, folder, record } => {
            let copy = leases.renewed(hold)?;
            let mut copy = copy.lock().await;
            *copy.record() = record;
            Json(copy.scan(&folder).await?).into_response()
        }
        CopyCall::Read { hold, path, found } => {
            let copy = leases.renewed(hold)?;
            let content = copy.lock().await.read(&path, found).await?;
            wire::packed(content.as_slice()).into_response()
        }
        CopyCall::Put { hold, path, over } => {
            let content = parts.next().ok_or_else(|| malformed("there is no content to put there"))?;
            let copy = leases.renewed(hold)?;
            let is_put = copy.lock().await.put(&path, content, over).await?;
            Json(is_put).into_response()
        }
        CopyCall::TakeAway { hold, path, found } => {
            let copy = leases.renewed(hold)?;
            let is_taken = copy.lock().await.take_away(&path, found).await?;
            Json(is_taken).into_response()
        }
        CopyCall::Keep { hold, record } => {
            let copy = leases.renewed(hold)?;
            let mut copy = copy.lock().await;
            *copy.record() = record;
            copy.keep().await?;
            Json(()).into_response()
        }
        CopyCall::Release(hold) => {
            leases.release(hold);
            Json(()).into_response()
        }
        CopyCall::Remove(chat) => {
            alone(&machine, copies.remove(workspace, chat)).await?;
            Json(()).into_response()
        }
    })
}

/// The copy of a chat; none when another has it for as long as a request waits.
async fn hold(machine: &Machine, copies: &dyn WorkingCopies, chat: ChatId) -> Answer<Option<HeldCopy>> {
    let holding = alone(machine, copies.hold(machine.options().workspace, chat));
    let Ok(copy) = timeout(LONGEST_WAIT, holding).await else { return Ok(None) };
    let mut copy = copy?;
    let record = copy.record().clone();
    Ok(Some(HeldCopy { hold: machine.copy_leases().add(copy), record }))
}

/// Work that waits until nobody else has a copy. Leases that nobody uses any longer are ended meanwhile.
pub(crate) async fn alone<T>(machine: &Machine, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    loop {
        machine.copy_leases().expire();
        if let Ok(done) = timeout(EXPIRE_EVERY, &mut work).await {
            return done;
        }
    }
}
