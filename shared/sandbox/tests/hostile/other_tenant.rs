//! All of it once more for another user than root: root passes checks that others do not, and the reverse. Only root can become another user, so
//! `scripts/test` runs this where it is root. Elsewhere all other tests of this program have run as another user.

use std::{
    env, fs,
    os::unix::{fs::chown, process::CommandExt},
    process::Command,
};

const NOBODY: u32 = 65534;
/// The program that makes namespaces.
pub const NAMESPACES: &str = env!("CARGO_BIN_EXE_sandbox-namespaces");
const AGAIN: &str = "all_of_it_holds_for_somebody_else";

#[test]
#[ignore = "scripts/test runs it as root: only root can become another user"]
fn all_of_it_holds_for_somebody_else() {
    let home = tempfile::tempdir().unwrap();
    chown(home.path(), Some(NOBODY), Some(NOBODY)).expect("only root can become another user");
    // Other users may have no access to the folder of this program.
    let program = home.path().join("hostile");
    fs::copy(env::current_exe().unwrap(), &program).unwrap();
    fs::copy(NAMESPACES, home.path().join("sandbox-namespaces")).unwrap();
    let mut again = Command::new(&program);
    again.args(["--test-threads", "1", "--skip", AGAIN]);
    again.uid(NOBODY).gid(NOBODY).current_dir(home.path()).env_clear();
    let output = again.env("TMPDIR", home.path()).env("PATH", "/usr/bin:/bin").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("test result: ok."), "{text}");
}
