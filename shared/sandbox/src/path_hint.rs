//! A hint for a command that looked for a path outside of its mount namespace.

use crate::namespaces::{TMP, WORKSPACE};
use std::path::Path;

/// The folders of the root that a command sees in a mount namespace of its own.
const SEEN: [&str; 12] = ["bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "opt", "proc", "sbin", "tmp", "usr"];

/// A line for a command whose errors name such a path; none for other errors.
pub(crate) fn hint(errors: &str, has_namespaces: bool, latest: &Path) -> Option<String> {
    if !has_namespaces {
        return errors.contains(TMP).then(|| {
            "commands have no /tmp of their own here; use $TMPDIR, which goes with the command as well".into()
        });
    }
    let complaints = errors.lines().filter(|line| line.contains("No such file") || line.contains("not found"));
    let outside = complaints.flat_map(paths).find(|path| leads_out(path, latest))?;
    Some(format!("commands do not see {outside}: they see the workspace's files in {WORKSPACE}, {TMP}, and programs"))
}

/// The words of a line that look like a path.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|letter: char| letter.is_whitespace() || "'\"`‘’:,;()[]".contains(letter));
    words.filter(|word| word.contains('/'))
}

fn leads_out(path: &str, latest: &Path) -> bool {
    let is_seen = |path: &str| {
        let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        SEEN.contains(&first) || Path::new("/").join(first) == Path::new(WORKSPACE)
    };
    match path.strip_prefix('/') {
        Some(_) => Path::new(path).starts_with(latest) || !is_seen(path),
        None => path.starts_with("../"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_leads_out_is_named() {
        let hinted = |errors: &str| hint(errors, true, Path::new("/var/data/latest"));
        let named = |path: &str| {
            Some(format!(
                "commands do not see {path}: they see the workspace's files in /workspace, /tmp, and programs"
            ))
        };
        assert_eq!(hinted("cat: ../other/b.md: No such file or directory\n"), named("../other/b.md"));
        assert_eq!(hinted("cat: /projects/a.md: No such file or directory\n"), named("/projects/a.md"));
        assert_eq!(
            hinted("ls: cannot access '/var/data/latest': No such file or directory\n"),
            named("/var/data/latest")
        );
        assert_eq!(hinted("sh: 1: /srv/me/tool: not found\n"), named("/srv/me/tool"));
        for own in
            ["cat: /workspace/a.md: No such file", "cat: a/b.md: No such file", "cat: /etc/shadow: Permission denied"]
        {
            assert_eq!(hinted(own), None, "{own}");
        }
        let beside = hint("sh: /tmp/a: Permission denied", false, Path::new("/"));
        assert!(beside.is_some_and(|hint| hint.contains("use $TMPDIR")));
    }
}
