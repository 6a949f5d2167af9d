//! API keys: for programs that work for a person. `bsk_<id>_<secret>`; the prefix lets scanners find keys that were committed by mistake.
//!
//! The table has a digest of the secret and never the secret. It is 256 random bits, so that a plain SHA-256 cannot be searched, and
//! checking one costs next to nothing. A key is looked up at each use: a revoked key is void at once.

use crate::{
    caller::{Caller, CredentialKind, Scopes},
    error::{Result, damaged, json, known, port, unauthorized},
    permission::Action,
    random::{equal_in_constant_time, fresh_secret},
};
use domain::{Error, Sha256, Timestamp, UserId, WorkspaceId};
use ports::{Clock, Expect, Item, Key, Query, Table, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use uuid::Uuid;

const PREFIX: &str = "bsk_";
/// The longest name of a key, in characters.
const MAX_NAME: usize = 100;
/// The most workspaces that a key is for, when not for all.
const MAX_WORKSPACES: usize = 100;
/// How often a change is tried again when somebody else was faster.
const ATTEMPTS: usize = 8;
/// How long a key that is void is kept, so that its person sees when it was revoked or expired.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// A key as people see it: everything but the secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApiKey {
    /// Its id, the first part of its text.
    pub key_id: Uuid,
    /// The user it works for.
    pub user_id: UserId,
    /// Its purpose, in its maker's words.
    pub name: String,
    /// Its scopes; they allow nothing that the user may not do.
    pub scopes: Scopes,
    /// The workspaces that it is for; all of that person's when none are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspaces: Option<BTreeSet<WorkspaceId>>,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it is void; never when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

impl ApiKey {
    fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|at| now < at)
    }
}

/// A page of keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ApiKeyPage {
    /// The keys, oldest first.
    pub keys: Vec<ApiKey>,
    /// The cursor of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A key to make.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// Its purpose: 1 to 100 characters.
    pub name: String,
    /// Its scopes; at least one.
    pub scopes: Scopes,
    /// The workspaces that it is for; all when none.
    pub workspaces: Option<BTreeSet<WorkspaceId>>,
    /// From when on it is void.
    pub expires_at: Option<Timestamp>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Record {
    #[serde(flatten)]
    pub key: ApiKey,
    pub secret_sha256: Sha256,
    /// Fields of a newer version, such as restrictions: a key that has one is refused, because it may forbid the use.
    #[serde(flatten)]
    pub newer: Map<String, Value>,
}

/// The keys of everybody.
///
/// # Errors
/// Every operation can fail with `UPSTREAM_UNAVAILABLE` when the table does not answer, `STORAGE_FULL` when it has no room, and `INTERNAL`
/// for a key whose record is damaged or of a newer version.
#[derive(Clone)]
pub struct ApiKeys {
    table: Arc<dyn Table>,
    clock: Arc<dyn Clock>,
}

impl ApiKeys {
    /// Kept in this table.
    pub fn new(table: Arc<dyn Table>, clock: Arc<dyn Clock>) -> Self {
        Self { table, clock }
    }

