//! HTTP tools and tools in code, from the declarations of workspaces and flows, which the crate `flow` checks.

pub(crate) use flow::tool_declarations::{Method, Retry};

use flow::tool_declarations::{Declaration, DeclarationFault, Effects};
use ports::ServedTool;
use schema::Schema;
use std::{collections::BTreeMap, time::Duration};

/// The longest description that models are told, in characters.
const MAX_DESCRIPTION: usize = 1_024;
/// The longest time of a call with its retries, in seconds, and the usual one.
const LONGEST: u64 = 300;
const USUAL: u64 = 30;
/// How long a program has to answer a call at most, in seconds, and usually.
const LONGEST_OF_CODE: u64 = 24 * 3600;
const USUAL_OF_CODE: u64 = 3600;
/// The most bytes of an answer, and the usual number.
const MOST_BYTES: usize = 1 << 20;
const USUAL_BYTES: usize = 256 * 1024;

/// A declared tool.
#[derive(Debug)]
pub(crate) enum DeclaredTool {
    Http(Box<HttpTool>),
    Code(Box<CodeTool>),
}

impl DeclaredTool {
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
pub(crate) fn parse(file: &str, text: &str) -> Result<DeclaredTool, String> {
    let declared = Declaration::read(file, text)?;
    let first = |wrong: Vec<DeclarationFault>| wrong.into_iter().next().map(|first| first.message).unwrap_or_default();
    let schema = declared.checked(file).map_err(first)?;
    let (name, parameters) = (declared.called(file), declared.arguments());
    let (description, _) = crate::read::printable(declared.description.trim(), MAX_DESCRIPTION);
    let is_repeatable = declared.effects == Effects::Read;
    let Some(url) = declared.url else {
        let timeout = Duration::from_secs(declared.timeout_s.unwrap_or(USUAL_OF_CODE).clamp(1, LONGEST_OF_CODE));
        // To hand a call out changes nothing, so that can be done again.
        let served = ServedTool { name, description, parameters, is_repeatable: true };
        return Ok(DeclaredTool::Code(Box::new(CodeTool { served, schema, timeout, is_repeatable })));
    };
    Ok(DeclaredTool::Http(Box::new(HttpTool {
        served: ServedTool { name, description, parameters, is_repeatable },
        schema,
        method: declared.method.unwrap_or_default(),
        url,
        headers: declared.headers,
        sign: declared.sign,
        retry: declared.retry.unwrap_or_default(),
        timeout: Duration::from_secs(declared.timeout_s.unwrap_or(USUAL).clamp(1, LONGEST)),
        max_bytes: declared.max_bytes.unwrap_or(USUAL_BYTES).min(MOST_BYTES),
    })))
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
            DeclaredTool::Http(tool) => *tool,
            DeclaredTool::Code(tool) => panic!("{tool:?}"),
        }
    }

    #[test]
    fn a_tool_in_code_waits_for_its_program_as_it_says() {
        let text = "{description: Rings., code: true, timeout_s: 20}";
        let DeclaredTool::Code(tool) = parse("ring.yaml", text).unwrap() else { panic!("it is one in code") };
        assert_eq!((tool.served.name.as_str(), tool.timeout.as_secs()), ("code__ring", 20));
        assert!(!tool.is_repeatable && tool.served.is_repeatable);
        let text = "{description: Looks., code: true, effects: read, timeout_s: 1000000}";
        let DeclaredTool::Code(tool) = parse("look.yaml", text).unwrap() else { panic!("it is one in code") };
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
        assert!(parse("t.yaml", &"#".repeat(domain::served::MAX_DECLARATION)).unwrap_err().contains("64 KiB"));
    }
}
