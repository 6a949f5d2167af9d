//! HTTP tools and tools in code as a workspace declares them: a file for each, `/system/tools/NAME.yaml` or `.json`.

use ports::{CODE_PREFIX, HTTP_PREFIX, ServedTool};
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
/// How long a program has to answer a call at most, in seconds, and usually.
const LONGEST_OF_CODE: u64 = 24 * 3600;
const USUAL_OF_CODE: u64 = 3600;
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
    /// Whether a program runs it.
    #[serde(default)]
    code: bool,
    method: Option<Method>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    sign: Option<String>,
    retry: Option<Retry>,
    timeout_s: Option<u64>,
    max_bytes: Option<usize>,
    #[serde(default)]
    effects: Effects,
}

/// A declared tool.
#[derive(Debug)]
pub(crate) enum Declared {
    Http(Box<HttpTool>),
    Code(Box<CodeTool>),
}

impl Declared {
    pub fn served(&self) -> &ServedTool {
        match self {
            Self::Http(tool) => &tool.served,
            Self::Code(tool) => &tool.served,
        }
    }
}

/// A tool that programs run.
#[derive(Debug)]
pub(crate) struct CodeTool {
    pub served: ServedTool,
    pub schema: Schema,
    pub timeout: Duration,
    /// Whether programs may run a call more than once.
    pub is_repeatable: bool,
}

/// A tool that a server has at an address.
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
pub(crate) fn parse(file: &str, text: &str) -> Result<Declared, String> {
    if text.len() >= MAX_TEXT {
        return Err(format!("it is longer than {} KiB", MAX_TEXT >> 10));
    }
    let declared: Declaration = match file.ends_with(".json") {
        true => serde_json::from_str(text).map_err(|error| error.to_string())?,
        false => serde_saphyr::from_str(text).map_err(|error| first_line(&error.to_string()))?,
    };
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let prefix = if declared.code { CODE_PREFIX } else { HTTP_PREFIX };
    let name = name(prefix, declared.name.as_deref().unwrap_or(stem))?;
    if let Some(header) = declared.headers.keys().find(|name| OURS.contains(&&*name.to_ascii_lowercase())) {
        return Err(format!("the header {header} follows from the request"));
    }
    let parameters = declared.parameters.unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
    if parameters["type"] != "object" || domain::json_length(&parameters) > MAX_SCHEMA {
        return Err(format!("parameters is a JSON Schema of an object, of at most {} KiB", MAX_SCHEMA >> 10));
    }
    let schema = Schema::compile_any_draft(&parameters).map_err(|error| format!("parameters: {error}"))?;
    let (description, _) = crate::read::printable(declared.description.trim(), MAX_DESCRIPTION);
    if description.is_empty() {
        return Err("its description is empty: models choose tools by it".into());
    }
    let is_repeatable = declared.effects == Effects::Read;
    if declared.code {
        let is_http = declared.url.is_some() || declared.method.is_some() || declared.retry.is_some();
        if is_http || declared.sign.is_some() || declared.max_bytes.is_some() || !declared.headers.is_empty() {
            return Err("a tool in code has no url, method, headers, sign, retry and max_bytes".into());
        }
        let timeout = Duration::from_secs(declared.timeout_s.unwrap_or(USUAL_OF_CODE).clamp(1, LONGEST_OF_CODE));
        // To hand a call out changes nothing, so that can be done again.
        let served = ServedTool { name, description, parameters, is_repeatable: true, sees: None };
        return Ok(Declared::Code(Box::new(CodeTool { served, schema, timeout, is_repeatable })));
    }
    let url = declared.url.ok_or("it has neither a url nor code: true")?;
    check_url(&url)?;
    let retry = declared.retry.unwrap_or_default();
    if retry.times > MOST_RETRIES || retry.backoff_ms > LONGEST_PAUSE {
        return Err(format!("retry has at most {MOST_RETRIES} times, and a backoff_ms of at most {LONGEST_PAUSE}"));
    }
    Ok(Declared::Http(Box::new(HttpTool {
        served: ServedTool { name, description, parameters, is_repeatable, sees: None },
        schema,
        method: declared.method.unwrap_or_default(),
        url,
        headers: declared.headers,
        sign: declared.sign,
        retry,
        timeout: Duration::from_secs(declared.timeout_s.unwrap_or(USUAL).clamp(1, LONGEST)),
        max_bytes: declared.max_bytes.unwrap_or(USUAL_BYTES).min(MOST_BYTES),
    })))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

fn name(prefix: &str, plain: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if plain.is_empty() || plain.len() > MAX_NAME || !plain.chars().all(fits) {
        return Err(format!("a name has 1 to {MAX_NAME} letters, digits, - and _"));
    }
    Ok(format!("{prefix}{plain}"))
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

    fn http(file: &str, text: &str) -> HttpTool {
        match parse(file, text).unwrap() {
            Declared::Http(tool) => *tool,
            Declared::Code(tool) => panic!("{tool:?}"),
        }
    }

    #[test]
    fn a_tool_in_code_waits_for_its_program_as_it_says() {
        let text = "{description: Rings., code: true, timeout_s: 20}";
        let Declared::Code(tool) = parse("ring.yaml", text).unwrap() else { panic!("it is one in code") };
        assert_eq!((tool.served.name.as_str(), tool.timeout.as_secs()), ("code__ring", 20));
        assert!(!tool.is_repeatable && tool.served.is_repeatable);
        let text = "{description: Looks., code: true, effects: read, timeout_s: 1000000}";
        let Declared::Code(tool) = parse("look.yaml", text).unwrap() else { panic!("it is one in code") };
        assert_eq!((tool.timeout.as_secs(), tool.is_repeatable), (LONGEST_OF_CODE, true));
        let told = parse("x.yaml", "{description: Both., code: true, url: 'https://a.example'}").unwrap_err();
        assert!(told.contains("no url"), "{told}");
        assert!(parse("x.yaml", "{description: Neither.}").unwrap_err().contains("neither"));
    }

    #[test]
    fn a_tool_has_the_name_of_its_file_and_bounds() {
        let tool = http("open-ticket.yaml", TICKET);
        assert_eq!((tool.served.name.as_str(), tool.method), ("http__open-ticket", Method::Post));
        assert_eq!((tool.timeout.as_secs(), tool.retry.times, tool.retry.backoff_ms), (LONGEST, 1, 500));
        assert!(!tool.served.is_repeatable);
        let json = r#"{"name": "look", "description": "Looks.", "method": "GET", "url": "http://a.example", "effects": "read"}"#;
        let tool = http("x.json", json);
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