    /// Whether a credential looks like a key, so that it is judged as one.
    pub fn looks_like_one(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// Makes a key. Its text is returned this once and can never be had again.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, with the field, for a name, scopes, workspaces or an end outside of the bounds of [`NewKey`]; else those of
    /// [`ApiKeys`].
    pub async fn create(&self, user: UserId, new: NewKey) -> Result<(ApiKey, String)> {
        let stamp = self.clock.stamp();
        let name = domain::checked_name("name", &new.name, MAX_NAME)?;
        if new.scopes.is_empty() {
            let all = Action::ALL.map(|action| action.to_string()).join(", ");
            return Err(
                Error::invalid("scopes", "a key without scopes is good for nothing").hint(format!("some of {all}"))
            );
        }
        if new.workspaces.as_ref().is_some_and(|listed| !(1..=MAX_WORKSPACES).contains(&listed.len())) {
            return Err(Error::invalid(
                "workspaces",
                format!("a key is for 1 to {MAX_WORKSPACES} workspaces, or for all"),
            )
            .hint("leave the list out to mean all"));
        }
        if new.expires_at.is_some_and(|at| at <= stamp.at) {
            return Err(Error::invalid("expires_at", "this moment has passed")
                .hint("give a later one, or leave it out for a key without an end"));
        }
        let key = ApiKey {
            key_id: stamp.id,
            user_id: user,
            name,
            scopes: new.scopes,
            workspaces: new.workspaces,
            created_at: stamp.at,
            expires_at: new.expires_at,
            revoked_at: None,
        };
        let secret = fresh_secret();
        let record = Record { key: key.clone(), secret_sha256: Sha256::of(secret.as_bytes()), newer: Map::new() };
        self.table.commit(vec![put(&record, Expect::Absent)?]).await.map_err(port)?;
        Ok((key, format!("{PREFIX}{}_{secret}", stamp.id.simple())))
    }

    /// The caller of this key.
    ///
    /// # Errors
    /// `UNAUTHORIZED`, in the same words, for one that never existed, has another secret, was revoked, or has expired; else those of
    /// [`ApiKeys`].
    pub async fn verify(&self, text: &str) -> Result<Caller> {
        let refusal =
            || unauthorized("the API key is not valid", "it may have been revoked or have expired: make a new one");
        let parts = text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_'));
        let (id, secret) = parts.ok_or_else(refusal)?;
        let id = Uuid::try_parse(id).map_err(|_| refusal())?;
        let (record, _) = self.read(id).await?.ok_or_else(refusal)?;
        let given = Sha256::of(secret.as_bytes());
        let key = record.key;
        let good = equal_in_constant_time(given.to_string().as_bytes(), record.secret_sha256.to_string().as_bytes())
            && key.is_valid(self.clock.now());
        if !good {
            return Err(refusal());
        }
        let means = CredentialKind::Key(key.key_id);
        Ok(Caller { user: key.user_id, subject: None, means, scopes: key.scopes, workspaces: key.workspaces })
    }

    /// Whether a key is there that was not revoked and has not expired.
    ///
    /// # Errors
    /// Those of [`ApiKeys`].
    pub async fn is_valid(&self, id: Uuid) -> Result<bool> {
        Ok(self.read(id).await?.is_some_and(|(record, _)| record.key.is_valid(self.clock.now())))
    }

    /// The keys of a person, the revoked and expired ones too, for 30 days; `limit` is cut to 1 to 200. One that was made just now may not
    /// be listed yet.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cursor of another list; else those of [`ApiKeys`].
    pub async fn list(&self, user: UserId, limit: usize, cursor: Option<String>) -> Result<ApiKeyPage> {
        let query = Query::all(index(user), limit.clamp(1, 200)).after(cursor);
        let page = self.table.query_index(&query).await.map_err(ports::validate::of_page(&query, port))?;
        let keys = page.items.iter().map(|item| Ok(record(item)?.key)).collect::<Result<_>>()?;
        Ok(ApiKeyPage { keys, next_cursor: page.next })
    }

    /// Takes a key of this person back, for good; again is harmless.
    ///
    /// # Errors
    /// `NOT_FOUND` for one that does not exist, has been void for 30 days, or is somebody else's; `CONFLICT` when others changed it at each of eight attempts; else
    /// those of [`ApiKeys`].
    pub async fn revoke(&self, user: UserId, id: Uuid) -> Result<ApiKey> {
        for _ in 0..ATTEMPTS {
            let found = self.read(id).await?.filter(|(record, _)| record.key.user_id == user);
            let (mut record, rev) = found.ok_or_else(|| Error::not_found("API key", id))?;
            if record.key.revoked_at.is_some() {
                return Ok(record.key);
            }
            record.key.revoked_at = Some(self.clock.now());
            match self.table.commit(vec![put(&record, Expect::Rev(rev))?]).await {
                Ok(()) => return Ok(record.key),
                Err(ports::Error::Conflict { .. }) => {}
                Err(error) => return Err(port(error)),
            }
        }
        Err(Error::new(domain::Code::Conflict, "the key is being changed").hint("try again"))
    }

    async fn read(&self, id: Uuid) -> Result<Option<(Record, u64)>> {
        let item = self.table.get(&place(id)).await.map_err(port)?;
        item.map(|item| Ok((record(&item)?, item.rev))).transpose()
    }
}

fn place(id: Uuid) -> Key {
    Key::new(format!("key/{id}"), "key")
}

fn index(user: UserId) -> String {
    format!("keys/{user}")
}

fn put(record: &Record, expect: Expect) -> Result<Write> {
    let ApiKey { key_id, user_id, expires_at, revoked_at, .. } = &record.key;
    let under = Key::new(index(*user_id), key_id.to_string());
    let write = Write::put(place(*key_id), json(record)?, expect).indexed(under);
    let void_from = revoked_at.iter().chain(expires_at).min();
    Ok(match void_from {
        Some(void_from) => write.expiring(*void_from + KEPT),
        None => write,
    })
}

fn record(item: &Item) -> Result<Record> {
    let record: Record = serde_json::from_str(&item.body).map_err(damaged)?;
    known(&record.newer)?;
    Ok(record)
}
