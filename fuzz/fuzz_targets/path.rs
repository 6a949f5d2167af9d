//! Whatever text is a path stays inside the folder that it is joined under, and parses to itself.

#![no_main]

use domain::FilePath;
use libfuzzer_sys::fuzz_target;
use std::path::{Component, Path};

fuzz_target!(|text: &str| {
    let Ok(path) = FilePath::parse(text) else { return };
    assert_eq!(FilePath::parse(path.as_str()).as_ref(), Ok(&path));
    assert!(path.as_str().starts_with('/') && path.as_str().len() <= 4096);
    assert!(path.names().all(|name| !name.is_empty() && name != "." && name != ".." && name.len() <= 255));
    assert!(!path.as_str().chars().any(char::is_control));
    let relative = Path::new(path.relative());
    assert!(relative.components().all(|part| matches!(part, Component::Normal(_))));
    assert!(Path::new("/volume").join(relative).starts_with("/volume"));
    if let Some(parent) = path.parent() {
        assert!(path.is_within(&parent));
        assert_eq!(parent.join(path.name()).as_ref(), Ok(&path));
    }
});
