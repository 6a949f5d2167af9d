//! Lists the files that `scripts/console` left in `dist/`, with their compressed forms, for the crate to embed. Without any the list is
//! empty: a build needs no Node.js.
#![expect(clippy::disallowed_macros, reason = "cargo reads the printed lines")]

use std::{
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    // The folder is in the repository, so cargo looks at its files instead of building anew each time because it is missing.
    println!("cargo::rerun-if-changed=dist");
    let dist = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("dist");
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    let mut files = Vec::new();
    collect(&dist, &mut files)?;
    files.sort();
    let copies = Copies { folder: out.join("files"), made: 0 };
    let list = listed(&dist, &files, copies)?;
    fs::write(out.join("files.rs"), list)
}

/// The files as an expression. A build that broke off has no page: nothing of it is embedded.
fn listed(dist: &Path, files: &[PathBuf], mut copies: Copies) -> io::Result<String> {
    fs::create_dir_all(&copies.folder)?;
    let mut list = String::from("&[\n");
    for file in files.iter().filter(|_| dist.join("index.html").exists()) {
        let content = fs::read(file)?;
        let mut digest = DefaultHasher::new();
        content.hash(&mut digest);
        let path = file.strip_prefix(dist).map_err(io::Error::other)?.to_string_lossy().replace('\\', "/");
        let plain = copies.include(file)?.ok_or(io::ErrorKind::NotFound)?;
        let form = |form: Option<String>| form.map_or("None".to_owned(), |form| format!("Some({form})"));
        let brotli = form(copies.include(&with(file, "br"))?);
        let gzip = form(copies.include(&with(file, "gz"))?);
        list += &format!(
            "    File {{ path: {:?}, etag: \"\\\"{:016x}\\\"\", plain: {plain}, brotli: {brotli}, gzip: {gzip} }},\n",
            format!("/{path}"),
            digest.finish(),
        );
    }
    Ok(list + "]\n")
}

/// Copies of the files for the compiler: `scripts/console` may run meanwhile, and replaces them.
struct Copies {
    folder: PathBuf,
    made: usize,
}

impl Copies {
    /// The expression for the content of `file`, if it is there.
    fn include(&mut self, file: &Path) -> io::Result<Option<String>> {
        if !file.exists() {
            return Ok(None);
        }
        self.made += 1;
        let copy = self.folder.join(self.made.to_string());
        fs::copy(file, &copy)?;
        Ok(Some(format!("include_bytes!({copy:?})")))
    }
}

/// The path of a compressed form, which is there only where it is shorter.
fn with(file: &Path, extension: &str) -> PathBuf {
    PathBuf::from(format!("{}.{extension}", file.display()))
}

/// All files below `folder` that are served under their own name.
fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let is_compressed = path.extension().is_some_and(|extension| extension == "br" || extension == "gz");
        match path.is_dir() {
            true => collect(&path, found)?,
            false if hidden || is_compressed => {}
            false => found.push(path),
        }
    }
    Ok(())
}
