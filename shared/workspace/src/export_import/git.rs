//! Git: a workspace as a stream for `git fast-import`, and a history from `git fast-export` as a workspace. Both are text that Git itself writes and
//! reads (git-fast-import(1)), so no library of Git is needed.

pub(super) mod export;
mod history;
pub(super) mod import;
mod places;
mod stream;

/// The domain of authors, who have no address here. Nobody has one there (RFC 6761).
const DOMAIN: &str = "buildscale.invalid";

/// Whether Git would take the path for its own.
fn is_of_git(path: &domain::FilePath) -> bool {
    path.names().any(|name| name.eq_ignore_ascii_case(".git"))
}
