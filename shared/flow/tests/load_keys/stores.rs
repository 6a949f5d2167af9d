//! Stores of memory.

use crate::{loaded, with};
use buildscale_flow::flow::{Bounds, StoreKind};
use std::time::Duration;

#[test]
fn s10_10_the_bounds_of_stores_are_those_of_both_manifests() {
    let flow = loaded(with(&[
        (
            "memory.yaml",
            "",
            "project_store: {type: in_memory, max_items: 5}\nglobal_store: {type: table, max_items: 7}\n",
        ),
        ("persistent_memory.yaml", "retention_days: 90", "retention_days: 90, max_items: 9"),
        ("persistent_memory.yaml", "backend: table", "backend: sqlite"),
    ]));
    let days = |days: u64| Some(Duration::from_secs(days * 24 * 3600));
    assert_eq!(flow.memory.stores[&StoreKind::Project], Bounds { max_items: Some(5), retention: days(90) });
    assert_eq!(flow.memory.stores[&StoreKind::Global], Bounds { max_items: Some(7), retention: None });
    assert_eq!(flow.memory.stores.get(&StoreKind::Task), None);
    let notes: Vec<&str> = flow.notes.iter().map(|note| note.message.as_str()).collect();
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].contains("not in `in_memory`") && notes[1].contains("not in `sqlite`"), "{notes:?}");
}
