//! Secrets of this machine: variables of the environment, and files of one folder.

use async_trait::async_trait;
use ports::{Error, Recipient, Result, Secret, SecretRef, Secrets};
use std::{
    fmt, io,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

/// The longest secret, in bytes.
const MAX: u64 = 64 * 1024;

type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The environment of the process, and a folder with one file per secret, as container platforms mount it.
///
/// It gives any variable, also those of the hub itself: a host puts its own rule in front of what flows refer to. Files are read from the
/// folder alone, for any reference.
#[derive(Clone)]
pub struct LocalSecrets {
    folder: Option<PathBuf>,
    lookup: Lookup,
}

impl fmt::Debug for LocalSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalSecrets").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl LocalSecrets {
    /// With the files of `folder`, or with none.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, lookup: Arc::new(|name| std::env::var(name).ok()) }
    }

    /// With other variables than those of the process.
    #[must_use]
    pub fn with_variables(self, lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { lookup: Arc::new(lookup), ..self }
    }

    /// All secrets of the folder, under any name, so that none of them is written anywhere. Blocks while it reads.
    pub fn of_folder(&self) -> Vec<Secret> {
        let mut found = Vec::new();
        let mut folders: Vec<PathBuf> = self.folder.iter().cloned().collect();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                // The target of a link counts: container platforms mount secrets as links.
                match std::fs::metadata(entry.path()) {
                    Ok(about) if about.is_file() && about.len() <= MAX => {
                        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
                        found.push(Secret::new(text.trim()));
                    }
                    // A linked folder may lead back to its own parent.
                    Ok(about) if about.is_dir() && entry.file_type().is_ok_and(|kind| kind.is_dir()) => {
                        folders.push(entry.path());
                    }
                    _ => {}
                }
            }
        }
        found
    }

    async fn file(&self, reference: &SecretRef, path: &str) -> Result<Option<String>> {
        let Some(folder) = self.folder.clone() else {
            return Err(refused(reference, "this host has no folder of secrets"));
        };
        let (path, about) = (PathBuf::from(path), reference.clone());
        let read = tokio::task::spawn_blocking(move || read(&folder, &path, &about)).await;
        read.map_err(|error| Error::unavailable("the folder of secrets", error))?
    }
}

#[async_trait]
impl Secrets for LocalSecrets {
    async fn get(&self, reference: &SecretRef, _: Recipient<'_>) -> Result<Option<Secret>> {
        let text = match reference {
            SecretRef::Env(name) => (self.lookup)(name),
            SecretRef::File(path) => self.file(reference, path).await?,
            SecretRef::Named(name) => self.file(reference, name).await?,
        };
        let text = text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        Ok(text.map(Secret::new))
    }
}

fn refused(reference: &SecretRef, why: &str) -> Error {
    Error::Invalid(format!("{reference} cannot be used: {why}"))
}

fn read(folder: &Path, path: &Path, reference: &SecretRef) -> Result<Option<String>> {
    let outside = || refused(reference, "it is not in the folder of secrets");
    let broken = |error: io::Error| Error::unavailable("the folder of secrets", error);
    if path.components().any(|part| matches!(part, Component::ParentDir | Component::Prefix(_))) {
        return Err(outside());
    }
    let folder = match folder.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        folder => folder.map_err(broken)?,
    };
    // An absolute path replaces the folder; the check below is on its target, links included.
    let path = match folder.join(path).canonicalize() {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        path => path.map_err(broken)?,
    };
    if !path.starts_with(&folder) {
        return Err(outside());
    }
    let about = std::fs::metadata(&path).map_err(broken)?;
    if !about.is_file() || about.len() > MAX {
        return Err(refused(reference, "it is no file of at most 64 KiB"));
    }
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(refused(reference, "it is no text")),
        Err(error) => Err(broken(error)),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn recipient() -> Recipient<'static> {
        Recipient {
            workspace: domain::WorkspaceId::from_key("secrets", "tests"),
            address: ports::Address::Url("https://a.example"),
        }
    }

    fn secrets(folder: Option<&Path>) -> LocalSecrets {
        let variables = |name: &str| match name {
            "A_KEY" => Some(" from-the-environment\n".into()),
            "EMPTY" => Some("  ".into()),
            _ => None,
        };
        LocalSecrets::new(folder.map(Path::to_owned)).with_variables(variables)
    }

    async fn found(secrets: &LocalSecrets, reference: SecretRef) -> Option<String> {
        secrets.get(&reference, recipient()).await.unwrap().map(|secret| secret.expose().to_owned())
    }

    #[tokio::test]
    async fn s10_11_secrets_come_from_the_environment_and_from_files() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), "from-a-file\n").unwrap();
        let secrets = secrets(Some(folder.path()));
        assert_eq!(found(&secrets, SecretRef::Env("A_KEY".into())).await.unwrap(), "from-the-environment");
        assert_eq!(found(&secrets, SecretRef::Env("EMPTY".into())).await, None);
        assert_eq!(found(&secrets, SecretRef::Env("MISSING".into())).await, None);
        assert_eq!(found(&secrets, SecretRef::Named("token".into())).await.unwrap(), "from-a-file");
        let absolute = folder.path().join("token").to_string_lossy().into_owned();
        assert_eq!(found(&secrets, SecretRef::File(absolute)).await.unwrap(), "from-a-file");
        assert_eq!(found(&secrets, SecretRef::File("missing/token".into())).await, None);
    }

    #[test]
    fn s10_11_all_secrets_of_the_folder_are_known_under_any_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("..data/inner")).unwrap();
        std::fs::write(folder.path().join("..data/inner/token"), "from-inside\n").unwrap();
        std::os::unix::fs::symlink("..data/inner/token", folder.path().join("token")).unwrap();
        std::os::unix::fs::symlink(".", folder.path().join("again")).unwrap();
        std::fs::write(folder.path().join("binary"), [0xff, 0xfe]).unwrap();
        let mut found = secrets(Some(folder.path())).of_folder();
        found.retain(|secret| !secret.expose().is_empty());
        assert_eq!(found.iter().map(Secret::expose).collect::<Vec<_>>(), ["from-inside", "from-inside"]);
        assert!(secrets(None).of_folder().is_empty());
    }

    #[tokio::test]
    async fn s10_11_a_flow_does_not_choose_what_of_the_host_it_reads() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = outside.path().join("private");
        std::fs::write(&file, "private-private").unwrap();
        std::os::unix::fs::symlink(&file, folder.path().join("link")).unwrap();
        std::fs::write(folder.path().join("binary"), [0xff, 0xfe]).unwrap();
        let secrets = secrets(Some(folder.path()));
        let up = format!("../{}/private", outside.path().file_name().unwrap().to_string_lossy());
        for reference in [
            SecretRef::File(file.to_string_lossy().into_owned()),
            SecretRef::File("link".into()),
            SecretRef::Named(up),
            SecretRef::Named(".".into()),
            SecretRef::Named("binary".into()),
        ] {
            let error = secrets.get(&reference, recipient()).await.unwrap_err();
            assert!(matches!(error, Error::Invalid(_)), "{reference}: {error:?}");
            assert!(!format!("{error} {error:?}").contains("private-private"));
        }
        let none = LocalSecrets::new(None);
        assert!(matches!(none.get(&SecretRef::Named("token".into()), recipient()).await, Err(Error::Invalid(_))));
    }
}
