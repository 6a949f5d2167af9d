//! The list of tasks (A2A 1.0 §3.1.4).

use super::{Refusal, RefusalKind, task::State};
use domain::{ChatId, Timestamp};
use serde_json::Value;

/// The tasks of a page: as many as are asked for, up to the most.
const USUAL: usize = 50;
const MOST: usize = 100;

/// A wish for tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct ListAsk {
    /// Of this chat alone.
    pub context: Option<ChatId>,
    /// In this state alone.
    pub state: Option<State>,
    /// In their state since this time.
    pub after: Option<Timestamp>,
    /// The tasks of a page, 1 to 100.
    pub size: usize,
    /// The place after the page before.
    pub page: Option<PageToken>,
    /// The most messages of each task's history; none of them by default.
    pub history: usize,
    /// Whether tasks have their artifacts.
    pub with_artifacts: bool,
}

/// A place in the list: the page of chats that it is in, and the tasks of that page before it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageToken {
    /// The cursor of the page of chats; none for the first one.
    pub cursor: Option<String>,
    /// The tasks to leave out.
    pub skip: usize,
}

impl std::fmt::Display for PageToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.skip, self.cursor.as_deref().unwrap_or_default())
    }
}

impl ListAsk {
    pub(super) fn read(params: &Value) -> Result<Self, Refusal> {
        let wrong = |field: &'static str, why: &str| RefusalKind::InvalidParams.of(field, why);
        let text = |name: &str| params[name].as_str().filter(|text| !text.is_empty());
        let context = text("contextId").map(|id| id.parse().map_err(|_| wrong("contextId", "it is no id of a chat")));
        let state = match text("status") {
            None | Some("TASK_STATE_UNSPECIFIED") => None,
            Some(name) => Some(State::named(name).ok_or_else(|| wrong("status", "there is no such state"))?),
        };
        let after = text("statusTimestampAfter").map(|at| {
            at.parse().map_err(|_| wrong("statusTimestampAfter", "it is no time, as in 2026-01-01T00:00:00Z"))
        });
        let number = |name: &'static str| match &params[name] {
            Value::Null => Ok(None),
            value => value.as_u64().map(Some).ok_or_else(|| wrong(name, "it is a number, 0 or more")),
        };
        let size = match number("pageSize")? {
            None | Some(0) => USUAL,
            Some(size) => usize::try_from(size).unwrap_or(MOST).min(MOST),
        };
        let page = text("pageToken").map(|token| {
            let parts = token.split_once('.').and_then(|(skip, cursor)| Some((skip.parse().ok()?, cursor)));
            let (skip, cursor) = parts.ok_or_else(|| wrong("pageToken", "it is none of this list"))?;
            Ok::<_, Refusal>(PageToken { cursor: Some(cursor.to_owned()).filter(|cursor| !cursor.is_empty()), skip })
        });
        Ok(Self {
            context: context.transpose()?,
            state,
            after: after.transpose()?,
            size,
            page: page.transpose()?,
            history: number("historyLength")?.map_or(0, |most| usize::try_from(most).unwrap_or(usize::MAX)),
            with_artifacts: params["includeArtifacts"] == true,
        })
    }

    /// Whether a task in this state since this time is wished for.
    pub fn wants(&self, state: State, since: Option<Timestamp>) -> bool {
        self.state.is_none_or(|wanted| wanted == state)
            && self.after.is_none_or(|after| since.is_some_and(|at| at > after))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_goes_on_where_the_one_before_ended() {
        let token = PageToken { cursor: Some("a.b".into()), skip: 7 };
        let ask =
            ListAsk::read(&json!({ "pageToken": token.to_string(), "status": "TASK_STATE_WORKING", "pageSize": 999 }));
        let ask = ask.unwrap();
        assert_eq!((ask.page, ask.state, ask.size), (Some(token), Some(State::Working), MOST));
        assert!(
            ListAsk::read(&json!({ "status": "busy" })).is_err()
                && ListAsk::read(&json!({ "pageToken": "x" })).is_err()
        );
        assert_eq!(ListAsk::read(&json!({})).unwrap().size, USUAL);
    }
}
