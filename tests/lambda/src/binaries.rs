//! The binaries of a deployment.

use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
};

type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Folders with binaries: those that `BUILDSCALE_BIN_DIR` names (several as in `PATH`), say of a release, and then the one that this test
/// was built to, where each must be as new as its sources.
#[derive(Clone, Debug)]
pub struct Binaries {
    named: Vec<PathBuf>,
    built: Option<PathBuf>,
}

impl Binaries {
    /// Those that are named, and those that were built with this test.
    ///
    /// # Errors
    /// When the path of this test is unknown.
    pub fn find() -> Result<Self> {
        let named = env::var_os("BUILDSCALE_BIN_DIR").filter(|named| !named.is_empty());
        let named = named.map(|named| env::split_paths(&named).collect()).unwrap_or_default();
        // target/<profile>/deps/<test>
        let test = env::current_exe()?;
        Ok(Self { named, built: test.ancestors().nth(2).map(Into::into) })
    }

    /// Those beside this one, which Cargo has just built: `env!("CARGO_BIN_EXE_…")`.
    pub fn beside(binary: &str) -> Self {
        Self { named: Path::new(binary).parent().map(Into::into).into_iter().collect(), built: None }
    }

    /// A binary by its name: `<folder>/<name>`, or `<folder>/<name>/bootstrap`, as cargo-lambda lays them out.
    ///
    /// # Errors
    /// When it is not there, or is older than its sources.
    pub fn get(&self, name: &str) -> Result<PathBuf> {
        let places = self.named.iter().flat_map(|folder| [folder.join(name), folder.join(name).join("bootstrap")]);
        if let Some(found) = places.into_iter().find(|place| place.is_file()) {
            return Ok(found);
        }
        let built = self.built.iter().map(|folder| folder.join(name)).find(|place| place.is_file());
        let built = built.ok_or_else(|| format!("there is no {name} in {self:?}: {BUILD}"))?;
        match newer(&built) {
            Some(source) => Err(format!("{} is older than {source}: {BUILD}", built.display()).into()),
            None => Ok(built),
        }
    }
}

const BUILD: &str = "build it with `cargo build --bins`, or run scripts/test";

/// A source that changed after this was built from it. Cargo lists beside each binary its sources.
fn newer(binary: &Path) -> Option<String> {
    let changed = |path: &Path| path.metadata().and_then(|known| known.modified()).ok();
    let built = changed(binary)?;
    let made_of = std::fs::read_to_string(binary.with_extension("d")).ok()?;
    let (_, sources) = made_of.split_once(": ")?;
    sources.split_whitespace().find(|source| changed(Path::new(source)).is_some_and(|at| at > built)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, time::Duration};

    #[test]
    fn a_binary_that_is_older_than_its_sources_is_refused_where_it_was_built() -> Result {
        let folder = tempfile::tempdir()?;
        let (binary, source) = (folder.path().join("tool"), folder.path().join("main.rs"));
        for path in [&source, &binary] {
            fs::write(path, "")?;
        }
        let made_of = format!("{}: {} /gone/lib.rs\n", binary.display(), source.display());
        fs::write(folder.path().join("tool.d"), made_of)?;
        let built = Binaries { named: Vec::new(), built: Some(folder.path().into()) };
        // A person who names a folder knows its content.
        let named = Binaries { named: vec![folder.path().into()], built: None };
        let changed = fs::metadata(&source)?.modified()?;
        let set = |seconds: i32| {
            let at = if seconds < 0 { changed - Duration::from_secs(9) } else { changed + Duration::from_secs(9) };
            fs::File::options().write(true).open(&binary)?.set_modified(at)
        };
        set(1)?;
        assert_eq!(built.get("tool")?, binary);
        set(-1)?;
        let refused = built.get("tool").map_err(|error| error.to_string());
        assert!(refused.is_err_and(|why| why.contains("is older than") && why.contains("main.rs")));
        assert_eq!(named.get("tool")?, binary);
        Ok(())
    }

    #[test]
    fn a_function_is_found_as_cargo_lambda_lays_it_out() -> Result {
        let folder = tempfile::tempdir()?;
        let place = folder.path().join("buildscale-api");
        fs::create_dir(&place)?;
        fs::write(place.join("bootstrap"), "")?;
        let binaries = Binaries { named: vec!["/nowhere".into(), folder.path().into()], built: None };
        assert_eq!(binaries.get("buildscale-api")?, place.join("bootstrap"));
        assert!(binaries.get("buildscale-worker").is_err());
        Ok(())
    }
}
