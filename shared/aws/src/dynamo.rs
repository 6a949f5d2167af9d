//! The table on DynamoDB.
//!
//! One table holds every item: keys `pk` and `sk`, the index `by_index` on `ipk` and `isk` with all attributes, the time to
//! live in `expires`. One write is one conditional request; only more than one are a transaction, which costs twice as much.
//! Nothing scans.

mod commit;
mod cursor;
mod item;
mod lost_answers;
mod plan;

use crate::fault::unavailable;
use async_trait::async_trait;
use aws_sdk_dynamodb::{Client, types::AttributeValue};
use item::{IPK, ISK, PK, SK, number, text};
use ports::{Clock, IndexQuery, Item, Key, Page, Query, Result, Table, Write, validate};
use std::{collections::HashMap, sync::Arc};

const WHAT: &str = "the table";
const INDEX: &str = "by_index";
/// An item's attributes.
type Attributes = HashMap<String, AttributeValue>;

/// The table on DynamoDB.
pub struct DynamoTable {
    client: Client,
    name: String,
    clock: Arc<dyn Clock>,
}

impl DynamoTable {
    /// Over the table called `name`. `clock` says which items have expired.
    pub fn new(client: Client, name: impl Into<String>, clock: Arc<dyn Clock>) -> Self {
        Self { client, name: name.into(), clock }
    }

    fn is_alive(&self, item: &Item) -> bool {
        item.expires_at.is_none_or(|at| at > self.clock.now())
    }

    /// One page of `range`, from the table or from the index.
    ///
    /// DynamoDB counts expired items against the limit, and hides them after that, so a page may come out empty with more behind it: then
    /// the next one is asked for, so that a reader with pages of one gets one. Each such page is longer, since thousands of expired items may
    /// follow each other.
    async fn page(&self, query: &Query, range: &Range) -> Result<Page> {
        let (mut start, mut limit) = (cursor::read(range.of, query, &range.position)?, query.limit);
        if query.to.as_deref().is_some_and(|to| to <= query.from.as_deref().unwrap_or_default()) {
            return Ok(Page::default());
        }
        loop {
            let answer = self
                .client
                .query()
                .table_name(&self.name)
                .set_index_name(range.index.map(str::to_owned))
                .consistent_read(range.index.is_none())
                .key_condition_expression(range.condition(query))
                .set_expression_attribute_values(Some(range.values(query, self.clock.as_ref())))
                .filter_expression(item::ALIVE)
                .scan_index_forward(!query.descending)
                .limit(i32::try_from(limit).unwrap_or(i32::MAX))
                .set_exclusive_start_key(start)
                .send()
                .await
                .map_err(|error| unavailable(WHAT, &error))?;
            let (mut items, mut last) = (answer.items.unwrap_or_default(), answer.last_evaluated_key);
            if items.len() > query.limit {
                items.truncate(query.limit);
                last = items.last().map(|item| range.place(item));
            }
            let mut page = Page::default();
            for attributes in items {
                let item = item::read(attributes)?;
                // The table's own ranges can only include their end.
                if range.index.is_some() || query.to.as_ref().is_none_or(|to| item.key.sk < *to) {
                    page.items.push(item);
                }
            }
            if let Some(last) = last.filter(|last| !last.is_empty()) {
                if page.items.is_empty() {
                    (start, limit) = (Some(last), limit.saturating_mul(4));
                    continue;
                }
                page.next = Some(cursor::write(range.of, query, &range.position, &last)?);
            }
            return Ok(page);
        }
    }
}

#[async_trait]
impl Table for DynamoTable {
    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        let request = self.client.get_item().table_name(&self.name).consistent_read(true);
        let answer = request.set_key(Some(item::key(key))).send().await.map_err(|error| unavailable(WHAT, &error))?;
        let found = answer.item.map(item::read).transpose()?;
        Ok(found.filter(|item| self.is_alive(item)))
    }

    async fn query(&self, query: &Query) -> Result<Page> {
        validate::query(query)?;
        self.page(query, &Range { of: "items", index: None, pk: PK, sk: SK, position: [PK, SK].into() }).await
    }

    async fn query_index(&self, query: &IndexQuery) -> Result<Page> {
        validate::query(query)?;
        let position = [IPK, ISK, PK, SK].into();
        self.page(query, &Range { of: "index", index: Some(INDEX), pk: IPK, sk: ISK, position }).await
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<()> {
        validate::writes(&writes)?;
        self.write(&writes).await
    }
}

/// The range of a query.
struct Range {
    /// Its name in cursors.
    of: &'static str,
    index: Option<&'static str>,
    pk: &'static str,
    sk: &'static str,
    /// The attributes that say where a page ended.
    position: Vec<&'static str>,
}

impl Range {
    /// The attributes of an item by which a page that ends with it can be continued.
    fn place(&self, item: &Attributes) -> Attributes {
        let attribute = |name: &&'static str| Some(((*name).to_owned(), item.get(*name)?.clone()));
        self.position.iter().filter_map(attribute).collect()
    }

    fn condition(&self, query: &Query) -> String {
        let Self { pk, sk, .. } = self;
        let bounds = match (lower(query), &query.to) {
            (None, None) => String::new(),
            (Some(_), None) => format!(" AND {sk} >= :from"),
            (None, Some(_)) => format!(" AND {sk} < :to"),
            (Some(_), Some(_)) => format!(" AND {sk} BETWEEN :from AND :to"),
        };
        format!("{pk} = :pk{bounds}")
    }

    fn values(&self, query: &Query, clock: &dyn Clock) -> Attributes {
        let mut values =
            HashMap::from([(":pk".to_owned(), text(&query.pk)), (":now".to_owned(), number(clock.now().as_millis()))]);
        values.extend(lower(query).map(|from| (":from".to_owned(), text(from))));
        values.extend(query.to.as_ref().map(|to| (":to".to_owned(), text(to))));
        values
    }
}

/// The lower bound of a range; every sort key is above an empty one, and DynamoDB takes none.
fn lower(query: &Query) -> Option<&str> {
    query.from.as_deref().filter(|from| !from.is_empty())
}
