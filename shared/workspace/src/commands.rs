//! The files that a command sees. A command reads what its sandbox shows it, and no policy stands between: so a command runs only where its party may
//! read all of that.

use crate::{Result, Workspace, party::Party, sandbox_mirror::SANDBOX};
use access::{Action, Subject, home};
use domain::{Code, Error, FilePath};

/// The folder of the homes.
const HOMES: &str = "/users";
/// How many files are looked at one by one where policies look at names.
const MOST_NAMED: usize = 100_000;

impl Workspace {
    /// Refuses a command that would see files below `root` which this party may not read. `mirrored`: it runs beside a mirror, which has only the files that
    /// everybody may read, and not beside `latest/`.
    ///
    /// # Errors
    /// `FORBIDDEN`, without a word on which files those are; else those of [`Workspace`].
    pub async fn demand_commands(&self, root: &FilePath, mirrored: bool) -> Result<()> {
        let Party::Subject(subject, _) = self.party() else { return Ok(()) };
        let everybody = Subject::Service { name: SANDBOX };
        let all = self.unlimited("the files that a command would see");
        let is_secret = |path: &FilePath| {
            !self.may_read(path) && (!mirrored || self.explain(&everybody, Action::Read, path).is_permit())
        };
        if self.policies_in_force().looks_at_names() {
            let (infos, whole) = all.list_tree(root, MOST_NAMED).await?;
            return match whole && !infos.iter().any(|info| is_secret(&info.path)) {
                true => Ok(()),
                false => Err(refused(root)),
            };
        }
        let named = self.policies_in_force().named_below(root);
        for path in named.into_iter().chain([root.clone()]) {
            let inside = path.join("-")?;
            if (is_secret(&path) || is_secret(&inside)) && all.walk(&path).await?.found.is_some() {
                return Err(refused(root));
            }
        }
        if mirrored {
            return Ok(());
        }
        self.demand_homes(&all, subject, root).await
    }

    /// The same for the homes of others. One that its person has not touched has nothing to be hidden.
    async fn demand_homes(&self, all: &Self, subject: &Subject, root: &FilePath) -> Result<()> {
        let homes = FilePath::parse(HOMES)?;
        if !homes.is_within(root) || subject.person().is_none() {
            return Ok(());
        }
        for name in all.folders_in(&homes).await? {
            let at = homes.join(&name)?;
            let is_own = subject.person().is_some_and(|person| home(person) == at.as_str());
            if is_own || self.may_read(&at) {
                continue;
            }
            let folder = all.folder_at(&at).await?;
            if !all.is_untouched_home(folder).await? {
                return Err(refused(root));
            }
        }
        Ok(())
    }
}

fn refused(root: &FilePath) -> Error {
    Error::new(
        Code::Forbidden,
        format!("a command in {root} would see files of this workspace that are private to others"),
    )
    .hint("run it in a folder of the project, or on a machine with a mirror of its own")
    .detail("action", Action::Execute.as_str())
    .detail("path", root.as_str())
}
