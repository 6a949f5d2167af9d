//! Where a path lies, as far as policies can tell: near which of the paths that they name.
//!
//! A policy compares a path with paths that are literals of the set, with the home of its subject, and with the areas of all homes and of all setups.
//! So two paths below the same such literal, with none in between, get the same decision, and one evaluation serves a folder of any size.

use domain::{FilePath, UserId};
use std::collections::BTreeSet;

/// The folder of the homes.
const HOMES: &str = "/users";
/// The area of all homes, as policies name it.
pub(crate) const HOMES_AREA: &str = "homes";
/// The area of what sets up the agents of people, as policies name it.
pub(crate) const SETUPS_AREA: &str = "setups";

/// The folder of a home with the personas of its person.
pub const PERSONAS: &str = "personas";
/// The folder of a home with the skills of its person.
pub const SKILLS: &str = "skills";
/// The file of a home with the profile of its person.
pub const PROFILE: &str = "profile.md";

/// The file of a home with the settings of its person's daily brief, in their own words.
pub const BRIEF_SETTINGS: &str = "daily-brief.md";
/// The folder of a home with the declarations of calendars elsewhere.
pub const CALENDARS: &str = "calendars";
/// The ending of such a declaration. The states of calendars are beside them, and each sync writes one.
pub const CALENDAR_ENDING: &str = ".yaml";

/// The parts of a home that set up the agents of its person. So do declarations of calendars, which say where a secret goes.
const SETUPS: [&str; 4] = [PERSONAS, SKILLS, PROFILE, BRIEF_SETTINGS];

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

/// The part of a home that a path is or lies in, if it is one that sets up the agents of its person.
pub(crate) fn setup_of(path: &str) -> Option<&str> {
    let home = home_of(path)?;
    let mut names = path.strip_prefix(home)?.strip_prefix('/')?.split('/');
    let name = names.next()?;
    if SETUPS.contains(&name) {
        return Some(&path[..home.len() + 1 + name.len()]);
    }
    let declaration = names.next().filter(|file| name == CALENDARS && file.ends_with(CALENDAR_ENDING))?;
    Some(&path[..home.len() + 2 + name.len() + declaration.len()])
}

/// Whether a path is the folder of a home with the declarations of calendars.
fn has_declarations(path: &str) -> bool {
    home_of(path).and_then(|home| path.strip_prefix(home)?.strip_prefix('/')) == Some(CALENDARS)
}

/// The parts of a home that set up the agents of its person, in this folder: all of them in a home, a declaration in the folder of declarations, and
/// none in any other.
pub(crate) fn setups_in(folder: &FilePath) -> impl Iterator<Item = FilePath> {
    let is_home = home_of(folder.as_str()) == Some(folder.as_str());
    let setups = SETUPS.into_iter().filter(move |_| is_home).filter_map(|name| folder.join(name).ok());
    let declaration = has_declarations(folder.as_str()).then(|| folder.join(&format!("-{CALENDAR_ENDING}")).ok());
    setups.chain(declaration.flatten())
}

/// The ends of the names of what is made of a document, beside it: its Markdown, and the folder of its attachments.
const MADE: [&str; 2] = [".md", ".attachments"];

/// Whether a name has an ending, as those of documents have: `README.md` is the Markdown of nothing.
fn has_ending(name: &str) -> bool {
    name.trim_start_matches('.').contains('.')
}

/// The documents that a path is made of, by its name and those of the folders above it: `/data/a.pdf` of `/data/a.pdf.md`, and `/data/mail.eml` of
/// all that is in `/data/mail.eml.attachments`.
pub(crate) fn documents_of(path: &FilePath) -> impl Iterator<Item = FilePath> {
    let document = |path: FilePath| {
        let name = MADE.into_iter().find_map(|end| path.name().strip_suffix(end)).filter(|name| has_ending(name))?;
        path.parent()?.join(name).ok()
    };
    let may_be_made = MADE.iter().any(|end| path.as_str().contains(end));
    std::iter::successors(may_be_made.then(|| path.clone()), FilePath::parent).filter_map(document)
}

/// The paths of what is made of a document.
pub(crate) fn made_of(document: &FilePath) -> Vec<FilePath> {
    let beside = |end: &str| document.parent()?.join(&format!("{}{end}", document.name())).ok();
    MADE.into_iter().filter(|_| has_ending(document.name())).filter_map(beside).collect()
}

/// The paths that a set names, and the folders above them, in order: so of several refusals in a folder always the same one counts.
#[derive(Debug, Default)]
pub(crate) struct NamedPaths(BTreeSet<Box<str>>);

impl NamedPaths {
    pub fn add(&mut self, path: &FilePath) {
        let above = std::iter::successors(Some(path.clone()), FilePath::parent);
        self.0.extend(above.map(|path| path.as_str().into()));
    }

    /// Whether the set names this path, or one below it.
    pub fn has(&self, path: &FilePath) -> bool {
        self.0.contains(path.as_str())
    }

    /// The named paths below this one.
    pub fn below<'a>(&'a self, path: &'a FilePath) -> impl Iterator<Item = FilePath> + 'a {
        let named = self.0.iter().filter_map(|named| FilePath::parse(named).ok());
        named.filter(move |named| named != path && named.is_within(path))
    }

    /// Whether a named path, or one that may be a home or a part of one with a decision of its own, is in this folder, and not only below it.
    pub fn is_in(&self, folder: &FilePath) -> bool {
        let at = folder.as_str().trim_end_matches('/');
        folder.as_str() == HOMES
            || home_of(at) == Some(at)
            || has_declarations(at)
            || self
                .0
                .iter()
                .any(|named| named.rsplit_once('/').is_some_and(|(above, name)| above == at && !name.is_empty()))
    }

    /// The nearest named path, home or setup at or above a path, and whether it is the path itself.
    pub fn anchor<'a>(&self, path: &'a FilePath) -> (&'a str, bool) {
        let (text, home, setup) = (path.as_str(), home_of(path.as_str()), setup_of(path.as_str()));
        let mut at = text;
        loop {
            if self.0.contains(at) || home == Some(at) || setup == Some(at) || at == "/" {
                return (at, at == text);
            }
            at = match at.rfind('/') {
                None | Some(0) => "/",
                Some(end) => &at[..end],
            };
        }
    }
}
