//! The queue's messages in SQLite: one row per message, in the order of sending, until it is settled.
//!
//! The ids of sent messages are rows of a table of their own, until they may be sent again: they make a repeated send harmless, also after a
//! restart. They lie in the order of time, in steps of [`REMEMBERED`], so the oldest ones are removed as whole pages. So are settled
//! messages: those that were sent together mostly end together, and SQLite writes no page that becomes free. Within a step ids come before
//! groups: most ids begin with the time, so those of many groups that are sent at one time share a page. A message of a commit that makes an
//! item has no such row, because the item keeps this commit from taking effect twice.

use crate::{attempts::DeliveryCount, readers::is_damage};
use domain::Timestamp;
use ports::{DeadLetter, QueueMessage};
use rusqlite::{Connection, OptionalExtension, params};

/// How long the same id has no effect, in milliseconds. It is the length of a period, too, also in the files that there are.
const REMEMBERED: i64 = 5 * 60 * 1000;
/// The longest body that is kept in memory until its first delivery, in bytes: commands of people and reports of actors are shorter.
const KEPT_BODY: usize = 8 * 1024;
/// How many ids one commit forgets.
const SWEPT_AT_ONCE: i64 = 64;

/// The schema of version 2, which a new file takes, too; [`IDS_APART`] and [`IDS_BEFORE_GROUPS`] change it. `state`: 0 waits, 2 is put aside.
pub(crate) const SCHEMA: &str = "
    CREATE TABLE messages (
        seq INTEGER PRIMARY KEY, state INTEGER NOT NULL, attempts INTEGER NOT NULL, sent_at INTEGER NOT NULL,
        priority INTEGER NOT NULL, deliver_at INTEGER, dead_at INTEGER, grp TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL
    );
    CREATE INDEX messages_by_id ON messages (grp, id);
    CREATE INDEX messages_settled ON messages (sent_at) WHERE state = 1;
    CREATE INDEX messages_dead ON messages (dead_at, seq) WHERE state = 2;";

/// Ids of sent messages have a table of their own, and a settled message has no row: neither its end nor that of its id writes its row again.
pub(crate) const IDS_APART: &str = "
    CREATE TABLE sent (
        period INTEGER NOT NULL, grp TEXT NOT NULL, id TEXT NOT NULL, sent_at INTEGER NOT NULL, PRIMARY KEY (period, grp, id)
    ) WITHOUT ROWID;
    INSERT OR REPLACE INTO sent SELECT sent_at / 300000, grp, id, sent_at FROM messages;
    DROP INDEX messages_by_id;
    DROP INDEX messages_settled;
    DELETE FROM messages WHERE state = 1;
    CREATE INDEX messages_dead_of_group ON messages (grp) WHERE state = 2;";

/// Ids that are sent at one time lie together, whatever their groups.
pub(crate) const IDS_BEFORE_GROUPS: &str = "
    CREATE TABLE sent_ids (
        period INTEGER NOT NULL, id TEXT NOT NULL, grp TEXT NOT NULL, sent_at INTEGER NOT NULL, PRIMARY KEY (period, id, grp)
    ) WITHOUT ROWID;
    INSERT INTO sent_ids SELECT period, id, grp, sent_at FROM sent;
    DROP TABLE sent;";

/// The id and the body of a message, as its row has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MessageContent {
    pub id: String,
    pub body: String,
}

impl MessageContent {
    /// Its bytes.
    pub fn bytes(&self) -> usize {
        self.id.len() + self.body.len()
    }
}

/// A message that is now in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub seq: i64,
    pub group: String,
    pub deliver_at: Option<Timestamp>,
    pub priority: i8,
    pub attempts: u32,
    /// For a short message that was just sent and is due: its first delivery reads no row.
    pub content: Option<MessageContent>,
}

/// A change that no caller waits for. It is written with a later commit; the newest one of a message wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeferredWrite {
    /// It was delivered so many times.
    Attempts(u32),
    /// It was settled.
    Settled,
    /// It was put aside.
    Dead { attempts: u32, at: Timestamp },
}

