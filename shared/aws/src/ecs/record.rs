//! The table's record of a workspace's sandbox: one item per workspace. The winner of its conditional write decides the next step.

use domain::{Sha256, Timestamp, WorkspaceId};
use ports::{Error, Expect, Item, Key, Result, SandboxState, Secret, Write};
use serde::{Deserialize, Serialize, Serializer};
use std::time::Duration;

/// The partition of all of them.
pub(super) const PARTITION: &str = "sandboxes";
/// For how long the table remembers why one failed or ended.
const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);

/// A sandbox, from the request for it until its end is forgotten.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Names this sandbox among all that the workspace has ever had. It is the token by which ECS knows that it was asked before, and part
    /// of the `startedBy` of its task.
    pub attempt: String,
    /// The token of its callers. The task itself only knows its digest.
    #[serde(serialize_with = "exposed")]
    pub token: Secret,
    /// When it was asked for.
    pub asked_at: Timestamp,
    /// The start of its phase.
    pub since: Timestamp,
    /// How far it has come.
    #[serde(flatten)]
    pub phase: Phase,
}

/// How far a sandbox has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub(super) enum Phase {
    /// ECS was asked, or is about to be; whether it has a task is not known.
    Asked {
        /// Why it was not known the last time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trouble: Option<String>,
    },
    /// ECS has a task, which did not answer yet.
    Started {
        /// Its ARN.
        task: String,
    },
    /// It answered.
    Ready {
        /// Its ARN.
        task: String,
        /// Its address, such as `http://10.80.12.7:8080`.
        url: String,
        /// The time from which on it runs and does not answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        silent_since: Option<Timestamp>,
    },
    /// It could not be had.
    Failed {
        /// The reason, for people.
        reason: String,
    },
    /// It was ready, and is no more.
    Ended {
        /// The reason, for people.
        reason: String,
    },
}

impl Record {
    /// One that is about to be asked for.
    pub fn new(attempt: String, token: Secret, now: Timestamp) -> Self {
        Self { attempt, token, asked_at: now, since: now, phase: Phase::Asked { trouble: None } }
    }

    /// The `startedBy` of a task: by this the sweep knows the workspace and the attempt.
    pub fn started_by(workspace: WorkspaceId, attempt: &str) -> String {
        format!("{workspace}/{attempt}")
    }

    /// The digest that the task compares a caller's token with.
    pub fn token_sha256(&self) -> Sha256 {
        Sha256::of(self.token.expose().as_bytes())
    }

    /// The ARN of the task that there should be.
    pub fn task(&self) -> Option<&str> {
        match &self.phase {
            Phase::Started { task } | Phase::Ready { task, .. } => Some(task),
            Phase::Asked { .. } | Phase::Failed { .. } | Phase::Ended { .. } => None,
        }
    }

    /// Whether a task of this attempt has a right to be there.
    pub fn is_wanted(&self) -> bool {
        !matches!(self.phase, Phase::Failed { .. } | Phase::Ended { .. })
    }

    /// The state that people see, and the reason, as far as the table knows.
    pub fn state(&self) -> (SandboxState, Option<&str>) {
        match &self.phase {
            Phase::Asked { trouble } => (SandboxState::Starting, trouble.as_deref()),
            Phase::Started { .. } => (SandboxState::Starting, None),
            Phase::Ready { .. } => (SandboxState::Ready, None),
            Phase::Failed { reason } => (SandboxState::Failed, Some(reason)),
            Phase::Ended { reason } => (SandboxState::Cold, Some(reason)),
        }
    }

    /// The same in another phase, from `now` on.
    pub fn entering(&self, phase: Phase, now: Timestamp) -> Self {
        Self { phase, since: now, ..self.clone() }
    }

    pub fn key(workspace: WorkspaceId) -> Key {
        Key::new(PARTITION, workspace.to_string())
    }

    /// As a write.
    ///
    /// # Errors
    /// `Invalid` when JSON cannot hold it.
    pub fn put(&self, workspace: WorkspaceId, expect: Expect) -> Result<Write> {
        let body = serde_json::to_string(self).map_err(|error| Error::Invalid(error.to_string()))?;
        let write = Write::put(Self::key(workspace), body, expect);
        Ok(if self.is_wanted() { write } else { write.expiring(self.since + REMEMBERED) })
    }
}

/// A record as it is in the table.
#[derive(Clone, Debug)]
pub(super) struct KeptRecord {
    pub workspace: WorkspaceId,
    pub rev: u64,
    pub record: Record,
}

impl KeptRecord {
    /// The record in an item of the table.
    ///
    /// # Errors
    /// `Damaged` when the key is no workspace or the body no record. The error does not quote the body, which has the token.
    pub fn read(item: &Item) -> Result<Self> {
        // Not its text: the token may be in it.
        let damaged = || Error::Damaged(format!("the item of the sandbox {} cannot be read", item.key.sk));
        let workspace = item.key.sk.parse().map_err(|_| damaged())?;
        let record = serde_json::from_str(&item.body).map_err(|_| damaged())?;
        Ok(Self { workspace, rev: item.rev, record })
    }
}

fn exposed<S: Serializer>(token: &Secret, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(token.expose())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
    const ID: &str = "019bf537-f228-7cd3-aa1c-3da8af302e12";

    /// Items of older workers stay readable: these texts never change.
    #[test]
    fn records_are_read_as_they_were_written() {
        let (task, url) = ("arn:task/1".to_owned(), "http://10.0.0.1:8080".to_owned());
        for (phase, text) in [
            (Phase::Asked { trouble: None }, r#""phase":"asked"}"#),
            (Phase::Asked { trouble: Some("slow".into()) }, r#""phase":"asked","trouble":"slow"}"#),
            (Phase::Started { task: task.clone() }, r#""phase":"started","task":"arn:task/1"}"#),
            (
                Phase::Ready { task, url, silent_since: Some(NOW) },
                r#""phase":"ready","task":"arn:task/1","url":"http://10.0.0.1:8080","silent_since":"2027-01-15T08:00:00.000Z"}"#,
            ),
            (Phase::Failed { reason: "no".into() }, r#""phase":"failed","reason":"no"}"#),
            (Phase::Ended { reason: "idle".into() }, r#""phase":"ended","reason":"idle"}"#),
        ] {
            let head = r#"{"attempt":"a","token":"t0k3n","asked_at":"2027-01-15T08:00:00.000Z","since":"2027-01-15T08:00:00.000Z","#;
            let record = Record::new("a".into(), Secret::new("t0k3n"), NOW).entering(phase, NOW);
            let text = format!("{head}{text}");
            assert_eq!(serde_json::to_string(&record).unwrap(), text);
            assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
            assert!(!format!("{record:?}").contains("t0k3n"));
        }
    }

    #[test]
    fn ended_records_are_forgotten_and_unreadable_ones_are_not_shown() {
        let workspace: WorkspaceId = ID.parse().unwrap();
        let record = Record::new("a".into(), Secret::new("t0k3n"), NOW);
        let expires = |record: &Record| match record.put(workspace, Expect::Absent).unwrap() {
            Write::Put { expires_at, .. } => expires_at,
            _ => unreachable!("it puts"),
        };
        assert_eq!(expires(&record), None);
        assert_eq!(expires(&record.entering(Phase::Failed { reason: "no".into() }, NOW)), Some(NOW + REMEMBERED));
        let body = r#"{"token":"t0k3n"}"#.to_owned();
        let item = Item { key: Record::key(workspace), rev: 1, body, index: None, expires_at: None };
        assert!(!KeptRecord::read(&item).unwrap_err().to_string().contains("t0k3n"));
    }
}
