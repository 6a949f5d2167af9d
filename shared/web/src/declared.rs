//! HTTP tools as a workspace declares them: a file for each, `/system/tools/NAME.yaml` or `.json`.

use ports::{HTTP_PREFIX, ServedTool};
use schema::Schema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};

/// The longest name, without its prefix: providers of models bound names at 64 characters.
const MAX_NAME: usize = 48;
/// The longest description, in characters, and the longest schema, in bytes.
const MAX_DESCRIPTION: usize = 1_024;
const MAX_SCHEMA: usize = 16 * 1024;
/// The longest declaration, in bytes.
const MAX_TEXT: usize = 64 * 1024;
/// The longest time of a call with its retries, in seconds, and the usual one.
const LONGEST: u64 = 300;
const USUAL: u64 = 30;
/// The most bytes of an answer, and the usual number.
const MOST_BYTES: usize = 1 << 20;
const USUAL_BYTES: usize = 256 * 1024;
/// The most retries, and the longest first pause between two attempts, in milliseconds.
const MOST_RETRIES: u32 = 5;
const LONGEST_PAUSE: u64 = 30_000;

/// Headers that no declaration sets: they say where a request goes, and where it ends.
const OURS: [&str; 4] = ["host", "content-length", "transfer-encoding", "connection"];

/// An HTTP method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Method {
    Get,
    #[default]
    Post,
    Put,
    Patch,
    Delete,
}

/// The effects of a call on its server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Effects {
    /// It looks: a call can be repeated at will.
    Read,
    #[default]
    Write,
}

/// When a request is sent again.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Retry {
    pub statuses: Vec<u16>,
    /// How often, beside the first time.
    pub times: u32,
    /// The first pause; each further one is twice as long.
    pub backoff_ms: u64,
}

