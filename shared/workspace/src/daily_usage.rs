//! The work of models for a workspace outside of turns: vectors of passages and queries, descriptions of documents. One item per day, purpose and model adds it
//! up. It is noted after the model answered: a crash in between loses the note of that one request.

use crate::{Result, Workspace, error};
use domain::Usage;
use ports::{Expect, Query, Write};
use serde::{Deserialize, Serialize};

/// How often a note that lost a race is written again.
const ATTEMPTS: usize = 8;

/// The work that a model did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Vectors for searches by meaning.
    Embedding,
    /// Descriptions of pictures, sound and film.
    Description,
}

/// The usage of one day, purpose and model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DailyUsage {
    /// The day, in UTC, such as `2026-11-30`.
    pub day: String,
    /// The work.
    pub purpose: Purpose,
    /// The model.
    pub model: String,
    /// Requests to it.
    pub calls: u64,
    /// Their tokens and costs.
    pub usage: Usage,
}

impl Workspace {
    /// Notes the usage of one request to a model.
    ///
    /// # Errors
    /// `CONFLICT` when others were faster again and again; else those of [`Workspace`].
    pub async fn spend(&self, purpose: Purpose, model: &str, usage: Usage) -> Result<()> {
        let day = self.0.clock.now().to_string().get(..10).unwrap_or_default().to_owned();
        let key = self.0.keys.spent(&day, &error::json(&purpose)?, model);
        for _ in 0..ATTEMPTS {
            let found = self.0.table.get(&key).await.map_err(error::port)?;
            let (mut spent, expect) = match &found {
                Some(item) => (error::parse::<DailyUsage>(&item.body)?, Expect::Rev(item.rev)),
                None => {
                    let (day, model, usage) = (day.clone(), model.to_owned(), Usage::default());
                    (DailyUsage { day, purpose, model, calls: 0, usage }, Expect::Absent)
                }
            };
            spent.calls += 1;
            spent.usage += usage;
            match self.0.table.commit(vec![Write::put(key.clone(), error::json(&spent)?, expect)]).await {
                Ok(()) => return Ok(()),
                Err(ports::Error::Conflict { .. }) => {}
                Err(error) => return Err(error::port(error)),
            }
        }
        Err(error::busy())
    }

    /// The same; a note that fails is in the log, and keeps nobody from working.
    pub async fn note_spent(&self, purpose: Purpose, model: &str, usage: Usage) {
        if let Err(error) = self.spend(purpose, model, usage).await {
            tracing::warn!(workspace = %self.0.id, model, %error, "the usage of a model was not noted");
        }
    }

    /// The usage of these days, the first and the last one included, in the order of days.
    ///
    /// # Errors
    /// Those of [`Workspace`].
    pub async fn spent(&self, from: &str, to: &str) -> Result<Vec<DailyUsage>> {
        // The key of a day goes on behind it.
        let (from, to) = (Some(from.to_owned()), Some(format!("{to}~")));
        let range = Query { from, to, ..Query::all(self.0.keys.all_spent(), 500) };
        let items = self.0.table.all(range).await.map_err(error::port)?;
        Ok(ports::readable::<DailyUsage>(&items).map(|(_, used)| used).collect())
    }
}
