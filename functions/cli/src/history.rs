//! The lines that were typed into a prompt. Only for convenience: a failure to keep them is ignored.

use crate::{
    failure::CliError,
    output::{Output, one_line},
};
use flow::manifest::SessionPolicies;
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

/// Lines that are read, where the profile says nothing.
const KEPT: usize = 1_000;

/// The lines, those of earlier sessions first.
pub(crate) struct History {
    lines: Vec<String>,
    file: Option<fs::File>,
}

impl History {
    /// None, and none is kept.
    pub(crate) fn none() -> Self {
        Self { lines: Vec::new(), file: None }
    }

    /// Of prompts that have no profile: kept over sessions in the file with this name.
    pub(crate) fn kept(name: &str) -> Self {
        Self::at_path(place(Some(name)).as_deref(), KEPT)
    }

    /// As the profile wants it: kept over sessions, or only in this one.
    pub(crate) fn open(policies: &SessionPolicies) -> Self {
        let path = if policies.persist_history { place(policies.history_file.as_deref()) } else { None };
        let most = policies.max_history_items.map_or(KEPT, |most| usize::try_from(most).unwrap_or(KEPT));
        Self::at_path(path.as_deref(), most)
    }

    fn at_path(path: Option<&Path>, most: usize) -> Self {
        let read = path.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        let all = read.lines().count();
        let lines: Vec<String> = read.lines().skip(all.saturating_sub(most)).map(str::to_owned).collect();
        if let Some(path) = path
            && all > most.saturating_mul(2)
        {
            shorten(path, &lines);
        }
        Self { lines, file: path.and_then(append_to) }
    }

    /// The lines, the oldest first.
    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Keeps a line.
    pub(crate) fn add(&mut self, line: &str) {
        if self.lines.last().is_some_and(|last| last == line) {
            return;
        }
        self.lines.push(line.to_owned());
        if let Some(file) = &mut self.file {
            let _ = writeln!(file, "{line}");
        }
    }

    /// The line that `!N` means.
    pub(crate) fn at(&self, line: &str) -> Option<String> {
        let place = line.strip_prefix('!')?.parse::<usize>().ok()?;
        self.lines.get(place.checked_sub(1)?).cloned()
    }

    /// Shows the last lines with their numbers.
    pub(crate) fn show(&self, count: usize, out: &mut Output) -> Result<(), CliError> {
        let skipped = self.lines.len().saturating_sub(count);
        for (place, line) in self.lines.iter().enumerate().skip(skipped) {
            out.notice(format_args!("{:5}  {}", place + 1, one_line(line, 200)))?;
        }
        Ok(())
    }
}

/// The file of the history; none without a home directory. Of the file that a profile names only the last name counts: profiles come with
/// flows, and a flow has no say in which files of this machine are written.
fn place(named: Option<&str>) -> Option<PathBuf> {
    let name = named.and_then(|named| Path::new(named).file_name()).unwrap_or("repl_history".as_ref());
    Some(state()?.join(name))
}

/// The folder for what is kept from one command to the next (XDG Base Directory); none without a home directory.
pub(crate) fn state() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))?;
    Some(state.join("buildscale"))
}

/// Opens the file to be written at its end. The lines are private: the file is made unreadable for others, even when it existed before.
fn append_to(path: &Path) -> Option<fs::File> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    fs::create_dir_all(path.parent()?).ok()?;
    let file = fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path).ok()?;
    file.set_permissions(fs::Permissions::from_mode(0o600)).ok()?;
    Some(file)
}

/// Leaves these lines in the file. They take its place at once, so that no other session sees half of them.
fn shorten(path: &Path, lines: &[String]) {
    let beside = path.with_extension("new");
    let _ = fs::remove_file(&beside);
    let written = append_to(&beside).and_then(|mut file| {
        lines.iter().try_for_each(|line| writeln!(file, "{line}")).ok()?;
        fs::rename(&beside, path).ok()
    });
    if written.is_none() {
        let _ = fs::remove_file(&beside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_kept_over_sessions_and_can_be_run_again() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("state/buildscale/repl_history");
        let mut first = History::at_path(Some(&path), 10);
        for line in ["one", "two", "two", "three"] {
            first.add(line);
        }
        let second = History::at_path(Some(&path), 2);
        assert_eq!(second.lines, ["two", "three"]);
        assert_eq!(second.at("!2").as_deref(), Some("three"));
        for nothing in ["!0", "!3", "!x", "2", ""] {
            assert_eq!(second.at(nothing), None, "{nothing}");
        }
        Ok(())
    }

    #[test]
    fn s10_9_the_history_is_private_and_does_not_grow_for_ever() -> std::io::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("repl_history");
        fs::write(&path, (0..25).map(|number| format!("line {number}\n")).collect::<String>())?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?;
        History::at_path(Some(&path), 10).add("last");
        assert_eq!(fs::metadata(&path)?.permissions().mode() & 0o777, 0o600);
        let left = fs::read_to_string(&path)?;
        assert!(left.starts_with("line 15\n") && left.ends_with("line 24\nlast\n"), "{left}");
        assert_eq!(fs::read_dir(folder.path())?.count(), 1);
        Ok(())
    }

    #[test]
    fn s10_9_a_profile_may_leave_no_history_behind() {
        let policies = SessionPolicies { persist_history: false, ..SessionPolicies::default() };
        assert!(History::open(&policies).file.is_none());
    }

    #[test]
    fn a_profile_cannot_choose_the_folder() {
        let policies = |file: &str| place(Some(file)).map(|path| path.ends_with("buildscale/.bashrc"));
        assert_ne!(policies("/etc/.bashrc"), Some(false));
    }
}
