//! Files that a command leaves in its scratch folder, and that are kept of it.

use bytes::Bytes;
use domain::FilePath;
use serde::{Deserialize, Serialize};

/// The most paths of [`Exec::keep`](super::Exec::keep).
pub const MOST_KEEPS: usize = 20;
/// The most files that are kept of a command.
pub const MOST_KEPT: usize = 1_000;
/// The most bytes of them together: a machine remembers them with the result of the command.
pub const MOST_KEPT_BYTES: usize = 16 << 20;
/// The most entries of one path that are told as left out; one more says how many others there are.
pub const MOST_LEFT_OUT: usize = 10;

/// A file that a command left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFile {
    /// The position in [`Exec::keep`](super::Exec::keep) of the path that it is at, or below.
    pub of: usize,
    /// Its path from there; the root for that path itself.
    pub below: FilePath,
    /// Its content.
    #[serde(with = "base64_text")]
    pub content: Bytes,
}

/// An entry that is not kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The position in [`Exec::keep`](super::Exec::keep) of the path that it is at, or below.
    pub of: usize,
    /// Its path from there; the root for that path itself.
    pub below: FilePath,
    /// The reason, for people and models.
    pub why: String,
}

mod base64_text {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(content: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(content))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Bytes::from).map_err(D::Error::custom)
    }
}
