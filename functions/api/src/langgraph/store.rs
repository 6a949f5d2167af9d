//! The store: items are JSON files below `/store`, which agents and people read and write as any other file.

use super::{MOST, part, texts};
use crate::{
    Context,
    access::{Read, Write},
    error::{Answer, excerpt},
    extract::{Json, Query},
    hub::Within,
    ids::Ids,
    writes::author,
};
use axum::extract::State;
use domain::{Code, Error};
use http::StatusCode;
use protocols::{
    fields::{object, text},
    langgraph::{self as wire, Item},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{cmp::Ordering, collections::BTreeSet, sync::Arc};
use utoipa::IntoParams;
use workspace::{Content, Expect, Workspace};

/// Files that are looked through for one page.
const LOOKED_THROUGH: usize = 10_000;
/// The longest content that is read as an item, in bytes. Those that the store writes are shorter.
const LONGEST: u64 = 4 * 1024 * 1024;
/// The most bytes of the items of one page; a longer item is on a page of its own. Each value takes many times the bytes that it is written with.
const PAGE: usize = 4 * 1024 * 1024;
/// The longest item that is laid out for people, in bytes before that. Layout indents each value, by up to 254 bytes.
const LAID_OUT: usize = 16 * 1024;

/// The place of an item.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct At {
    /// Its namespace: labels with dots between them.
    #[param(example = "users.ann")]
    namespace: String,
    /// Its key.
    key: String,
}

async fn opened<N>(context: &Context, within: &Within<N>) -> Answer<Workspace> {
    Ok(context.base.workspaces.open(within.workspace, within.files.clone()).await?)
}

fn item_json(item: &Item, content: &Content) -> Result<Value, Error> {
    if content.bytes.len() as u64 > LONGEST {
        let path = &content.info.path;
        return Err(Error::new(Code::Unprocessable, format!("{path} is too long for an item")).hint("read the file"));
    }
    let text = std::str::from_utf8(&content.bytes).unwrap_or_default();
    let value: Value = serde_json::from_str(&domain::exact_numbers::quoted(text)).map_err(|_| {
        Error::new(Code::Unprocessable, format!("{} is no JSON", content.info.path)).hint("write the item anew")
    })?;
    let (created, updated) = (content.info.created_at, content.info.updated_at);
    Ok(json!({
        "namespace": item.namespace, "key": item.key, "value": value, "created_at": created, "updated_at": updated,
    }))
}

/// The text of an item's file.
fn written(value: &Value) -> String {
    let text = value.to_string();
    if text.len() > LAID_OUT { format!("{text}\n") } else { format!("{value:#}\n") }
}

/// The namespace and the key of a body.
fn place(body: &Map<String, Value>) -> Result<Item, Error> {
    let namespace = texts(body, "namespace")?.unwrap_or_default();
    let key = text(body, "key")?.unwrap_or_default().to_owned();
    Ok(Item { namespace, key })
}

/// Writes an item: the next version of its file.
#[utoipa::path(put, path = "/langgraph/store/items", tag = "langgraph", operation_id = "put_item",
    request_body(content = Value, description = "`namespace`, `key`, and an object as `value`."),
    responses((status = 204, description = "It is written.")))]
pub(crate) async fn put_item(
    State(context): State<Arc<Context>>,
    within: Within<Write>,
    ids: Ids,
    Json(body): Json<Map<String, Value>>,
) -> Answer<StatusCode> {
    wire::plain(&body, &["namespace", "key", "value"])?;
    let Item { namespace, key } = place(&body)?;
    let value = body.get("value").filter(|value| value.is_object());
    let value = value.ok_or_else(|| Error::invalid("value", "the value of an item is an object"))?;
    let path = wire::item(&namespace, &key)?;
    let text = written(value);
    let writer = author(&within.caller, ids.writer(within.by.clone()));
    opened(&context, &within).await?.write(&path, text, Expect::Any, &writer).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// An item; null when there is none.
#[utoipa::path(get, path = "/langgraph/store/items", tag = "langgraph", operation_id = "get_item", params(At),
    responses((status = 200, description = "It.", body = Value)))]
