//! Properties of every text that is parsed as a path.
#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_domain::FilePath;
use proptest::prelude::*;
use std::path::{Component, Path};

/// Texts that look like paths, with everything in them that paths go wrong by.
fn texts() -> impl Strategy<Value = String> {
    let part =
        prop_oneof!["[a-c]{1,3}", "\\.{1,3}", "", "é+", ".{0,8}", "a{250,260}", "\\PC{0,4}", Just("..\0".to_owned())];
    let path = (any::<bool>(), proptest::collection::vec(part, 0..8))
        .prop_map(|(absolute, parts)| format!("{}{}", if absolute { "/" } else { "" }, parts.join("/")));
    prop_oneof![path, any::<String>()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parsing_never_panics_and_is_idempotent(text in texts()) {
        if let Ok(path) = FilePath::parse(&text) {
            prop_assert_eq!(FilePath::parse(path.as_str()), Ok(path.clone()));
            prop_assert!(path.as_str().starts_with('/') && path.as_str().len() <= 4096);
            prop_assert!(!path.as_str().chars().any(char::is_control));
            prop_assert!(path.names().all(|name| (1..=255).contains(&name.len()) && name != "." && name != ".."));
        }
    }

    #[test]
    fn joined_under_a_folder_it_never_leads_out(text in texts()) {
        if let Ok(path) = FilePath::parse(&text) {
            let on_disk = Path::new("/volume/latest").join(path.relative());
            prop_assert!(on_disk.starts_with("/volume/latest"));
            prop_assert!(Path::new(path.relative()).components().all(|part| matches!(part, Component::Normal(_))));
        }
    }

    #[test]
    fn parents_and_names_put_together_are_the_path(text in texts()) {
        if let Ok(path) = FilePath::parse(&text) {
            match path.parent() {
                None => prop_assert!(path.is_root()),
                Some(parent) => {
                    prop_assert_eq!(parent.join(path.name()).unwrap(), path.clone());
                    prop_assert!(path.is_within(&parent) && !parent.is_within(&path));
                }
            }
        }
    }
}
