//! The questions and requests for permission that messages of other agents answered. A message that comes again, since its answer was lost, is no answer to
//! another question that is open by then.

use crate::{converse::Speaker, error::ApiError};
use domain::{ChatId, Error, Sha256};
use ports::{Expect, Key, Table, Write};
use serde_json::Value;
use std::time::Duration;
use uuid::Uuid;

/// How long a message is known.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// The question or request for permission that a message of this id answers: the one that it answered before, else the one that is `open`, which is noted.
pub(super) async fn by(
    speaker: &Speaker<'_>,
    chat: ChatId,
    (message, content): (&str, &Value),
    open: Option<Uuid>,
) -> Result<Option<Uuid>, Error> {
    let base = &speaker.context.base;
    // Ids are the client's own: another person may have the same one, and simple clients give it to several messages. One that comes again says the same.
    let id = Sha256::of(format!("{}/{message}/{content}", speaker.by.user()).as_bytes());
    let key = Key::new(format!("{}/a2a-answers", speaker.workspace), format!("{chat}/{id}"));
    let before = noted(&*base.table, &key).await?;
    let (None, Some(asked)) = (before, open) else { return Ok(before) };
    let note = Write::put(key.clone(), Value::from(asked.to_string()).to_string(), Expect::Absent)
        .expiring(base.clock.now() + KEPT);
    match base.table.commit(vec![note]).await {
        Ok(()) => Ok(open),
        // The same message at the same time.
        Err(ports::Error::Conflict { .. }) => Ok(noted(&*base.table, &key).await?.or(open)),
        Err(error) => Err(ApiError::from(error).error),
    }
}

async fn noted(table: &dyn Table, key: &Key) -> Result<Option<Uuid>, Error> {
    let item = table.get(key).await.map_err(|error| ApiError::from(error).error)?;
    Ok(item.and_then(|item| serde_json::from_str(&item.body).ok()))
}
