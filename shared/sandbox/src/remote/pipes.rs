//! The pipes of programs in a sandbox on another machine.

use super::{ANSWER, Client, EMPTY, body_of, read};
use crate::wire::{self, LONGEST_WAIT, PieceHead, ProgramCall};
use async_trait::async_trait;
use bytes::Bytes;
use domain::CallId;
use ports::{Error, Exec, Piece, Pipes, Result};
use reqwest::Response;
use std::sync::Arc;
use tokio::time::sleep;

/// The pipes of the programs of one sandbox.
pub(super) struct RemotePipes(pub Arc<Client>);

impl RemotePipes {
    async fn call(&self, call: &ProgramCall, input: Option<Bytes>) -> Result<Response> {
        self.0.post_packed("/programs", LONGEST_WAIT + ANSWER, call, input).await
    }
}

#[async_trait]
impl Pipes for RemotePipes {
    async fn start(&self, program: Exec) -> Result<()> {
        self.call(&ProgramCall::Start(Box::new(program)), None).await.map(drop)
    }

    async fn write(&self, call: CallId, from: u64, input: Bytes) -> Result<u64> {
        let is_probe = input.is_empty();
        let has: u64 = read(self.call(&ProgramCall::Write { call, from }, Some(input)).await?).await?;
        if !is_probe && has <= from {
            sleep(EMPTY).await;
        }
        Ok(has)
    }

    async fn read(&self, call: CallId, seen: u64) -> Result<Piece> {
        let body = body_of(self.call(&ProgramCall::Read { call, seen }, None).await?, wire::MAX_BODY).await?;
        let piece = piece(body).ok_or_else(|| Error::Damaged("a sandbox gave no packed piece".into()))?;
        if piece.output.is_empty() && piece.errors.is_empty() && !piece.is_over {
            sleep(EMPTY).await;
        }
        Ok(piece)
    }

    async fn end(&self, call: CallId) -> Result<()> {
        self.call(&ProgramCall::End(call), None).await.map(drop)
    }
}

fn piece(body: Bytes) -> Option<Piece> {
    let mut parts = wire::unpacked(body)?.into_iter();
    let PieceHead { number, is_over } = serde_json::from_slice(&parts.next()?).ok()?;
    Some(Piece { number, output: parts.next()?, errors: parts.next()?, is_over })
}