/// Stores `messages` and returns the new ones. One `with_new_item` is new; any other is new if its id is not remembered.
pub(crate) fn send(
    connection: &Connection,
    messages: &[QueueMessage],
    with_new_item: bool,
    next_seq: &mut i64,
    now: Timestamp,
) -> rusqlite::Result<Vec<Arrival>> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO messages (seq, state, attempts, sent_at, priority, deliver_at, grp, id, body)
         VALUES (?1, 0, 0, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let mut arrivals = Vec::with_capacity(messages.len());
    for QueueMessage { group, id, body, deliver_at, priority } in messages {
        if !with_new_item && !remember(connection, group, id, now)? {
            continue;
        }
        let seq = *next_seq;
        *next_seq += 1;
        let date = deliver_at.map(Timestamp::as_millis);
        insert.execute(params![seq, now.as_millis(), priority, date, group, id, body])?;
        let is_due = deliver_at.is_none_or(|at| at <= now);
        let content =
            (is_due && body.len() <= KEPT_BODY).then(|| MessageContent { id: id.clone(), body: body.clone() });
        let (group, deliver_at, priority) = (group.clone(), *deliver_at, *priority);
        arrivals.push(Arrival { seq, group, deliver_at, priority, attempts: 0, content });
    }
    Ok(arrivals)
}

