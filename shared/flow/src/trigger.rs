//! Triggers: the files whose new versions start tasks of a flow (spec 001 §6, `on:` of `workflow.yaml`). Pure: the caller brings the change
//! and the front matter of the version.

mod overlap;

use crate::manifest::{Trigger as TriggerManifest, TriggerEvent, TriggerPattern};
use domain::FilePath;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt;

pub use overlap::overlap;

/// The longest pattern of paths, in bytes.
const MAX_PATTERN: usize = 256;
/// The most triggers of a flow.
pub const MAX_TRIGGERS: usize = 32;
/// The longest front matter, in bytes. A file with a longer one counts as one without.
pub const MAX_FRONT_MATTER: usize = 16 * 1024;
/// The folder of transcripts and other files of chats. A pattern reaches it by its name alone.
const CHATS: &str = "/chats/";
/// The folder of personas, skills, flows and policies, whose changes start nothing.
const SYSTEM: &str = "/system/";

/// One condition on new versions.
#[derive(Clone, Debug)]
pub struct Trigger {
    /// The condition as the manifest has it.
    pub pattern: TriggerPattern,
    matcher: GlobSet,
}

impl PartialEq for Trigger {
    fn eq(&self, other: &Self) -> bool {
        self.pattern == other.pattern
    }
}

impl Serialize for Trigger {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.pattern.serialize(serializer)
    }
}

/// A trigger that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TriggerFault {
    /// The key of the trigger that is wrong.
    pub key: &'static str,
    /// The fault, as a sentence.
    pub message: String,
    /// A way to correct it.
    pub hint: &'static str,
}

impl Trigger {
    /// Reads one of `on:`.
    ///
    /// # Errors
    /// For a pattern that is no absolute path with `*` and `**`, is too long, or could only match files whose changes start nothing.
    pub fn new(manifest: &TriggerManifest) -> Result<Self, TriggerFault> {
        let pattern = match manifest {
            TriggerManifest::Path(path) => TriggerPattern { path: path.clone(), ..TriggerPattern::default() },
            TriggerManifest::Pattern(pattern) => pattern.clone(),
        };
        let fault = |key, message: String, hint| TriggerFault { key, message, hint };
        let path = pattern.path.as_str();
        if path.len() > MAX_PATTERN {
            let message = format!("the pattern is {} bytes long; {MAX_PATTERN} fit", path.len());
            return Err(fault("path", message, "name a folder and use ** for all below it"));
        }
        if !path.starts_with('/') || path.ends_with('/') || path.contains("//") {
            let message = format!("`{path}` is no pattern of paths of files");
            return Err(fault("path", message, "an absolute path with `*` and `**`, such as /projects/*/plan.md"));
        }
        if path.starts_with(SYSTEM) {
            let message = format!("`{path}` is under {SYSTEM}, and files there start no tasks");
            return Err(fault("path", message, "watch files under /projects, /data or /users"));
        }
        let wild = |name: &&str| name.contains(['*', '?', '[', '{', '\\']);
        if let Some(name) =
            path.split('/').skip(1).find(|name| !wild(name) && FilePath::parse(&format!("/{name}")).is_err())
        {
            let message = format!("no file or folder can be called `{name}`");
            return Err(fault("path", message, "an absolute path with `*` and `**`, such as /projects/*/plan.md"));
        }
        if pattern.front_matter.iter().flatten().any(|(key, _)| key == "status") && pattern.status.is_some() {
            let message = "the status is asked for twice".to_owned();
            return Err(fault("front_matter", message, "leave it out of `front_matter`"));
        }
        let reads = pattern.status.is_some() || pattern.front_matter.as_ref().is_some_and(|keys| !keys.is_empty());
        let last = path.rsplit('/').next().unwrap_or_default();
        if reads && last.contains('.') && !last.contains(['*', '?', '[', '{', '\\']) && !is_markdown(last) {
            let message = format!("`{path}` is no Markdown file, so it has no front matter");
            return Err(fault("path", message, "name a file that ends in .md, or leave the conditions out"));
        }
        let refused = |error: globset::Error| {
            fault("path", format!("`{path}` is no pattern: {}", error.kind()), "such as /projects/*/plan.md")
        };
        let glob = GlobBuilder::new(path).literal_separator(true).build().map_err(refused)?;
        // A set of one: compiling a single matcher panics on globs for which the set gives an error.
        let matcher = GlobSetBuilder::new().add(glob).build().map_err(refused)?;
        Ok(Self { matcher, pattern })
    }

    /// Whether a version at this path can fulfil it, as far as the path and the number of the version tell.
    pub fn concerns(&self, path: &FilePath, is_first: bool) -> bool {
        let path = path.as_str();
        let of_event = match self.pattern.event {
            None => true,
            Some(TriggerEvent::Created) => is_first,
            Some(TriggerEvent::Updated) => !is_first,
        };
        // A pattern such as /** is about the work of people, and not about the conversations on it.
        let reaches = !path.starts_with(SYSTEM) && (!path.starts_with(CHATS) || self.pattern.path.starts_with(CHATS));
        of_event && reaches && self.matcher.is_match(path)
    }

    /// Whether a version fulfils it. `front_matter` is that of a Markdown file; of other files it is empty.
    pub fn matches(&self, path: &FilePath, is_first: bool, front_matter: &Map<String, Value>) -> bool {
        let is_so = |key: &str, wanted: &Value| front_matter.get(key) == Some(wanted);
        let status = self.pattern.status.as_ref();
        self.concerns(path, is_first)
            && status.is_none_or(|wanted| {
                // People write `Ready` as well as `ready`.
                front_matter.get("status").and_then(Value::as_str).is_some_and(|is| is.eq_ignore_ascii_case(wanted))
            })
            && self.pattern.front_matter.iter().flatten().all(|(key, wanted)| is_so(key, wanted))
    }
}

/// As lists show it: `/projects/*/plan.md status=ready created`.
impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.pattern.path)?;
        if let Some(status) = &self.pattern.status {
            write!(f, " status={status}")?;
        }
        for (key, value) in self.pattern.front_matter.iter().flatten() {
            match value {
                Value::String(text) => write!(f, " {key}={text}")?,
                other => write!(f, " {key}={other}")?,
            }
        }
        match self.pattern.event {
            None => Ok(()),
            Some(TriggerEvent::Created) => f.write_str(" created"),
            Some(TriggerEvent::Updated) => f.write_str(" updated"),
        }
    }
}

/// Whether a path or a name is that of a Markdown file.
pub fn is_markdown(path: &str) -> bool {
    let end = path.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase());
    matches!(end.as_deref(), Some("md" | "markdown"))
}

/// The front matter of a Markdown text: the YAML between a first line `---` and the next such line. Empty when there is none, when it is
/// longer than [`MAX_FRONT_MATTER`], and when it is no object.
pub fn front_matter(text: &str) -> Map<String, Value> {
    let parts = frontmatter::read(text);
    let fits = parts.yaml.is_some_and(|yaml| yaml.len() <= MAX_FRONT_MATTER);
    if fits { parts.keys } else { Map::new() }
}

#[cfg(test)]
mod tests;
