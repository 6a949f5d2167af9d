//! Files of the organizer.

use crate::text;
use domain::FilePath;
use organizer::{Entity, EntityKind, front_matter};
use serde_json::Map;

/// A file as each kind of entity.
pub(crate) fn entities(bytes: &[u8]) {
    let text = text(bytes);
    let _ = front_matter::read(&text);
    for kind in EntityKind::ALL {
        let _ = Entity::read(kind, &text, "Name").row(&FilePath::root());
        let _ = Entity::update(kind, &text, &Map::new());
    }
}
