//! The files that a command sees. A command reads what its sandbox shows it, and no policy stands between: so its sandbox hides what its party may not
//! read, and a command does not run where that cannot be. The same holds for programs of MCP servers, which run longer.

use crate::{FileKind, Result, Workspace, party::Party, sandbox_mirror::SANDBOX};
use access::{Action, Subject};
use domain::{Code, FilePath, Principal, UserId};
use ports::{OTHER_HOMES, would_see_private};
use std::collections::BTreeSet;

/// The folder of the homes.
const HOMES: &str = "/users";
/// How many files are looked at one by one where policies look at names.
const MOST_NAMED: usize = 100_000;
/// How many files and folders can be hidden from a command.
const MOST_HIDDEN: usize = 10_000;

impl Workspace {
    /// The name of this party. Policies see parties of one name alike, except for the role of a person.
    pub fn party_name(&self) -> String {
        match self.party() {
            Party::Platform(_) => "platform".to_owned(),
            Party::Subject(subject, _) if subject.has_home() => subject.to_string(),
            Party::Subject(subject, _) => format!("{subject} without home"),
        }
    }

    /// The files and folders of the workspace that must not exist for a command of this party, in order: those that policies keep from the party, and
    /// the homes of others. They are there or may come while the command runs. `root` is what the command reads. `mirrored`: it runs beside a mirror,
    /// which has only the files that everybody may read and hides none of them, and not beside `latest/`.
    ///
    /// # Errors
    /// `FORBIDDEN`, without a word on which files those are, where they cannot be hidden; else those of [`Workspace`].
    pub async fn hidden_from_commands(&self, root: &FilePath, mirrored: bool) -> Result<Vec<FilePath>> {
        let Party::Subject(subject, _) = self.party() else { return Ok(Vec::new()) };
        if mirrored {
            let is_kept_from = self.is_kept_from_mirrored(root).await?;
            return if is_kept_from { Err(would_see_private(root)) } else { Ok(Vec::new()) };
        }
        let (all, top) = (self.unlimited("the files that a command would see"), FilePath::root());
        let mut hidden = self.secret_by_name(&all, &top, false).await?;
        let named = self.policies_in_force().named_below(&top);
        hidden.extend(named.into_iter().chain([top]).filter(|path| self.is_secret_in(path, false)));
        let homes = FilePath::parse(HOMES)?;
        // No policy gives away a home: those of others need no decision each.
        let is_of_another = |name: &str| {
            let works_for = !matches!(subject, Subject::Person { .. });
            works_for && name.parse::<UserId>().is_ok_and(|id| subject.person() != Some(id))
        };
        // An entry that cannot be read may be the home of another person, so it is an error.
        let there = match all.folder_at(&homes).await {
            Err(error) if error.code == Code::NotFound => Vec::new(),
            folder => all.all_entries(folder?).await?,
        };
        for (name, _) in there.into_iter().filter(|(_, entry)| entry.kind == FileKind::Folder) {
            let home = homes.join(&name)?;
            if is_of_another(&name) || !self.may_read(&home) {
                hidden.insert(home);
            }
        }
        hidden.extend(other_homes(subject)?);
        // The order of paths has a folder before those in it.
        let mut outermost: Vec<FilePath> = Vec::new();
        for path in hidden {
            if outermost.last().is_none_or(|above| !path.is_within(above)) {
                outermost.push(path);
            }
        }
        match outermost.len() > MOST_HIDDEN || outermost.iter().any(|path| root.is_within(path)) {
            true => Err(would_see_private(root)),
            false => Ok(outermost),
        }
    }

    /// The same for programs of MCP servers, which see the root. Beside a mirror there are no homes to hide; those of others are named all the same, so that
    /// parties with the same list, which may share a program, are never two people.
    ///
    /// # Errors
    /// Those of [`Workspace::hidden_from_commands`].
    pub async fn hidden_from_programs(&self, mirrored: bool) -> Result<Vec<FilePath>> {
        let mut hidden = self.hidden_from_commands(&FilePath::root(), mirrored).await?;
        if let (Party::Subject(subject, _), true) = (self.party(), mirrored) {
            hidden.extend(other_homes(subject)?);
        }
        Ok(hidden)
    }

    /// Whether a mirror has files below `root` that this party may not read.
    async fn is_kept_from_mirrored(&self, root: &FilePath) -> Result<bool> {
        let all = self.unlimited("the files that a command would see");
        if !self.secret_by_name(&all, root, true).await?.is_empty() {
            return Ok(true);
        }
        for path in self.policies_in_force().named_below(root).into_iter().chain([root.clone()]) {
            if self.is_secret_in(&path, true) && all.walk(&path).await?.found.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Those below `root` that policies tell by their names. Homes of others are hidden as a whole, if at all.
    async fn secret_by_name(&self, all: &Self, root: &FilePath, mirrored: bool) -> Result<BTreeSet<FilePath>> {
        if !self.policies_in_force().looks_at_names() {
            return Ok(BTreeSet::new());
        }
        let (infos, whole) = all.list_tree(root, MOST_NAMED).await?;
        if !whole {
            return Err(would_see_private(root));
        }
        let is_of_another = |path: &FilePath| home_above(path).is_some_and(|home| !self.may_read(&home));
        let paths = infos.into_iter().map(|info| info.path);
        Ok(paths.filter(|path| !is_of_another(path) && self.is_secret(path, mirrored)).collect())
    }

    fn is_secret(&self, path: &FilePath, mirrored: bool) -> bool {
        let everybody = Subject::Service { name: SANDBOX };
        !self.may_read(path) && (!mirrored || self.explain(&everybody, Action::Read, path).is_permit())
    }

    /// Whether it, or what is in it, may not be read.
    fn is_secret_in(&self, path: &FilePath, mirrored: bool) -> bool {
        self.is_secret(path, mirrored) || path.join("-").is_ok_and(|inside| self.is_secret(&inside, mirrored))
    }
}

/// The homes of all but the person of a subject. With accounts, people may join before a command starts, and while it runs: of the homes it sees that of its
/// person at most.
fn other_homes(subject: &Subject) -> Result<Option<FilePath>> {
    let Some(person) = subject.person().filter(|person| *person != Principal::local().user()) else { return Ok(None) };
    let others = FilePath::parse(OTHER_HOMES)?;
    Ok(Some(if subject.has_home() { others.join(&person.to_string())? } else { others }))
}

/// The folder directly below that of the homes that a path is or lies in.
fn home_above(path: &FilePath) -> Option<FilePath> {
    let mut names = path.names();
    (names.next() == Some("users"))
        .then(|| names.next())
        .flatten()
        .and_then(|name| FilePath::parse(&format!("{HOMES}/{name}")).ok())
}
