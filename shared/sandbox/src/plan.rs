//! What a command comes to on this machine: checked, before anything is begun.

use crate::run::Refusal;
use domain::FilePath;
use ports::Exec;
use rustix::{
    fs::{Mode, OFlags, open, openat},
    io::Errno,
};
use std::{
    fs,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::PermissionsExt,
    },
    path::{Path, PathBuf},
};

/// Where programs are looked for.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A command that makes sense here.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The program's file, by an absolute path.
    pub program: PathBuf,
    /// The program's name as it was given, and its arguments.
    pub words: Vec<String>,
    /// The folder that it runs in, opened: whatever is put in its place meanwhile is not entered.
    pub folder: OwnedFd,
    /// The only folder of the workspace that it can read, opened.
    pub root: OwnedFd,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
}

impl Plan {
    /// With the workspace's files in `latest`, and `scratch` to write to.
    pub fn new(command: &Exec, latest: &Path, scratch: &Path) -> Result<Self, Refusal> {
        let refused = |reason: String| Err(Refusal::Refused(reason));
        let Some(name) = command.words.first().filter(|name| !name.is_empty()) else {
            return refused("a command needs a program".into());
        };
        if command.words.iter().chain(command.env.values()).any(|text| text.contains('\0')) {
            return refused("no word and no variable of a command can have a NUL in it".into());
        }
        if let Some(bad) = command.env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
            return refused(format!("{bad:?} is no name of a variable"));
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
        let path = command.env.get("PATH").map_or(PATH, String::as_str);
        let folder = latest.join(command.folder.relative());
        Ok(Self {
            program: find(name, path, &folder)
                .ok_or_else(|| Refusal::Refused(format!("there is no program {name:?}")))?,
            words: command.words.clone(),
            folder: open_folder(latest, &command.folder)?,
            root: open_folder(latest, &command.root)?,
            env,
        })
    }

    /// The opened folder, by a path that leads there and nowhere else in this process and in what it is about to become.
    pub fn folder_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd()))
    }
}

/// Opens a folder of a workspace, through no link.
pub(crate) fn open_folder(latest: &Path, path: &FilePath) -> Result<OwnedFd, Refusal> {
    let opened = path.names().try_fold(open(latest, FOLDER, Mode::empty()), |above, name| match above {
        Ok(above) => Ok(openat(&above, name, FOLDER, Mode::empty())),
        Err(error) => Err(error),
    });
    match opened.and_then(|last| last) {
        Ok(folder) => Ok(folder),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Err(Refusal::Refused(format!("there is no folder {path}"))),
        Err(error) => Err(Refusal::Failed(format!("{path} cannot be opened: {error}"))),
    }
}

/// The file of a program: a path is one, from the folder on; a name is looked for.
fn find(name: &str, path: &str, folder: &Path) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(folder.join(name)).filter(|file| file.exists());
    }
    let runs = |file: &PathBuf| fs::metadata(file).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0);
    path.split(':').filter(|place| place.starts_with('/')).map(|place| Path::new(place).join(name)).find(runs)
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
            env: BTreeMap::new(),
            stdin: None,
            timeout: Duration::from_secs(1),
            network: false,
            max_output: 100,
        }
    }

    fn refusal(command: &Exec, latest: &Path) -> String {
        Plan::new(command, latest, Path::new("/scratch")).unwrap_err().to_string()
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
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
    fn the_environment_is_what_every_command_gets_and_what_was_asked_for() {
        let latest = tempfile::tempdir().unwrap();
        let mut command = exec(&["true"]);
        command.env = BTreeMap::from([("HOME".into(), "/elsewhere".into()), ("X".into(), "=1".into())]);
        let plan = Plan::new(&command, latest.path(), Path::new("/scratch")).unwrap();
        let env: Vec<String> = plan.env.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            env,
            ["LANG=C.UTF-8", &format!("PATH={PATH}"), "TMPDIR=/scratch", "HOME=/elsewhere", "X==1"].map(String::from)
        );
        assert!(plan.program.is_absolute());
    }
}
