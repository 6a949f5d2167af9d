//! The programs of this machine that are spoken to by their pipes: calls of their port ([`ProgramCall`]).

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
use ports::Piece;
use sandbox::wire::{self, PieceHead, ProgramCall};

pub(crate) async fn call(State(machine): State<Machine>, Raw(body): Raw) -> Answer<Response> {
    let mut parts = wire::unpacked(body).ok_or_else(|| malformed("this is no packed call"))?.into_iter();
    let call: ProgramCall = serde_json::from_slice(&parts.next().unwrap_or_default()).map_err(malformed)?;
    let programs = machine.programs();
    Ok(match call {
        ProgramCall::Start(program) => {
            let (workspace, latest) = (machine.options().workspace, machine.mirror().latest());
            programs.start(machine.commands(), workspace, &latest, *program).await?;
            Json(()).into_response()
        }
        ProgramCall::Write { call, from } => {
            let input = parts.next().ok_or_else(|| malformed("there is no input to write"))?;
            Json(programs.find(call)?.write(from, input).await?).into_response()
        }
        ProgramCall::Read { call, seen } => {
            let Piece { number, output, errors, is_over } = programs.find(call)?.read(seen).await;
            let head = serde_json::to_vec(&PieceHead { number, is_over }).map_err(malformed)?;
            wire::packed(&[head.into(), output, errors]).into_response()
        }
        ProgramCall::End(call) => {
            programs.end(call);
            Json(()).into_response()
        }
    })
}
