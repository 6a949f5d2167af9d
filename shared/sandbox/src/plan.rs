//! The checked form of a command on this machine, before anything is begun.

use crate::run::Refusal;
use domain::FilePath;
use ports::{Exec, MOST_KEEPS};
use rustix::{
    fs::{Mode, OFlags, open, openat},
    io::Errno,
};
use std::{
    fs,
    os::{fd::OwnedFd, unix::fs::PermissionsExt},
    path::{Path, PathBuf},
};

/// The search path for programs.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Opens a folder, and no link to one.
pub(crate) const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a file, and no link to one. Without `NONBLOCK` a pipe in its place would be waited for.
pub(crate) const FILE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A command that makes sense here.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The program's name as it was given, and its arguments.
    pub words: Vec<String>,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
}

impl Plan {
    /// With `scratch` to write to.
    ///
    /// # Errors
    /// [`Refusal::Refused`] for a command without a program, a word with a NUL, a variable's name that is none, more to keep than is kept, or a
    /// folder that is not within the root; [`Refusal::Failed`] when the scratch folder's name is not UTF-8.
    pub fn new(command: &Exec, scratch: &Path) -> Result<Self, Refusal> {
        let refused = |reason: String| Err(Refusal::Refused(reason));
        if command.words.first().is_none_or(String::is_empty) {
            return refused("a command needs a program".into());
        }
        if command.words.iter().chain(command.env.values()).any(|text| text.contains('\0')) {
            return refused("no word and no variable of a command can have a NUL in it".into());
        }
        if let Some(bad) = command.env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
            return refused(format!("{bad:?} is no name of a variable"));
        }
        if command.keep.len() > MOST_KEEPS {
            return refused(format!("of a command at most {MOST_KEEPS} files and folders are kept"));
        }
        if !command.folder.is_within(&command.root) {
            return refused(format!("{} is not within {}, and nothing else can be read", command.folder, command.root));
        }
        let scratch =
            scratch.to_str().ok_or_else(|| Refusal::Failed("the scratch folder has no name in UTF-8".into()))?;
        let mut env: Vec<(String, String)> =
            [("HOME", scratch), ("LANG", "C.UTF-8"), ("PATH", PATH), ("TMPDIR", scratch)]
                .into_iter()
                .filter(|(name, _)| !command.env.contains_key(*name))
                .map(|(name, value)| (name.into(), value.into()))
                .collect();
        env.extend(command.env.clone());
        Ok(Self { words: command.words.clone(), env })
    }
}

/// Opens a folder below an open one, name by name and through no link.
pub(crate) fn open_below(root: OwnedFd, path: &FilePath) -> Result<OwnedFd, Errno> {
    path.names().try_fold(root, |above, name| openat(&above, name, FOLDER, Mode::empty()))
}

/// Opens a folder of a workspace, through no link.
pub(crate) fn open_folder(latest: &Path, path: &FilePath) -> Result<OwnedFd, Refusal> {
    match open(latest, FOLDER, Mode::empty()).and_then(|root| open_below(root, path)) {
        Ok(folder) => Ok(folder),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Err(Refusal::Refused(format!("there is no folder {path}"))),
        Err(error) => Err(Refusal::Failed(format!("{path} cannot be opened: {error}"))),
    }
}

/// The file of a command's program: a path is one, from the folder on; a name is looked for.
pub(crate) fn find(words: &[String], env: &[(String, String)], folder: &Path) -> Result<PathBuf, Refusal> {
    let name = words.first().map(String::as_str).unwrap_or_default();
    let path = env.iter().find(|(variable, _)| variable == "PATH").map_or(PATH, |(_, value)| value);
    let runs = |file: &PathBuf| fs::metadata(file).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0);
    let found = if name.contains('/') {
        Some(folder.join(name)).filter(|file| file.exists())
    } else {
        path.split(':').filter(|place| place.starts_with('/')).map(|place| Path::new(place).join(name)).find(runs)
    };
    found.ok_or_else(|| Refusal::Refused(format!("there is no program {name:?}")))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use domain::CallId;
    use std::{collections::BTreeMap, os::unix::fs::symlink, time::Duration};
    use uuid::Uuid;

    fn exec(words: &[&str]) -> Exec {
        Exec {
            call: CallId::from(Uuid::nil()),
            grant: ports::Grant::default(),
            words: words.iter().map(|word| (*word).into()).collect(),
            folder: FilePath::root(),
            root: FilePath::root(),
            hidden: Vec::new(),
            env: BTreeMap::new(),
            stdin: None,
            timeout: Duration::from_secs(1),
            network: false,
            max_output: 100,
            keep: Vec::new(),
        }
    }

    fn refusal(command: &Exec, latest: &Path) -> String {
        let refused = Plan::new(command, Path::new("/scratch")).and_then(|plan| {
            open_folder(latest, &command.folder)?;
            find(&plan.words, &plan.env, &latest.join(command.folder.relative()))
        });
        refused.unwrap_err().to_string()
    }

    #[test]
    fn a_senseless_command_is_refused() {
        let latest = tempfile::tempdir().unwrap();
        let latest = latest.path();
        assert_eq!(refusal(&exec(&[]), latest), "a command needs a program");
        assert_eq!(refusal(&exec(&[""]), latest), "a command needs a program");
        assert_eq!(refusal(&exec(&["no-such-program"]), latest), "there is no program \"no-such-program\"");
        assert_eq!(refusal(&exec(&["./absent"]), latest), "there is no program \"./absent\"");
        assert!(refusal(&exec(&["true", "\0"]), latest).contains("NUL"));
        for name in ["", "A=B"] {
            let mut command = exec(&["true"]);
            command.env.insert(name.into(), "x".into());
            assert!(refusal(&command, latest).contains("no name of a variable"), "{name}");
        }
        let greedy = Exec { keep: vec![FilePath::root(); MOST_KEEPS + 1], ..exec(&["true"]) };
        assert_eq!(refusal(&greedy, latest), "of a command at most 20 files and folders are kept");
        let inside = Exec { folder: "/a".parse().unwrap(), root: "/b".parse().unwrap(), ..exec(&["true"]) };
        assert_eq!(refusal(&inside, latest), "/a is not within /b, and nothing else can be read");
        let absent = Exec { folder: "/a".parse().unwrap(), ..exec(&["true"]) };
        assert_eq!(refusal(&absent, latest), "there is no folder /a");
    }

    #[test]
    fn no_folder_is_entered_through_a_link() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("other/x")).unwrap();
        fs::create_dir_all(home.path().join("latest/a")).unwrap();
        let latest = home.path().join("latest");
        symlink(home.path().join("other"), latest.join("a/link")).unwrap();
        for path in ["/a/link", "/a/link/x"] {
            let command = Exec { folder: path.parse().unwrap(), ..exec(&["true"]) };
            assert_eq!(refusal(&command, &latest), format!("there is no folder {path}"));
        }
    }

    #[test]
    fn the_environment_has_the_common_variables_and_the_requested_ones() {
        let mut command = exec(&["true"]);
        command.env = BTreeMap::from([("HOME".into(), "/elsewhere".into()), ("X".into(), "=1".into())]);
        let plan = Plan::new(&command, Path::new("/scratch")).unwrap();
        let env: Vec<String> = plan.env.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            env,
            ["LANG=C.UTF-8", &format!("PATH={PATH}"), "TMPDIR=/scratch", "HOME=/elsewhere", "X==1"].map(String::from)
        );
    }
}
