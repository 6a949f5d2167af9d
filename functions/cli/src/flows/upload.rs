//! A folder here becomes a flow of the workspace: `/system/flows/<name>` then has the folder's files.

use super::{Desk, local};
use crate::{
    failure::CliError,
    files::Files,
    output::{Output, counted},
    value::text,
};
use domain::Sha256;
use std::{collections::HashMap, fs, path::Path};

/// The longest file that goes along, and the most of them: a flow is manifests and a few texts.
const MAX_FILE: u64 = 1024 * 1024;
const MAX_FILES: usize = 500;

impl Desk {
    /// Puts the folder into the workspace, and gives the flow's name. Files without changes are left as they are, so a flow that did not
    /// change keeps its versions; a folder with faults is refused before anything is written.
    pub(super) async fn upload(&self, folder: &Path, out: &mut Output) -> Result<String, CliError> {
        let name = local::name_of(folder)?;
        local::sound(folder)?;
        let root = format!("/system/flows/{name}");
        let files = Files::of(&self.client, &self.workspace);
        let mut there: HashMap<String, _> =
            files.tree(&root).await?.into_iter().map(|file| (text(&file, "path").to_owned(), file)).collect();
        let mut changed = 0;
        for (path, content) in read(folder)? {
            let path = format!("{root}/{path}");
            let hash = Sha256::of(&content).to_string();
            let same = there.remove(&path).is_some_and(|file| text(&file, "sha256") == hash);
            if !same {
                files.save(&path, content, None).await?;
                changed += 1;
            }
        }
        // A manifest that is gone here must not go on working there. Other files, such as golden outputs, may stay.
        let gone = |path: &str| path.strip_prefix(&root).is_some_and(|rest| is_manifest(rest.trim_start_matches('/')));
        for (_, file) in there.iter().filter(|(path, _)| gone(path)) {
            files.remove(file).await?;
            changed += 1;
        }
        if changed > 0 {
            out.notice(format_args!("{name}: {} changed in {root}", counted(changed, "file")))?;
        }
        Ok(name)
    }

    /// Brings the golden outputs of a flow back into its folder.
    pub(super) async fn fetch_golden(&self, name: &str, folder: &Path, out: &mut Output) -> Result<(), CliError> {
        let root = format!("/system/flows/{name}");
        let files = Files::of(&self.client, &self.workspace);
        for file in files.tree(&format!("{root}/golden")).await? {
            let path = text(&file, "path");
            // Paths of the hub have no `..` in them, so every written file stays below the folder.
            let Some(rest) = path.strip_prefix(&root).filter(|rest| !rest.contains("..")) else { continue };
            let local = folder.join(rest.trim_start_matches('/'));
            let failed = |source| CliError::Local { path: local.display().to_string(), source };
            let content = files.content(path).await?;
            if fs::read(&local).is_ok_and(|old| old == content) {
                continue;
            }
            fs::create_dir_all(local.parent().unwrap_or(folder)).map_err(failed)?;
            fs::write(&local, &content).map_err(failed)?;
            out.notice(format_args!("wrote {}", local.display()))?;
        }
        Ok(())
    }
}

/// Whether the loader would read the file at this path of the folder.
fn is_manifest(path: &str) -> bool {
    let is_data = [".yaml", ".yml", ".json"].iter().any(|end| path.ends_with(end));
    is_data && (!path.contains('/') || path.starts_with("schemas/"))
}

/// The files of the folder by their paths in it, without hidden ones. Links are not followed.
fn read(folder: &Path) -> Result<Vec<(String, Vec<u8>)>, CliError> {
    let (mut files, mut open) = (Vec::new(), vec![(folder.to_path_buf(), String::new())]);
    while let Some((place, above)) = open.pop() {
        let failed = |source| CliError::Local { path: place.display().to_string(), source };
        for entry in fs::read_dir(&place).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let (path, kind) = (format!("{above}{name}"), entry.file_type().map_err(failed)?);
            if name.starts_with('.') {
                continue;
            }
            if kind.is_dir() {
                open.push((entry.path(), format!("{path}/")));
            } else if kind.is_file() {
                if entry.metadata().map_err(failed)?.len() > MAX_FILE {
                    return Err(CliError::Usage(format!("{path} is too large for a flow: 1 MiB is the most")));
                }
                files.push((path, fs::read(entry.path()).map_err(failed)?));
            }
            if files.len() > MAX_FILES {
                let place = folder.display();
                return Err(CliError::Usage(format!(
                    "{place} has more than {MAX_FILES} files: is it the folder of a flow?"
                )));
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_the_loader_reads_are_uploaded() {
        for (path, expected) in [
            ("workflow.yaml", true),
            ("schemas/a.json", true),
            ("golden/suite/a.json", false),
            ("README.md", false),
            ("prompts/a.yaml", false),
        ] {
            assert_eq!(is_manifest(path), expected, "{path}");
        }
    }

    #[test]
    fn a_folder_is_read_without_hidden_files() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        fs::create_dir_all(folder.path().join("schemas"))?;
        fs::create_dir_all(folder.path().join(".git"))?;
        for path in ["workflow.yaml", "schemas/a.json", ".git/config"] {
            fs::write(folder.path().join(path), path)?;
        }
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link"))?;
        let paths: Vec<String> = read(folder.path())?.into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["schemas/a.json", "workflow.yaml"]);
        Ok(())
    }
}
