//! The store: a namespace is a folder below `/store`, and an item a JSON file in it.

use domain::{Error, FilePath};

/// The folder of the store.
const ROOT: &str = "/store";
/// The end of an item's name.
const JSON: &str = ".json";
/// The longest key, in bytes.
const MAX_KEY: usize = 200;

/// An item by its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its namespace.
    pub namespace: Vec<String>,
    /// Its key.
    pub key: String,
}

/// The folder of a namespace.
///
/// # Errors
/// `INVALID_ARGUMENT` for a label that is no name of a folder.
pub fn folder(namespace: &[String]) -> Result<FilePath, Error> {
    let mut path = FilePath::parse(ROOT).map_err(|error| Error::invalid("namespace", error.to_string()))?;
    for label in namespace {
        if label.is_empty() || label.contains(['/', '.']) {
            let shown: String = label.chars().take(64).collect();
            return Err(Error::invalid("namespace", format!("{shown:?} is no label of a namespace"))
                .hint("labels are names of folders without a dot"));
        }
        path = path.join(label).map_err(|error| Error::invalid("namespace", error.to_string()))?;
    }
    Ok(path)
}

/// The file of an item.
///
/// # Errors
/// `INVALID_ARGUMENT` for a namespace as for [`folder`], an empty one, or a key that is no name of a file.
pub fn item(namespace: &[String], key: &str) -> Result<FilePath, Error> {
    if namespace.is_empty() {
        return Err(Error::invalid("namespace", "a namespace has at least one label"));
    }
    if key.is_empty() || key.len() > MAX_KEY || key.contains('/') {
        return Err(Error::invalid("key", format!("a key is a name of a file: 1 to {MAX_KEY} bytes without a slash")));
    }
    let path = folder(namespace)?.join(&format!("{key}{JSON}"));
    path.map_err(|error| Error::invalid("key", error.to_string()))
}

impl Item {
    /// The item of a file; none for a file that is none.
    pub fn of(path: &FilePath) -> Option<Self> {
        let key = path.name().strip_suffix(JSON)?.to_owned();
        let namespace = namespace_of(&path.parent()?)?;
        (!namespace.is_empty()).then_some(Self { namespace, key })
    }
}

/// The namespace of a folder; none for one outside of the store.
pub fn namespace_of(folder: &FilePath) -> Option<Vec<String>> {
    let rest = folder.as_str().strip_prefix(ROOT)?;
    let is_inside = rest.is_empty() || rest.starts_with('/');
    is_inside.then(|| rest.split('/').filter(|label| !label.is_empty()).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn an_item_is_found_by_its_file() {
        let namespace = vec!["users".to_owned(), "ann".to_owned()];
        let path = item(&namespace, "likes").unwrap();
        assert_eq!(path.as_str(), "/store/users/ann/likes.json");
        assert_eq!(Item::of(&path), Some(Item { namespace, key: "likes".into() }));
        for (namespace, key) in
            [(vec![], "k"), (vec!["a/b".into()], "k"), (vec![String::new()], "k"), (vec!["a".into()], "x/../y")]
        {
            item(&namespace, key).unwrap_err();
        }
    }
}
