//! Resources and prompts of a server as files: names for what is at the server, and nothing that is kept here.
//!
//! | at the server | as a file |
//! |---|---|
//! | resource `demo://notes/today.md` | `/system/mcp/SERVER/resources/demo/notes/today.md` |
//! | template `demo://notes/{id}` | `/system/mcp/SERVER/resources/demo/notes/{id}` |
//! | prompt `review` | `/system/mcp/SERVER/prompts/review.md` |

use crate::bounds::{MAX_OWN_NAME, printable};
use ports::{SERVED_FILES, ServedFile};
use rmcp::model::{Prompt, Resource, ResourceTemplate};
use serde_json::{Map, Value};

/// The most resources and templates of one server, and the most prompts.
pub(crate) const MAX_FILES: usize = 512;
pub(crate) const MAX_PROMPTS: usize = 128;
/// The longest purpose that is shown, in characters.
const MAX_ABOUT: usize = 300;
/// The longest address of a resource, in bytes.
const MAX_URI: usize = 2_048;

/// The source of a file at its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A resource, by its address.
    Resource(String),
    /// A template of addresses.
    Template(String),
    /// A prompt, by its name, with the names of its arguments; a required one first says so.
    Prompt { name: String, arguments: Vec<(String, bool)> },
}

/// A file of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerFile {
    pub path: String,
    pub about: String,
    pub source: Source,
}

impl ServerFile {
    pub fn to_served(&self) -> ServedFile {
        ServedFile { path: self.path.clone(), about: self.about.clone() }
    }

    pub fn resource(server: &str, resource: &Resource) -> Option<Self> {
        let path = path_of(server, &resource.uri)?;
        let about = about(&resource.name, resource.description.as_deref());
        Some(Self { path, about, source: Source::Resource(resource.uri.clone()) })
    }

    /// Only templates of the simplest kind, whose variables are whole names of a path (RFC 6570 §3.2.2).
    pub fn template(server: &str, template: &ResourceTemplate) -> Option<Self> {
        let path = path_of(server, &template.uri_template)?;
        let is_simple = path.split('/').all(|name| is_variable(name) || !name.contains(['{', '}']));
        let about = about(&template.name, template.description.as_deref());
        (is_simple && path.contains('{')).then_some(Self {
            path,
            about,
            source: Source::Template(template.uri_template.clone()),
        })
    }

    pub fn prompt(server: &str, prompt: &Prompt) -> Option<Self> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_. ".contains(c);
        let is_name = !prompt.name.is_empty() && prompt.name.len() <= 128 && prompt.name.chars().all(fits);
        let arguments: Vec<_> = prompt.arguments.iter().flatten().take(32).collect();
        let has_names = arguments.iter().all(|argument| argument.name.len() <= MAX_OWN_NAME);
        let mut told = about(prompt.title.as_deref().unwrap_or(&prompt.name), prompt.description.as_deref());
        for argument in &arguments {
            let (open, close) = if argument.required == Some(true) { ("<", ">") } else { ("[", "]") };
            told.push_str(&format!(" {open}{}{close}", printable(&argument.name, 64)));
        }
        let arguments = arguments.iter().map(|one| (one.name.clone(), one.required == Some(true))).collect();
        let path = format!("{SERVED_FILES}/{server}/prompts/{}.md", prompt.name);
        (is_name && has_names).then(|| Self {
            path,
            about: told,
            source: Source::Prompt { name: prompt.name.clone(), arguments },
        })
    }

    /// The address of the resource that this path means, if it is this file.
    pub fn address(&self, path: &str) -> Option<String> {
        match &self.source {
            Source::Resource(uri) => (self.path == path).then(|| uri.clone()),
            Source::Template(template) => {
                let (own, asked): (Vec<_>, Vec<_>) = (self.path.split('/').collect(), path.split('/').collect());
                let mut uri = template.clone();
                for (own, asked) in own.iter().zip(&asked) {
                    match is_variable(own) {
                        true => uri = uri.replace(own, &escaped(asked)),
                        false if own == asked => {}
                        false => return None,
                    }
                }
                (own.len() == asked.len()).then_some(uri)
            }
            Source::Prompt { .. } => None,
        }
    }
}

fn about(name: &str, description: Option<&str>) -> String {
    let words = description.map_or_else(|| name.to_owned(), |description| format!("{name}: {description}"));
    printable(&words, MAX_ABOUT).replace(['\n', '\t'], " ")
}

