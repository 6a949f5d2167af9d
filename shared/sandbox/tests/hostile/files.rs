//! Files.

use crate::{
    cage::{Cage, PRELUDE, PYTHON, VERSIONS, WORKSPACE, all_done, all_refused, outcomes},
    escapes::namespaced,
};
use domain::{FilePath, WorkspaceId};
use ports::Exec;
use rustix::io::{FdFlags, fcntl_setfd};
use std::{
    collections::BTreeMap,
    fs,
    os::{
        fd::AsRawFd,
        unix::fs::{PermissionsExt, symlink},
    },
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// Reads of existing files that are forbidden here.
const READS: &str = r#"
root, latest = sys.argv[1:]
for name in [root + "/secret", root + "/files/other/latest/c.md", latest + "/outside/b.md"]:
    tries("read " + name, lambda: open(name).read())
for name in [root, root + "/files", latest, latest + "/outside", os.path.dirname(os.environ["TMPDIR"])]:
    tries("list " + name, lambda: os.listdir(name))
for name in ["link", "folder/secret"]:
    tries("through " + name, lambda: open(name).read())
os.chdir(latest + "/outside")
tries("from elsewhere", lambda: open("b.md").read())
os.symlink(root + "/secret", os.environ["TMPDIR"] + "/link")
tries("by an own link", lambda: open(os.environ["TMPDIR"] + "/link").read())
"#;

const WRITES: &str = r#"
root, latest = sys.argv[1:]
own = os.environ["TMPDIR"] + "/own"
open(own, "w").close()
def write(name, mode="w"): open(name, mode).close()
for name in [root + "/new", latest + "/inside/new", latest + "/outside/new", root + "/scratch-new", "/var/tmp/confined-" + str(os.getpid())]:
    tries("make " + name, lambda: (write(name), os.remove(name)))
for name in [root + "/secret", latest + "/inside/a.md", latest + "/outside/b.md"]:
    tries("append to " + name, lambda: write(name, "a"))
    tries("cut " + name, lambda: os.truncate(name, 1))
    tries("open and cut " + name, lambda: os.open(name, os.O_RDONLY | os.O_TRUNC))
    tries("link from " + name, lambda: (os.link(name, own + "-link"), os.remove(own + "-link")))
    tries("rename onto " + name, lambda: os.rename(own, name))
    open(own, "a").close()
    tries("attribute of " + name, lambda: os.setxattr(name, "user.a", b"x"))
    tries("become its owner by " + name, lambda: os.chmod(name, 0o4755))
    tries("remove " + name, lambda: os.remove(name))
tries("make a folder", lambda: os.mkdir(latest + "/inside/folder2"))
tries("make a link", lambda: os.symlink("/", latest + "/inside/link2"))
tries("make a socket", lambda: os.mkfifo(latest + "/inside/fifo"))
"#;

#[tokio::test]
async fn nothing_is_read_but_what_is_given() {
    for version in VERSIONS {
        let cage = Cage::new(version);
        let (root, latest) = (cage.root(), cage.latest());
        symlink(root.join("secret"), latest.join("inside/link")).unwrap();
        symlink(&root, latest.join("inside/folder")).unwrap();
        let paths = [root.to_str().unwrap(), latest.to_str().unwrap()];
        all_refused(&cage.attempts(false, READS, &paths).await, 12);
        all_refused(&cage.attempts(true, READS, &paths).await, 12);
        // There its scratch folder is in the root.
        all_done(&cage.unconfined(READS, &paths), 11);
    }
}

#[tokio::test]
async fn nothing_is_written_but_scratch() {
    for version in VERSIONS {
        let cage = Cage::new(version);
        let (root, latest) = (cage.root(), cage.latest());
        let paths = [root.to_str().unwrap(), latest.to_str().unwrap()];
        all_refused(&cage.attempts(false, WRITES, &paths).await, 32);
        for (file, content) in [("inside/a.md", "of this folder"), ("outside/b.md", "of another folder")] {
            assert_eq!(fs::read_to_string(latest.join(file)).unwrap(), content, "with version {version}");
        }
        assert_eq!(fs::read_to_string(root.join("secret")).unwrap(), "of the host");
        let mut free = cage.unconfined(WRITES, &paths);
        // Not every file system has attributes.
        free.retain(|name, _| !name.starts_with("attribute"));
        all_done(&free, 29);
    }
}

#[tokio::test]
async fn no_other_process_waits_for_a_command_and_it_hears_of_none() {
    let script = r#"
file, folder = os.open("a.md", os.O_RDONLY), os.open(".", os.O_RDONLY)
tries("lease", lambda: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK))
tries("notice", lambda: fcntl.fcntl(folder, fcntl.F_NOTIFY, fcntl.DN_CREATE))
"#;
    for version in VERSIONS {
        let cage = Cage::new(version);
        all_refused(&cage.attempts(false, script, &[]).await, 2);
        all_done(&cage.unconfined(script, &[]), 2);
    }
}