pub(crate) async fn get_item(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    Query(At { namespace, key }): Query<At>,
) -> Answer<axum::Json<Value>> {
    let namespace: Vec<String> = namespace.split('.').map(str::to_owned).collect();
    let path = wire::item(&namespace, &key)?;
    match opened(&context, &within).await?.read(&path, None).await {
        Ok(content) => Ok(axum::Json(item_json(&Item { namespace, key }, &content)?)),
        Err(error) if error.code == Code::NotFound => Ok(axum::Json(Value::Null)),
        Err(error) => Err(error.into()),
    }
}

/// Deletes an item: its file goes into the trash. Again is harmless.
#[utoipa::path(delete, path = "/langgraph/store/items", tag = "langgraph", operation_id = "delete_item",
    request_body(content = Value, description = "`namespace` and `key`."),
    responses((status = 204, description = "It is gone.")))]
pub(crate) async fn delete_item(
    State(context): State<Arc<Context>>,
    within: Within<Write>,
    ids: Ids,
    Json(body): Json<Map<String, Value>>,
) -> Answer<StatusCode> {
    wire::plain(&body, &["namespace", "key"])?;
    let Item { namespace, key } = place(&body)?;
    let path = wire::item(&namespace, &key)?;
    let writer = author(&within.caller, ids.writer(within.by.clone()));
    match opened(&context, &within).await?.rm(&path, &writer).await {
        Ok(_) => Ok(StatusCode::NO_CONTENT),
        Err(error) if error.code == Code::NotFound => Ok(StatusCode::NO_CONTENT),
        Err(error) => Err(error.into()),
    }
}

/// The items in a namespace and those below it, in the order of their paths.
async fn items(workspace: &Workspace, prefix: &[String]) -> Result<Vec<(Item, domain::FilePath)>, Error> {
    // Items whose files cannot be read are left out, too; the log names them.
    let found = match workspace.list_readable(&wire::folder(prefix)?, LOOKED_THROUGH).await {
        Ok(found) => found.entries,
        Err(error) if error.code == Code::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let short = found.into_iter().filter(|info| info.size <= LONGEST);
    let mut items: Vec<_> = short.filter_map(|info| Some((Item::of(&info.path)?, info.path))).collect();
    items.sort_by(|one, other| one.1.as_str().cmp(other.1.as_str()));
    Ok(items)
}

/// The items of a namespace and those below it.
#[utoipa::path(post, path = "/langgraph/store/items/search", tag = "langgraph", operation_id = "search_items",
    request_body(content = Value, description = "`namespace_prefix`, `filter` with the wanted values of fields or \
        operators for them (`$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`), `limit`, `offset`."),
    responses((status = 200, description = "A part of them.", body = Value)))]
pub(crate) async fn search_items(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    Json(body): Json<Map<String, Value>>,
) -> Answer<axum::Json<Value>> {
    if body.get("query").is_some_and(|query| !query.is_null()) {
        return Err(Error::invalid("query", "the store is not searched by meaning")
            .hint("search the files: POST /api/v1/workspaces/ID/search")
            .into());
    }
    wire::plain(&body, &["namespace_prefix", "filter", "limit", "offset"])?;
    let (offset, limit) = part(&body, 10, MOST)?;
    let filter = object(&body, "filter")?;
    check_operators(&filter)?;
    let workspace = opened(&context, &within).await?;
    let (mut found, mut skipped, mut bytes) = (Vec::new(), 0, 0);
    for (item, path) in items(&workspace, &texts(&body, "namespace_prefix")?.unwrap_or_default()).await? {
        let content = match workspace.read(&path, None).await {
            Ok(content) => content,
            // An answer without the item would say that it is not there.
            Err(error) if matches!(error.code, Code::UpstreamUnavailable | Code::Timeout) => return Err(error.into()),
            Err(_) => continue,
        };
        // Files that are no items may lie in the folder, too.
        let Ok(one) = item_json(&item, &content) else { continue };
        if !filter.iter().all(|(name, wanted)| meets(&one["value"][name], wanted)) {
            continue;
        }
        if skipped < offset {
            skipped += 1;
            continue;
        }
        bytes += content.bytes.len();
        if bytes > PAGE && !found.is_empty() {
            let message = format!("the items have more than {} MiB together", PAGE >> 20);
            let error =
                Error::new(Code::PayloadTooLarge, message).detail("field", "limit").detail("maximum", found.len());
            return Err(error.hint("ask for fewer by limit, and for those behind them by offset").into());
        }
        found.push(one);
        if found.len() == limit {
            break;
        }
    }
    Ok(axum::Json(json!({ "items": found })))
}

