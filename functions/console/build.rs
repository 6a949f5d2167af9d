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
    let mut files = Vec::new();
    collect(&dist, &mut files)?;
    files.sort();
    let mut list = String::from("&[\n");
    // A build that broke off has no page: nothing of it is embedded.
    for file in files.iter().filter(|_| dist.join("index.html").exists()) {
        let content = fs::read(file)?;
        let mut digest = DefaultHasher::new();
        content.hash(&mut digest);
        let path = file.strip_prefix(&dist).map_err(io::Error::other)?.to_string_lossy().replace('\\', "/");
        let (brotli, gzip) = (compressed(file, "br"), compressed(file, "gz"));
        list += &format!(
            "    File {{ path: {:?}, etag: \"\\\"{:016x}\\\"\", plain: include_bytes!({file:?}), brotli: {brotli}, gzip: {gzip} }},\n",
            format!("/{path}"),
            digest.finish(),
        );
    }
    list += "]\n";
    fs::write(PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?).join("files.rs"), list)
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

/// The expression for the compressed form of `file`, which is there only where it is shorter.
fn compressed(file: &Path, extension: &str) -> String {
    let path = format!("{}.{extension}", file.display());
    match Path::new(&path).exists() {
        true => format!("Some(include_bytes!({path:?}))"),
        false => "None".to_owned(),
    }
}