impl Default for Retry {
    fn default() -> Self {
        Self { statuses: vec![429, 502, 503, 504], times: 2, backoff_ms: 500 }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declaration {
    name: Option<String>,
    description: String,
    parameters: Option<Value>,
    #[serde(default)]
    method: Method,
    url: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    sign: Option<String>,
    #[serde(default)]
    retry: Retry,
    timeout_s: Option<u64>,
    max_bytes: Option<usize>,
    #[serde(default)]
    effects: Effects,
}

/// A declared tool.
#[derive(Debug)]
pub(crate) struct HttpTool {
    pub served: ServedTool,
    pub schema: Schema,
    pub method: Method,
    pub url: String,
    /// With secrets by reference.
    pub headers: BTreeMap<String, String>,
    /// The secret that signs requests, by reference.
    pub sign: Option<String>,
    pub retry: Retry,
    pub timeout: Duration,
    pub max_bytes: usize,
}

/// Checks a text that declares an HTTP tool, in a file with this name.
///
/// # Errors
/// The fault, for people.
pub fn check(file: &str, text: &str) -> Result<(), String> {
    parse(file, text).map(drop)
}

/// Reads a declaration from the file with this name.
///
/// # Errors
/// The fault, for people.
pub(crate) fn parse(file: &str, text: &str) -> Result<HttpTool, String> {
    if text.len() >= MAX_TEXT {
        return Err(format!("it is longer than {} KiB", MAX_TEXT >> 10));
    }
    let declared: Declaration = match file.ends_with(".json") {
        true => serde_json::from_str(text).map_err(|error| error.to_string())?,
        false => serde_saphyr::from_str(text).map_err(|error| first_line(&error.to_string()))?,
    };
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let name = name(declared.name.as_deref().unwrap_or(stem))?;
    check_url(&declared.url)?;
    if let Some(header) = declared.headers.keys().find(|name| OURS.contains(&&*name.to_ascii_lowercase())) {
        return Err(format!("the header {header} follows from the request"));
    }
    let parameters = declared.parameters.unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
    if parameters["type"] != "object" || domain::json_length(&parameters) > MAX_SCHEMA {
        return Err(format!("parameters is a JSON Schema of an object, of at most {} KiB", MAX_SCHEMA >> 10));
    }
    let schema = Schema::compile_any_draft(&parameters).map_err(|error| format!("parameters: {error}"))?;
    let retry = declared.retry;
    if retry.times > MOST_RETRIES || retry.backoff_ms > LONGEST_PAUSE {
        return Err(format!("retry has at most {MOST_RETRIES} times, and a backoff_ms of at most {LONGEST_PAUSE}"));
    }
    let (description, _) = crate::read::printable(declared.description.trim(), MAX_DESCRIPTION);
    if description.is_empty() {
        return Err("its description is empty: models choose tools by it".into());
    }
    let is_repeatable = declared.effects == Effects::Read;
    Ok(HttpTool {
        served: ServedTool { name, description, parameters, is_repeatable, sees: None },
        schema,
        method: declared.method,
        url: declared.url,
        headers: declared.headers,
        sign: declared.sign,
        retry,
        timeout: Duration::from_secs(declared.timeout_s.unwrap_or(USUAL).clamp(1, LONGEST)),
        max_bytes: declared.max_bytes.unwrap_or(USUAL_BYTES).min(MOST_BYTES),
    })
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

fn name(plain: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if plain.is_empty() || plain.len() > MAX_NAME || !plain.chars().all(fits) {
        return Err(format!("a name has 1 to {MAX_NAME} letters, digits, - and _"));
    }
    Ok(format!("{HTTP_PREFIX}{plain}"))
}

/// Arguments may be in the path and in the query. They choose no host: the secrets of the tool go there.
fn check_url(url: &str) -> Result<(), String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let rest = rest.ok_or("its url begins with https:// or http://")?;
    let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    if host.is_empty() || host.contains(['{', '}', '@']) {
        return Err("the host of its url is fixed, and has no argument and no password in it".into());
    }
    if url.contains("${") {
        return Err("a url has no secret in it: put it into headers".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const TICKET: &str = "
description: Opens a ticket.
parameters:
  type: object
  properties: {project: {type: string}, title: {type: string}}
  required: [project, title]
url: https://tickets.example.com/projects/{project}/tickets
headers: {Authorization: 'Bearer ${secret:tickets}'}
sign: ${secret:signing}
retry: {statuses: [503], times: 1}
timeout_s: 100000
";

    #[test]
    fn a_tool_has_the_name_of_its_file_and_bounds() {
        let tool = parse("open-ticket.yaml", TICKET).unwrap();
        assert_eq!((tool.served.name.as_str(), tool.method), ("http__open-ticket", Method::Post));
        assert_eq!((tool.timeout.as_secs(), tool.retry.times, tool.retry.backoff_ms), (LONGEST, 1, 500));
        assert!(!tool.served.is_repeatable);
        let json = r#"{"name": "look", "description": "Looks.", "method": "GET", "url": "http://a.example", "effects": "read"}"#;
        let tool = parse("x.json", json).unwrap();
        assert_eq!((tool.served.name.as_str(), tool.served.is_repeatable), ("http__look", true));
    }

    #[test]
    fn a_declaration_that_makes_no_sense_is_told_of() {
        for (change, word) in [
            (("https://tickets.example.com", "ftp://x"), "https://"),
            (("tickets.example.com/projects", "{project}/projects"), "host"),
            (("tickets.example.com/projects", "u:p@a.example/projects"), "host"),
            (("{project}/tickets", "${secret:x}"), "no secret"),
            (("type: object\n", "type: strange\n"), "parameters"),
            (("Opens a ticket.", "''"), "description"),
            (("times: 1", "times: 100"), "retry"),
            (("Authorization:", "Host:"), "Host"),
            (("sign:", "signs:"), "signs"),
            (("timeout_s", "- timeout_s"), ""),
        ] {
            let told = parse("t.yaml", &TICKET.replacen(change.0, change.1, 1)).unwrap_err();
            assert!(told.contains(word), "{change:?}: {told}");
        }
        assert!(parse("ä.yaml", TICKET).unwrap_err().contains("name"));
        assert!(parse("t.yaml", &"#".repeat(MAX_TEXT)).unwrap_err().contains("64 KiB"));
    }
}