fn is_variable(name: &str) -> bool {
    let inner = name.strip_prefix('{').and_then(|name| name.strip_suffix('}'));
    inner.is_some_and(|inner| !inner.is_empty() && inner.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

/// The path of an address: its scheme, then its own parts. None for one that is no path.
fn path_of(server: &str, uri: &str) -> Option<String> {
    let (scheme, rest) = uri.split_once(':')?;
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    let is_plain = |part: &str| part.len() <= 255 && part != "." && part != ".." && !part.chars().any(char::is_control);
    let fits = uri.len() <= MAX_URI && !parts.is_empty() && is_plain(scheme) && parts.iter().all(|part| is_plain(part));
    fits.then(|| format!("{SERVED_FILES}/{server}/resources/{scheme}/{}", parts.join("/")))
}

/// A value in the place of a variable (RFC 6570 §3.2.1).
fn escaped(value: &str) -> String {
    let mut text = String::new();
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}

/// The arguments of a prompt from the words after its name: `name=value` by name, other words in the order of the arguments, where the last one takes all
/// that is left.
///
/// # Errors
/// The fault, for people.
pub(crate) fn arguments(known: &[(String, bool)], words: &str) -> Result<Map<String, Value>, String> {
    let (mut given, mut rest) = (Map::new(), Vec::new());
    for word in words.split_whitespace() {
        match word.split_once('=').filter(|(name, _)| known.iter().any(|(one, _)| one == name)) {
            Some((name, value)) => drop(given.insert(name.to_owned(), value.into())),
            None => rest.push(word),
        }
    }
    let free: Vec<_> =
        known.iter().filter(|(name, _)| !given.contains_key(name)).map(|(name, _)| name.clone()).collect();
    if let Some(word) = rest.first().filter(|_| free.is_empty()) {
        return Err(format!("it takes no words such as {:?}", printable(word, 64)));
    }
    for (at, name) in free.iter().enumerate() {
        let value = match rest.len() {
            0 => break,
            _ if at + 1 == free.len() => std::mem::take(&mut rest).join(" "),
            _ => rest.remove(0).to_owned(),
        };
        given.insert(name.clone(), value.into());
    }
    match known.iter().find(|(name, required)| *required && !given.contains_key(name)) {
        Some((name, _)) => Err(format!("it needs a value for {}", printable(name, 64))),
        None => Ok(given),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn resources_have_paths_that_lead_back_to_their_addresses() {
        let resource: Resource =
            serde_json::from_value(json!({ "uri": "demo://notes/today.md", "name": "today" })).unwrap();
        let file = ServerFile::resource("s", &resource).unwrap();
        assert_eq!(file.path, "/system/mcp/s/resources/demo/notes/today.md");
        assert_eq!(file.address(&file.path).as_deref(), Some("demo://notes/today.md"));
        assert_eq!(file.address("/system/mcp/s/resources/demo/notes/other.md"), None);
        for odd in ["nothing", "demo:", "demo://../../etc", &format!("demo://{}", "x".repeat(3_000)), "demo://a\nb"] {
            assert_eq!(path_of("s", odd), None, "{odd}");
        }
    }

    #[test]
    fn templates_take_one_name_for_each_variable() {
        let template = |uri: &str| -> Option<ServerFile> {
            ServerFile::template("s", &serde_json::from_value(json!({ "uriTemplate": uri, "name": "t" })).unwrap())
        };
        let file = template("demo://notes/{id}/of/{day}").unwrap();
        let address = |rest: &str| file.address(&format!("/system/mcp/s/resources/demo/notes/{rest}"));
        assert_eq!(address("a b/of/2").as_deref(), Some("demo://notes/a%20b/of/2"));
        assert_eq!((address("1/of"), address("1/of/2/3"), address("1/at/2")), (None, None, None));
        for other in ["demo://notes/{+path}", "demo://notes{?q}", "demo://notes/x-{id}", "demo://plain"] {
            assert_eq!(template(other), None, "{other}");
        }
    }

    #[test]
    fn a_prompt_whose_arguments_have_endless_names_is_none() {
        let prompt = |length: usize| {
            let argument = json!({ "name": "n".repeat(length), "required": true });
            ServerFile::prompt("s", &serde_json::from_value(json!({ "name": "p", "arguments": [argument] })).unwrap())
        };
        assert!(prompt(MAX_OWN_NAME).is_some() && prompt(MAX_OWN_NAME + 1).is_none());
    }

    #[test]
    fn words_after_a_prompt_are_its_arguments() {
        let known = [("pr".to_owned(), true), ("tone".to_owned(), false)];
        let given = |words: &str| arguments(&known, words).map(Value::Object);
        assert_eq!(given("4"), Ok(json!({ "pr": "4" })));
        assert_eq!(given("4 very kind"), Ok(json!({ "pr": "4", "tone": "very kind" })));
        assert_eq!(given("tone=kind 4"), Ok(json!({ "pr": "4", "tone": "kind" })));
        assert!(given("").is_err_and(|why| why.contains("pr")));
        assert!(arguments(&[], "x").is_err());
    }
}