#[tokio::test]
async fn files_that_the_host_inherited_are_closed() {
    let cage = Cage::new(u8::MAX);
    let secret = fs::File::open(cage.root().join("secret")).unwrap();
    // As the parent of a hub may leave it, without the mark.
    fcntl_setfd(&secret, FdFlags::empty()).unwrap();
    let number = secret.as_raw_fd();
    let read = format!("cat /proc/self/fd/{number}; python3 -I -c 'import os; print(os.read({number}, 99))'");
    let did = cage.run(cage.command(&["bash", "-c", &read])).await;
    assert!(did.end.code != Some(0) && !did.output.contains("of the host"), "{did:?}");
}

#[tokio::test]
async fn of_the_system_only_what_programs_need_is_read() {
    let cage = Cage::new(u8::MAX);
    let script = r#"
for name in ["/etc/shadow", "/etc/ssl/private", "/root", "/home", "/var/lib", "/var/log", "/run", "/boot", "/dev/shm", "/sys/kernel", "/var/tmp", "/"]:
    if os.path.exists(name):
        tries(name, lambda: os.listdir(name) if os.path.isdir(name) else open(name).read())
for name in ["/proc/kcore", "/proc/kmsg", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/self/mem", "/dev/tty", "/dev/kmsg"]:
    if os.path.exists(name):
        tries(name, lambda: os.open(name, os.O_RDWR))
"#;
    let outcomes = cage.attempts(false, script, &[]).await;
    all_refused(&outcomes, outcomes.len());
    for name in ["/etc/shadow", "/root", "/var/tmp", "/proc/sys/kernel/core_pattern"] {
        assert!(outcomes.contains_key(name), "{name} was not tried: {outcomes:?}");
    }
}

#[tokio::test]
async fn workspaces_in_a_folder_of_the_system_are_not_shown_with_it() {
    let data = tempfile::tempdir_in("/var/tmp").unwrap();
    let data = data.path().canonicalize().unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(data.join("tool")).unwrap();
    fs::write(data.join("tool/readme"), "of a tool").unwrap();
    fs::create_dir_all(data.join("hub/keys")).unwrap();
    fs::write(data.join("hub/keys/secret"), "of the hub").unwrap();
    fs::write(data.join("tool/buildscale.toml"), "of the hub").unwrap();
    let give = |options: &mut buildscale_sandbox::Options| {
        options.system = vec![data.clone()];
        options.hidden = vec![data.join("hub"), data.join("tool/buildscale.toml")];
    };
    let script = r#"
tries("tool", lambda: open(sys.argv[1] + "/tool/readme").read())
tries("secret", lambda: open(sys.argv[1] + "/hub/keys/secret").read())
tries("list", lambda: os.listdir(sys.argv[1] + "/hub"))
tries("configuration", lambda: open(sys.argv[1] + "/tool/buildscale.toml").read())
"#;
    for (cage, refused) in [(Cage::with(give), "EACCES"), (namespaced(give), "ENOENT")] {
        let outcomes = cage.attempts(false, script, &[data.to_str().unwrap()]).await;
        assert_eq!(outcomes["tool"], "DONE");
        for name in ["secret", "list", "configuration"] {
            assert_eq!(outcomes[name], refused, "{name}");
        }
    }
}

/// Attempts to find what is hidden, and looks at what is beside it.
const HIDDEN: &str = r#"
for name in ["/workspace/users/other", "/workspace/users/other/draft", "/workspace/users/../users/other/draft", "/workspace/key"]:
    tries("read " + name, lambda: open(name).read())
    tries("list " + name, lambda: os.listdir(name))
    tries("look at " + name, lambda: os.stat(name))
    tries("enter " + name, lambda: os.chdir(name))
for name in ["/workspace/users/new", "/workspace/users/me/new"]:
    tries("make " + name, lambda: os.mkdir(name))
"#;
const BESIDE: &str = r#"
import os
print(sorted(os.listdir("/workspace")), sorted(os.listdir("/workspace/users")), open("/workspace/users/me/draft").read(), open("/workspace/note").read(), os.path.exists("/masked"))
"#;

/// Answers each line, a path in the workspace, with the content of the file.
const READER: &str = r#"while read -r at; do cat "/workspace/$at" 2>/dev/null || printf none; echo; done"#;

#[tokio::test]
async fn hidden_files_do_not_exist_and_those_beside_them_stay() {
    let cage = namespaced(|_| {});
    let latest = cage.latest();
    for (at, content) in
        [("users/me/draft", "mine"), ("users/other/draft", "theirs"), ("key", "secret"), ("note", "all")]
    {
        fs::create_dir_all(latest.join(at).parent().unwrap()).unwrap();
        fs::write(latest.join(at), content).unwrap();
    }
    let whole = |words: &[&str]| Exec {
        folder: FilePath::root(),
        root: FilePath::root(),
        hidden: ["/key", "/users/gone", "/users/other"].map(|path| path.parse().unwrap()).to_vec(),
        ..cage.command(words)
    };
    let did = cage.run(whole(&[PYTHON, "-I", "-c", &format!("{PRELUDE}{HIDDEN}")])).await;
    let found = outcomes(&did.output);
    assert_eq!((found.len(), did.end.code), (18, Some(0)), "{did:?}");
    for (name, outcome) in found {
        let expected = if name.starts_with("make") { ["EROFS", "EACCES"] } else { ["ENOENT", "ENOTDIR"] };
        assert!(expected.contains(&outcome.as_str()), "{name}: {outcome}");
    }
    // Outside of the only folder that it reads, a command can ask for names and sizes: what is hidden has none.
    let narrow = Exec { root: "/inside".parse().unwrap(), folder: "/inside".parse().unwrap(), ..whole(&[]) };
    let script = format!(
        "{PRELUDE}tries('look', lambda: os.stat('/workspace/users/other/draft'))\ntries('beside', lambda: os.stat('/workspace/note'))"
    );
    let did = cage.run(Exec { words: [PYTHON, "-I", "-c", &script].map(String::from).to_vec(), ..narrow }).await;
    assert_eq!(did.output, "look ENOENT\nbeside DONE\n", "{did:?}");
    let did = cage.run(whole(&[PYTHON, "-I", "-c", BESIDE])).await;
    assert_eq!(did.output, "['inside', 'note', 'outside', 'users'] ['me'] mine all False\n", "{did:?}");
}

#[tokio::test]
async fn files_hidden_from_a_program_that_runs_stay_hidden_when_they_come_later() {
    let cage = namespaced(|_| {});
    let (latest, words) = (cage.latest(), ["/bin/sh", "-c", READER].map(String::from).to_vec());
    fs::write(latest.join("note"), "all").unwrap();
    for (file, content) in [("users/me/draft", "mine"), ("users/joined/draft", "theirs")] {
        fs::create_dir_all(latest.join(file).parent().unwrap()).unwrap();
        fs::write(latest.join(file), content).unwrap();
    }
    let hidden = ["/data/deep/key", "/users/-/me"].map(|path| path.parse().unwrap()).to_vec();
    let at = WorkspaceId::from(WORKSPACE);
    assert!(cage.sandboxes().hides());
    let program = buildscale_sandbox::program(words, BTreeMap::new(), FilePath::root(), hidden, false);
    let mut running = cage.sandboxes().start_program(at, program).await.unwrap();
    let mut lines = BufReader::new(running.output).lines();
    let mut read = async |path: &str| {
        running.input.write_all(format!("{path}\n").as_bytes()).await.unwrap();
        lines.next_line().await.unwrap().unwrap()
    };
    assert_eq!(read("note").await, "all");
    assert_eq!(read("users/me/draft").await, "mine");
    assert_eq!(read("users/joined/draft").await, "none", "this home was made before the start, and after the look-up");
    assert!(!(running.is_outdated)());
    for (file, content) in [("users/other/draft", "theirs"), ("data/deep/key", "secret"), ("inside/new", "here")] {
        fs::create_dir_all(latest.join(file).parent().unwrap()).unwrap();
        fs::write(latest.join(file), content).unwrap();
    }
    assert_eq!(read("users/other/draft").await, "none");
    assert_eq!(read("data/deep/key").await, "none");
    assert_eq!(read("inside/new").await, "here", "a folder in which nothing is hidden is as it is now");
    assert!((running.is_outdated)(), "the folder around the homes has a new entry");
}
