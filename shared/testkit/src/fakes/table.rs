//! A table in memory.

use super::{FakeQueue, Fate, Faults};
use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use ports::{Clock, Error, Expect, IndexQuery, Item, Key, Page, Query, QueueMessage, Result, Table, Write, validate};
use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::Arc,
};

const WHAT: &str = "the fake table";
const PAGE_BYTES: usize = 1024 * 1024;

/// A table in memory. Its index may lag, its pages may be short, its calls may fail before or after taking effect; its
/// conflicts are always real, because a conflict promises that an expectation did not hold.
pub struct FakeTable {
    clock: Arc<dyn Clock>,
    fate: Fate,
    /// The queue of the same store.
    queue: Option<Arc<FakeQueue>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    items: BTreeMap<Key, Item>,
    /// By index key, then by key; as of some commit in the past.
    index: BTreeMap<(Key, Key), Item>,
    /// Changes that the index has not seen: removals and additions in order.
    unseen: VecDeque<Change>,
    commits: u64,
}

enum Change {
    Remove((Key, Key)),
    Add((Key, Key), Item),
}

impl FakeTable {
    /// An empty table.
    pub fn new(clock: Arc<dyn Clock>, seed: u64, faults: Faults) -> Self {
        Self { clock, fate: Fate::new(seed, faults), queue: None, state: Mutex::default() }
    }

    /// The same in one store with this queue, as on a hub: a commit sends the messages that it causes. Without it, a commit and what it sends
    /// are two calls, as on AWS.
    #[must_use]
    pub fn sending_to(self, queue: Arc<FakeQueue>) -> Self {
        Self { queue: Some(queue), ..self }
    }

    /// Every item that has not expired, in order.
    pub fn items(&self) -> Vec<Item> {
        let now = self.clock.now();
        self.lock().items.values().filter(|item| item.expires_at.is_none_or(|at| at > now)).cloned().collect()
    }

    /// The items of one partition that have not expired, in order.
    pub fn partition(&self, pk: &str) -> Vec<Item> {
        self.partition_from(&Key::new(pk, ""))
    }

    /// Those of them from this key on.
    pub fn partition_from(&self, first: &Key) -> Vec<Item> {
        let now = self.clock.now();
        let state = self.lock();
        let from = state.items.range(first.clone()..).map(|(_, item)| item);
        let inside = from.take_while(|item| item.key.pk == first.pk);
        inside.filter(|item| item.expires_at.is_none_or(|at| at > now)).cloned().collect()
    }

    /// Damages an item: it has this body from now on, also in the index.
    pub fn damage(&self, key: &Key, body: impl Into<String>) {
        let mut state = self.lock();
        let Some(item) = state.items.get_mut(key) else { return };
        item.body = body.into();
        let damaged = item.clone();
        if let Some(index) = damaged.index.clone() {
            state.unseen.push_back(Change::Add((index, key.clone()), damaged));
        }
    }

    /// How many commits took effect.
    pub fn commits(&self) -> u64 {
        self.lock().commits
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn is_alive(&self, item: &Item) -> bool {
        item.expires_at.is_none_or(|at| at > self.clock.now())
    }

    /// One page of `found`, which is in ascending order.
    fn page<'a>(
        &self,
        query: &Query,
        found: impl DoubleEndedIterator<Item = &'a Item>,
        place: impl Fn(&Item) -> Vec<String>,
    ) -> Result<Page> {
        let after = read_cursor(query)?;
        let limit = match self.fate.chance(|faults| faults.short_pages) {
            true => 1 + self.fate.draw(|random| random.below(query.limit.min(1000) as u64)) as usize,
            false => query.limit,
        };
        let found: Box<dyn Iterator<Item = &Item>> =
            if query.descending { Box::new(found.rev()) } else { Box::new(found) };
        let is_beyond = |item: &Item| match &after {
            None => true,
            Some(after) if query.descending => place(item) < *after,
            Some(after) => place(item) > *after,
        };
        let (mut page, mut bytes) = (Page::default(), 0);
        for item in found.filter(|item| self.is_alive(item) && is_beyond(item)) {
            bytes += item.body.len() + item.key.pk.len() + item.key.sk.len();
            if page.items.len() == limit || (bytes > PAGE_BYTES && !page.items.is_empty()) {
                page.next = page.items.last().map(|last| write_cursor(query, &place(last)));
                break;
            }
            page.items.push(item.clone());
        }
        Ok(page)
    }
}

#[async_trait]
impl Table for FakeTable {
    fn sends(&self) -> bool {
        self.queue.is_some()
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        self.fate.before(WHAT).await?;
        let found = self.lock().items.get(key).filter(|item| self.is_alive(item)).cloned();
        self.fate.after(WHAT, found).await
    }

