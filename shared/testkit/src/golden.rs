//! Golden files: the data of each version, kept for ever, and read by every version after it.
//!
//! A shape that is persisted, or that one process sends another, has a folder `tests/golden/<shape>` in its crate, with a file `<n>.json`
//! for each format that it ever had. The newest is the format of this version. Those before it are read, and this version's form of them is
//! in `<n>.expected.json` beside them.
//!
//! A test that fails here says that a shape has changed. docs/architecture/upgrading.md describes the steps. After them, `BLESS=1` adds the
//! new file and keeps the old one as one that has to be read; it changes no file that was released.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Checks that `today`, one value of a shape or a list of all its kinds, serializes to the newest golden file; that this file is read to
/// the same value; and that every older one is read to its expected value. `root` is the crate's folder. Returns the number of the newest
/// file.
///
/// # Panics
/// When a check fails, with the differences.
#[track_caller]
pub fn check<T: Serialize + DeserializeOwned>(root: &str, shape: &str, today: &T) -> u32 {
    let folder = Path::new(root).join("tests/golden").join(shape);
    hold(&folder, today, std::env::var_os("BLESS").is_some())
}

#[track_caller]
fn hold<T: Serialize + DeserializeOwned>(folder: &Path, today: &T, bless: bool) -> u32 {
    let written = json(today);
    let mut newest = (1..).take_while(|n| file(folder, *n).exists()).last().unwrap_or(0);
    if bless && (newest == 0 || load(&file(folder, newest)) != written) {
        if newest > 0 {
            store(&expected(folder, newest), &again::<T>(&file(folder, newest)));
        }
        newest += 1;
        store(&file(folder, newest), &written);
    }
    assert!(newest > 0, "{} has no golden file: BLESS=1 makes one", folder.display());
    let golden = file(folder, newest);
    assert!(
        load(&golden) == written,
        "the format in {} has changed: see docs/architecture/upgrading.md.\n{}",
        golden.display(),
        difference(&load(&golden), &written, "")
    );
    assert!(again::<T>(&golden) == written, "{} is not read to the value that was written", golden.display());
    for n in 1..newest {
        let (read, wanted) = (again::<T>(&file(folder, n)), load(&expected(folder, n)));
        assert!(
            read == wanted,
            "{} is read to something else than it was:\n{}",
            file(folder, n).display(),
            difference(&wanted, &read, "")
        );
    }
    newest
}

/// Reads a file, and serializes the value in this version's format.
#[track_caller]
fn again<T: Serialize + DeserializeOwned>(path: &Path) -> Value {
    let value = serde_json::from_str::<T>(&text(path));
    json(&value.unwrap_or_else(|error| panic!("{} cannot be read: {error}", path.display())))
}

fn file(folder: &Path, n: u32) -> PathBuf {
    folder.join(format!("{n}.json"))
}

fn expected(folder: &Path, n: u32) -> PathBuf {
    folder.join(format!("{n}.expected.json"))
}

#[track_caller]
fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("persisted data is JSON")
}

#[track_caller]
fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[track_caller]
fn load(path: &Path) -> Value {
    serde_json::from_str(&text(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[track_caller]
fn store(path: &Path, value: &Value) {
    let written = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let written = written.and_then(|()| std::fs::write(path, format!("{value:#}\n")));
    written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// The differences of two values, one line per place.
fn difference(golden: &Value, today: &Value, at: &str) -> String {
    match (golden, today) {
        (Value::Object(golden), Value::Object(today)) => {
            let names = golden.keys().chain(today.keys().filter(|name| !golden.contains_key(*name)));
            let of = |name: &String| {
                let (one, other) = (golden.get(name).unwrap_or(&Value::Null), today.get(name).unwrap_or(&Value::Null));
                difference(one, other, &format!("{at}/{name}"))
            };
            names.map(of).collect()
        }
        (Value::Array(golden), Value::Array(today)) if golden.len() == today.len() => {
            let pairs = golden.iter().zip(today).enumerate();
            pairs.map(|(n, (one, other))| difference(one, other, &format!("{at}/{n}"))).collect()
        }
        _ if golden == today => String::new(),
        _ => format!("{at}: {golden} became {today}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Serialize, Deserialize)]
    struct Second {
        name: String,
        #[serde(default)]
        age: u32,
    }

    fn held(files: &[(&str, Value)]) -> bool {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, value) in files {
            store(&folder.path().join(name), value);
        }
        let hold = || hold(folder.path(), &today(), false);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(hold)).is_ok()
    }

    fn today() -> Second {
        Second { name: "ann".into(), age: 7 }
    }

    #[test]
    fn the_old_file_stays_beside_the_new_one() {
        let folder = tempfile::tempdir().expect("a folder");
        store(&folder.path().join("1.json"), &json!({ "name": "ann" }));
        for _ in 0..2 {
            assert_eq!(hold(folder.path(), &today(), true), 2);
        }
        assert_eq!(load(&folder.path().join("1.json")), json!({ "name": "ann" }));
        assert_eq!(load(&folder.path().join("1.expected.json")), json!({ "name": "ann", "age": 0 }));
    }

    #[test]
    fn a_changed_format_is_noticed() {
        let (first, second) = (("1.json", json!({ "name": "ann" })), ("2.json", json!({ "name": "ann", "age": 7 })));
        let read = ("1.expected.json", json!({ "name": "ann", "age": 0 }));
        assert!(held(&[first.clone(), read.clone(), second.clone()]));
        assert!(!held(&[]), "there has to be one");
        assert!(!held(std::slice::from_ref(&first)), "it is written otherwise");
        assert!(!held(&[first, ("1.expected.json", json!({ "name": "ann", "age": 1 })), second.clone()]));
        assert!(!held(&[("1.json", json!({ "called": "ann" })), read, second]), "it cannot be read");
        let more = json!({ "name": "ann", "age": 7, "gone": true });
        assert!(!held(&[("1.json", more)]), "a field is lost");
    }
}
