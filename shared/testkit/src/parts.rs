//! Programs of others that the scripts of the repository install for tests.

use std::path::PathBuf;

/// The folder into which `scripts/{script}` installs, under the name `part` in the build cache.
///
/// # Panics
/// When it is not there: with the script that installs it.
pub fn installed(part: &str, script: &str) -> PathBuf {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = || folder("HOME").unwrap_or_default().join(".cache");
    let ours = || folder("XDG_CACHE_HOME").unwrap_or_else(home).join("buildscale");
    let installed = folder("BUILDSCALE_CACHE").unwrap_or_else(ours).join(part).join("installed");
    installed.canonicalize().unwrap_or_else(|_| panic!("run scripts/{script}, which installs {}", installed.display()))
}