/// Remembers the id of a message to `group`; false when it is remembered already.
fn remember(connection: &Connection, group: &str, id: &str, now: Timestamp) -> rusqlite::Result<bool> {
    // Also the period to come: the clock may have gone back.
    let mut known = connection.prepare_cached(
        "SELECT 1 FROM sent_ids WHERE period IN (?1 - 1, ?1, ?1 + 1) AND id = ?2 AND grp = ?3 AND sent_at > ?4",
    )?;
    if known.exists(params![period(now), id, group, forgotten(now)])? {
        return Ok(false);
    }
    connection
        .prepare_cached("INSERT OR REPLACE INTO sent_ids (period, id, grp, sent_at) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![period(now), id, group, now.as_millis()])?;
    Ok(true)
}

/// Makes one lazy change.
pub(crate) fn apply(connection: &Connection, seq: i64, change: DeferredWrite) -> rusqlite::Result<()> {
    match change {
        DeferredWrite::Attempts(attempts) => connection
            .prepare_cached("UPDATE messages SET attempts = ?2 WHERE seq = ?1")?
            .execute(params![seq, attempts])?,
        DeferredWrite::Settled => {
            connection.prepare_cached("DELETE FROM messages WHERE seq = ?1")?.execute(params![seq])?
        }
        DeferredWrite::Dead { attempts, at } => connection
            .prepare_cached("UPDATE messages SET state = 2, attempts = ?2, dead_at = ?3 WHERE seq = ?1")?
            .execute(params![seq, attempts, at.as_millis()])?,
    };
    Ok(())
}

/// Raises the attempts of messages that wait to these numbers. A message whose row cannot be read keeps its number.
pub(crate) fn raise(connection: &Connection, counted: &[DeliveryCount]) -> rusqlite::Result<()> {
    let transaction = connection.unchecked_transaction()?;
    for (seq, attempts) in counted {
        let raised = transaction
            .prepare_cached("UPDATE messages SET attempts = ?2 WHERE seq = ?1 AND state = 0 AND attempts < ?2")?
            .execute(params![seq, attempts]);
        match raised {
            Err(error) if is_damage(&error) => {
                tracing::error!(seq, error = %ports::with_causes(&error), "the attempts of a message are not counted");
            }
            raised => _ = raised?,
        }
    }
    transaction.commit()
}

/// Puts the dead letters of `group` behind all sent messages, in their order.
pub(crate) fn redrive(connection: &Connection, group: &str, next_seq: &mut i64) -> rusqlite::Result<Vec<Arrival>> {
    let mut dead = connection.prepare_cached(
        "SELECT seq, deliver_at, priority FROM messages WHERE grp = ?1 AND state = 2 ORDER BY dead_at, seq",
    )?;
    let found = dead
        .query_map(params![group], |row| Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<Vec<(i64, Option<i64>, i8)>>>()?;
    let mut revive = connection
        .prepare_cached("UPDATE messages SET seq = ?2, state = 0, attempts = 0, dead_at = NULL WHERE seq = ?1")?;
    let mut arrivals = Vec::with_capacity(found.len());
    for (old, deliver_at, priority) in found {
        let seq = *next_seq;
        *next_seq += 1;
        revive.execute(params![old, seq])?;
        let deliver_at = deliver_at.map(Timestamp::from_millis);
        arrivals.push(Arrival { seq, group: group.to_owned(), deliver_at, priority, attempts: 0, content: None });
    }
    Ok(arrivals)
}

/// Removes some ids that may be sent again; returns how many, and whether there may be more.
pub(crate) fn sweep(connection: &Connection, now: Timestamp) -> rusqlite::Result<(usize, bool)> {
    let mut sweep = connection.prepare_cached(
        "DELETE FROM sent_ids WHERE (period, id, grp) IN
         (SELECT period, id, grp FROM sent_ids WHERE period < ?1 ORDER BY period, id, grp LIMIT ?2)",
    )?;
    // All ids of the period before may be known still.
    let swept = sweep.execute(params![period(now) - 1, SWEPT_AT_ONCE])?;
    Ok((swept, swept as i64 == SWEPT_AT_ONCE))
}

/// The messages that waited when the file was closed, in order, and the highest number. One that was sent before the clock was set back waits for as long as
/// it was sent to wait, from `now` on.
pub(crate) fn load(connection: &Connection, now: Timestamp) -> rusqlite::Result<(Vec<Arrival>, i64)> {
    let mut waiting = connection.prepare(
        "SELECT seq, grp, deliver_at, attempts, priority, sent_at FROM messages WHERE state = 0 ORDER BY seq",
    )?;
    let arrivals = waiting.query_map([], |row| {
        let sent_at = Timestamp::from_millis(row.get(5)?);
        let due = |at: Timestamp| if sent_at > now { now + at.since(sent_at) } else { at };
        Ok(Arrival {
            seq: row.get(0)?,
            group: row.get(1)?,
            deliver_at: row.get::<_, Option<i64>>(2)?.map(Timestamp::from_millis).map(due),
            attempts: row.get(3)?,
            priority: row.get(4)?,
            content: None,
        })
    })?;
    let arrivals = arrivals.collect::<rusqlite::Result<_>>()?;
    let last: Option<i64> = connection.query_row("SELECT max(seq) FROM messages", [], |row| row.get(0))?;
    Ok((arrivals, last.unwrap_or(0)))
}

/// The content of a message that waits.
pub(crate) fn read(connection: &Connection, seq: i64) -> rusqlite::Result<Option<MessageContent>> {
    let mut read = connection.prepare_cached("SELECT id, body FROM messages WHERE seq = ?1")?;
    read.query_row(params![seq], |row| Ok(MessageContent { id: row.get(0)?, body: row.get(1)? })).optional()
}

/// The dead letters, oldest first.
pub(crate) fn dead(connection: &Connection, limit: usize) -> rusqlite::Result<Vec<DeadLetter>> {
    let mut dead = connection.prepare_cached(
        "SELECT grp, id, body, deliver_at, attempts, dead_at, priority FROM messages WHERE state = 2
         ORDER BY dead_at, seq LIMIT ?1",
    )?;
    let letters = dead.query_map(params![i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
        let message = QueueMessage {
            group: row.get(0)?,
            id: row.get(1)?,
            body: row.get(2)?,
            deliver_at: row.get::<_, Option<i64>>(3)?.map(Timestamp::from_millis),
            priority: row.get(6)?,
        };
        Ok(DeadLetter { message, attempts: row.get(4)?, at: Timestamp::from_millis(row.get(5)?) })
    })?;
    letters.collect()
}

/// How many messages are put aside.
pub(crate) fn count_dead(connection: &Connection) -> rusqlite::Result<u64> {
    let count: i64 =
        connection.prepare_cached("SELECT count(*) FROM messages WHERE state = 2")?.query_row([], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

/// Ids that were sent then or before may be sent again.
fn forgotten(now: Timestamp) -> i64 {
    now.as_millis().saturating_sub(REMEMBERED)
}

/// The period of an id that is sent now.
fn period(now: Timestamp) -> i64 {
    now.as_millis() / REMEMBERED
}
