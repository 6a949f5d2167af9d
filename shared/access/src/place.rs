//! Where a path lies, as far as policies can tell: near which of the paths that they name.
//!
//! A policy compares a path with paths that are literals of the set, with the home of its subject, and with the area of all homes. So two paths
//! below the same such literal, with none in between, get the same decision, and one evaluation serves a folder of any size.

use domain::{FilePath, UserId};
use std::collections::HashSet;

/// The folder of the homes.
const HOMES: &str = "/users";

/// `/users/<id>`: the home of a person.
pub fn home(person: UserId) -> String {
    format!("{HOMES}/{person}")
}

/// The home that a path is or lies in, in any way to write an id: a folder that is named like an id in capitals belongs to nobody.
pub(crate) fn home_of(path: &str) -> Option<&str> {
    let below = path.strip_prefix(HOMES)?.strip_prefix('/')?;
    let name = below.split('/').next()?;
    name.parse::<UserId>().ok().map(|_| &path[..HOMES.len() + 1 + name.len()])
}

/// The paths that a set names, and the folders above them.
#[derive(Debug, Default)]
pub(crate) struct Named(HashSet<Box<str>>);

impl Named {
    pub fn add(&mut self, path: &FilePath) {
        let above = std::iter::successors(Some(path.clone()), FilePath::parent);
        self.0.extend(above.map(|path| path.as_str().into()));
    }

    /// The named paths below this one.
    pub fn below<'a>(&'a self, path: &'a FilePath) -> impl Iterator<Item = FilePath> + 'a {
        let named = self.0.iter().filter_map(|named| FilePath::parse(named).ok());
        named.filter(move |named| named != path && named.is_within(path))
    }

    /// Whether a named path, or one that may be a home, is in this folder, and not only below it.
    pub fn is_in(&self, folder: &FilePath) -> bool {
        let at = folder.as_str().trim_end_matches('/');
        folder.as_str() == HOMES
            || self
                .0
                .iter()
                .any(|named| named.rsplit_once('/').is_some_and(|(above, name)| above == at && !name.is_empty()))
    }

    /// The nearest named path or home at or above a path, and whether it is the path itself.
    pub fn anchor<'a>(&self, path: &'a FilePath) -> (&'a str, bool) {
        let (text, home) = (path.as_str(), home_of(path.as_str()));
        let mut at = text;
        loop {
            if self.0.contains(at) || home == Some(at) || at == "/" {
                return (at, at == text);
            }
            at = match at.rfind('/') {
                None | Some(0) => "/",
                Some(end) => &at[..end],
            };
        }
    }
}