/// The operators of a filter (those of LangGraph's stores).
const OPERATORS: [&str; 6] = ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"];

/// The operators that a filter has for a field; none where it names a value.
fn operators(wanted: &Value) -> Option<&Map<String, Value>> {
    wanted.as_object().filter(|wanted| wanted.keys().any(|key| key.starts_with('$')))
}

/// Refuses a filter with an operator that is not known: it would find nothing, without a word.
fn check_operators(filter: &Map<String, Value>) -> Result<(), Error> {
    let mut named = filter.values().filter_map(operators).flat_map(Map::keys);
    match named.find(|named| !OPERATORS.contains(&named.as_str())) {
        None => Ok(()),
        Some(other) => Err(Error::invalid("filter", format!("{:?} is no operator of a filter", excerpt(other)))
            .hint(format!("the operators are {}", OPERATORS.join(", ")))),
    }
}

/// Whether a field has the value that a filter wants, or meets all operators of it.
fn meets(field: &Value, wanted: &Value) -> bool {
    let Some(operators) = operators(wanted) else { return is_same(field, wanted) };
    operators.iter().all(|(operator, bound)| match operator.as_str() {
        "$eq" => is_same(field, bound),
        "$ne" => !is_same(field, bound),
        "$gt" => compared(field, bound).is_some_and(Ordering::is_gt),
        "$gte" => compared(field, bound).is_some_and(Ordering::is_ge),
        "$lt" => compared(field, bound).is_some_and(Ordering::is_lt),
        _ => compared(field, bound).is_some_and(Ordering::is_le),
    })
}

/// Whether two values are the same. Clients in Python write 7.0 where those in JavaScript write 7.
fn is_same(one: &Value, other: &Value) -> bool {
    one == other || (one.is_f64() != other.is_f64() && compared(one, other).is_some_and(Ordering::is_eq))
}

/// The order of two numbers or of two texts; none of other values.
fn compared(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64()?.partial_cmp(&other.as_f64()?),
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        _ => None,
    }
}

/// The namespaces that have items.
#[utoipa::path(post, path = "/langgraph/store/namespaces", tag = "langgraph", operation_id = "list_namespaces",
    request_body(content = Value, description = "`prefix`, `suffix`, `max_depth`, `limit`, `offset`."),
    responses((status = 200, description = "A part of them.", body = Value)))]
pub(crate) async fn list_namespaces(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    Json(body): Json<Map<String, Value>>,
) -> Answer<axum::Json<Value>> {
    wire::plain(&body, &["prefix", "suffix", "max_depth", "limit", "offset"])?;
    let (offset, limit) = part(&body, 100, 1_000)?;
    let suffix = texts(&body, "suffix")?.unwrap_or_default();
    let depth = match body.get("max_depth") {
        None | Some(Value::Null) => None,
        Some(depth) => {
            let labels = depth.as_u64().filter(|labels| *labels > 0);
            let labels =
                labels.ok_or_else(|| Error::invalid("max_depth", "max_depth is a number of labels above 0"))?;
            usize::try_from(labels).ok()
        }
    };
    let workspace = opened(&context, &within).await?;
    let found = items(&workspace, &texts(&body, "prefix")?.unwrap_or_default()).await?;
    let all: BTreeSet<Vec<String>> = found
        .into_iter()
        .map(|(item, _)| item.namespace)
        .filter(|namespace| namespace.ends_with(&suffix))
        .map(|mut namespace| {
            namespace.truncate(depth.unwrap_or(usize::MAX));
            namespace
        })
        .collect();
    let page: Vec<Vec<String>> = all.into_iter().skip(offset).take(limit).collect();
    Ok(axum::Json(json!({ "namespaces": page })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_laid_out_where_that_cannot_make_it_long() {
        assert_eq!(written(&json!({ "a": [1] })), "{\n  \"a\": [\n    1\n  ]\n}\n");
        let nested = |values: usize| {
            let inner = Value::from(vec![0; values]);
            written(&(0..120).fold(inner, |inner, _| Value::Array(vec![inner]))).len()
        };
        // The most that is laid out, and the first that is not.
        assert!((1_000_000..LONGEST).contains(&(nested(8_000) as u64)), "{} bytes", nested(8_000));
        assert_eq!(nested(100_000), 2 * 100_000 + 1 + 2 * 120 + 1);
    }
}