    async fn query(&self, query: &Query) -> Result<Page> {
        validate::query(query)?;
        self.fate.before(WHAT).await?;
        let page = {
            let state = self.lock();
            let from = Key { pk: query.pk.clone(), sk: query.from.clone().unwrap_or_default() };
            let partition = state.items.range(from..).map(|(_, item)| item);
            let inside = |item: &&Item| item.key.pk == query.pk && query.to.as_ref().is_none_or(|to| item.key.sk < *to);
            let found: Vec<&Item> = partition.take_while(inside).collect();
            self.page(query, found.into_iter(), |item| vec![item.key.sk.clone()])?
        };
        self.fate.after(WHAT, page).await
    }

    async fn query_index(&self, query: &IndexQuery) -> Result<Page> {
        validate::query(query)?;
        self.fate.before(WHAT).await?;
        let page = {
            let mut state = self.lock();
            let lagging = match self.fate.chance(|faults| faults.index_lag) {
                true => self.fate.draw(|random| random.below(state.unseen.len() as u64 + 1)) as usize,
                false => 0,
            };
            state.catch_up(lagging);
            let from = Key { pk: query.pk.clone(), sk: query.from.clone().unwrap_or_default() };
            let lowest = (from, Key { pk: String::new(), sk: String::new() });
            let partition = state.index.range((Bound::Included(lowest), Bound::Unbounded));
            let inside =
                |(index, _): &Key2<'_>| index.0.pk == query.pk && query.to.as_ref().is_none_or(|to| index.0.sk < *to);
            let found: Vec<&Item> = partition.take_while(inside).map(|(_, item)| item).collect();
            self.page(query, found.into_iter(), |item| {
                let index_sk = item.index.as_ref().map(|index| index.sk.clone()).unwrap_or_default();
                vec![index_sk, item.key.pk.clone(), item.key.sk.clone()]
            })?
        };
        self.fate.after(WHAT, page).await
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<()> {
        self.commit_sending(writes, Vec::new()).await
    }

    async fn commit_sending(&self, writes: Vec<Write>, messages: Vec<QueueMessage>) -> Result<()> {
        validate::writes(&writes)?;
        validate::messages(&messages)?;
        self.fate.before(WHAT).await?;
        {
            let mut state = self.lock();
            for (position, write) in writes.iter().enumerate() {
                let found = state.items.get(write.key()).filter(|item| self.is_alive(item)).map(|item| item.rev);
                let holds = match write.expect() {
                    Expect::Absent => found.is_none(),
                    Expect::Rev(rev) => found == Some(rev),
                    Expect::Present => found.is_some(),
                    Expect::Any => true,
                };
                if !holds {
                    return Err(Error::Conflict { write: position });
                }
            }
            let with_new_item = writes.iter().any(Write::makes_item);
            writes.into_iter().for_each(|write| self.write(&mut state, write));
            state.commits += 1;
            match &self.queue {
                Some(queue) if with_new_item => queue.put_new(messages),
                Some(queue) => queue.put(messages),
                None => {}
            }
        }
        self.fate.after(WHAT, ()).await
    }
}

type Key2<'a> = (&'a (Key, Key), &'a Item);

impl FakeTable {
    fn write(&self, state: &mut State, write: Write) {
        let (key, item) = match write {
            Write::Check { .. } => return,
            Write::Delete { key, .. } => (key, None),
            Write::Put { key, body, index, expires_at, .. } => {
                let rev = state.items.get(&key).filter(|item| self.is_alive(item)).map_or(0, |item| item.rev) + 1;
                (key.clone(), Some(Item { key, rev, body, index, expires_at }))
            }
        };
        if let Some(old) = state.items.remove(&key)
            && let Some(index) = old.index
        {
            state.unseen.push_back(Change::Remove((index, key.clone())));
        }
        if let Some(item) = item {
            if let Some(index) = &item.index {
                state.unseen.push_back(Change::Add((index.clone(), key.clone()), item.clone()));
            }
            state.items.insert(key, item);
        }
    }
}

impl State {
    /// Shows the index all changes but the newest `lagging`.
    fn catch_up(&mut self, lagging: usize) {
        while self.unseen.len() > lagging {
            match self.unseen.pop_front() {
                Some(Change::Remove(place)) => _ = self.index.remove(&place),
                Some(Change::Add(place, item)) => _ = self.index.insert(place, item),
                None => return,
            }
        }
    }
}

fn range_of(query: &Query) -> String {
    format!("{:?}", (&query.pk, &query.from, &query.to, query.descending))
}

fn write_cursor(query: &Query, place: &[String]) -> String {
    serde_json::json!([range_of(query), place]).to_string()
}

fn read_cursor(query: &Query) -> Result<Option<Vec<String>>> {
    let Some(cursor) = &query.cursor else { return Ok(None) };
    match serde_json::from_str::<(String, Vec<String>)>(cursor) {
        Ok((range, place)) if range == range_of(query) => Ok(Some(place)),
        _ => Err(Error::Invalid("the cursor is broken, or it belongs to another range".into())),
    }
}
