//! All of it once more for another user, if the tests run as root: root passes checks that others do not, and the reverse.

use std::{
    env, fs,
    os::unix::{fs::chown, process::CommandExt},
    process::Command,
};

const NOBODY: u32 = 65534;
/// The program that begins worlds.
pub const WORLD: &str = env!("CARGO_BIN_EXE_sandbox-world");
const AGAIN: &str = "all_of_it_holds_for_somebody_else";

#[test]
fn all_of_it_holds_for_somebody_else() {
    let home = tempfile::tempdir().unwrap();
    if chown(home.path(), Some(NOBODY), Some(NOBODY)).is_err() {
        // This is somebody else.
        return;
    }
    // Other users may have no access to the folder of this program.
    let program = home.path().join("hostile");
    fs::copy(env::current_exe().unwrap(), &program).unwrap();
    fs::copy(WORLD, home.path().join("sandbox-world")).unwrap();
    let mut again = Command::new(&program);
    again.args(["--test-threads", "1", "--skip", AGAIN]);
    again.uid(NOBODY).gid(NOBODY).current_dir(home.path()).env_clear();
    let output = again.env("TMPDIR", home.path()).env("PATH", "/usr/bin:/bin").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("test result: ok."), "{text}");
}
