//! A route, the rights that it needs, and a call of it.

use identity::Action;
use std::collections::BTreeSet;

/// The rights that a route needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Everybody, without any credential.
    Nothing,
    /// A valid credential with this scope, if any is asked for: the route shows public data, or one's own.
    Credential(Option<Action>),
    /// A person, not a key.
    InPerson,
    /// The operator of the server.
    Machine,
    /// A member of the workspace whose role may do this.
    In(Action),
}

/// A route, and a call of it. Names in braces stand for ids or names of the tenant.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Method and path as the document has them.
    pub route: &'static str,
    /// The rights that it needs.
    pub needs: Needs,
    /// The rest of the path's ids, where the route's own names do not say which: `file_id` as `trashed_id`.
    pub like: &'static [(&'static str, &'static str)],
    /// The query string.
    pub query: &'static str,
    /// The JSON body.
    pub body: &'static str,
}

/// A route whose ids have the names of the path.
pub const fn row(route: &'static str, needs: Needs, query: &'static str, body: &'static str) -> Row {
    Row { route, needs, like: &[], query, body }
}

/// A route whose ids have other names with the tenant.
pub const fn like(route: &'static str, needs: Needs, like: &'static [(&'static str, &'static str)]) -> Row {
    Row { route, needs, like, query: "", body: "" }
}

impl Row {
    pub fn method(&self) -> &'static str {
        self.route.split(' ').next().unwrap()
    }

    /// Path and query, with names in braces.
    pub fn target(&self) -> String {
        let mut path = self.route.split(' ').nth(1).unwrap().to_owned();
        for (name, like) in self.like {
            path = path.replace(&format!("{{{name}}}"), &format!("{{{like}}}"));
        }
        if self.query.is_empty() { path } else { format!("{path}?{}", self.query) }
    }

    /// The names in braces, wherever they are.
    pub fn names(&self) -> BTreeSet<String> {
        let text = format!("{} {}", self.target(), self.body);
        let names = text.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
        let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        names.map(|(name, _)| name.to_owned()).filter(|name| is_name(name)).collect()
    }
}
