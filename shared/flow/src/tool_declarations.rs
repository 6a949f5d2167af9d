//! HTTP tools and tools in code as files declare them, one each: those of a workspace in `/system/tools`, and those of a flow in its folder `tools`.
//!
//! Both are read and checked here, so a declaration means the same in both places. The crate `web` makes the requests.

use domain::served::{CODE_PREFIX, HTTP_PREFIX, MAX_DECLARATION};
use schema::Schema;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The longest name, without its prefix: providers of models bound names at 64 characters.
const MAX_NAME: usize = 48;
/// The longest schema, in bytes.
const MAX_SCHEMA: usize = 16 * 1024;
/// The most retries, and the longest first pause between two attempts, in milliseconds.
const MOST_RETRIES: u32 = 5;
const LONGEST_PAUSE: u64 = 30_000;
/// Headers that no declaration sets: they say where a request goes, and where it ends.
const OURS: [&str; 4] = ["host", "content-length", "transfer-encoding", "connection"];

/// An HTTP method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Arguments are the query.
    Get,
    /// Arguments are the body.
    #[default]
    Post,
    /// Arguments are the body.
    Put,
    /// Arguments are the body.
    Patch,
    /// Arguments are the query.
    Delete,
}

/// The effects of a call on its server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Effects {
    /// It looks: a call can be repeated at will.
    Read,
    /// It changes something.
    #[default]
    Write,
}

/// When a request is sent again.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// The statuses of answers after which it is.
    pub statuses: Vec<u16>,
    /// How often, beside the first time.
    pub times: u32,
    /// The first pause in milliseconds; each further one is twice as long.
    pub backoff_ms: u64,
}

impl Default for Retry {
    fn default() -> Self {
        Self { statuses: vec![429, 502, 503, 504], times: 2, backoff_ms: 500 }
    }
}

/// A file that declares a tool.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    /// Its name, where the file has another one: letters, digits, `-` and `_`.
    pub name: Option<String>,
    /// Its purpose. Models choose tools by it.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub parameters: Option<Map<String, Value>>,
    /// Whether a program runs it.
    #[serde(default)]
    pub code: bool,
    /// The method of its requests.
    pub method: Option<Method>,
    /// Its address. `{NAME}` in its path or query stands for an argument.
    pub url: Option<String>,
    /// Its headers, with secrets by reference.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The secret that signs its requests, by reference.
    pub sign: Option<String>,
    /// When a request is sent again.
    pub retry: Option<Retry>,
    /// The time of a call with all retries, in seconds.
    pub timeout_s: Option<u64>,
    /// How much of the answer is read, in bytes.
    pub max_bytes: Option<usize>,
    /// The effects of a call.
    #[serde(default)]
    pub effects: Effects,
}

/// Something that is wrong with a declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclarationFault {
    /// The place in the file, as a JSON pointer.
    pub pointer: String,
    /// The kind of fault; stable, for machines.
    pub code: &'static str,
    /// The fault, as a sentence.
    pub message: String,
    /// A way to correct it.
    pub hint: &'static str,
}

impl Declaration {
    /// Reads a text in the file with this name: JSON where the name ends so, else YAML.
    ///
    /// # Errors
    /// The fault, for people.
    pub fn read(file: &str, text: &str) -> Result<Self, String> {
        if text.len() >= MAX_DECLARATION {
            return Err(format!("it is longer than {} KiB", MAX_DECLARATION >> 10));
        }
        match file.ends_with(".json") {
            true => serde_json::from_str(text).map_err(|error| error.to_string()),
            false => serde_saphyr::from_str(text).map_err(|error| first_line(&error.to_string())),
        }
    }

    /// Its name without a prefix: that of the file, where it says none. The file has no folder in its name.
    pub fn plain_name<'a>(&'a self, file: &'a str) -> &'a str {
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        self.name.as_deref().unwrap_or(stem)
    }

    /// The name by which agents call it: `http__NAME`, or `code__NAME`.
    pub fn called(&self, file: &str) -> String {
        format!("{}{}", if self.code { CODE_PREFIX } else { HTTP_PREFIX }, self.plain_name(file))
    }

    /// The JSON Schema of its arguments.
    pub fn arguments(&self) -> Value {
        self.parameters.clone().map_or_else(|| json!({ "type": "object", "properties": {} }), Value::Object)
    }

    /// Checks it in the file with this name, and compiles the schema of its arguments.
    ///
    /// # Errors
    /// Everything that is wrong, at least one fault.
    pub fn checked(&self, file: &str) -> Result<Schema, Vec<DeclarationFault>> {
        let mut wrong: Vec<DeclarationFault> = self.name_fault(file).into_iter().collect();
        if let Some(header) = self.headers.keys().find(|name| OURS.contains(&&*name.to_ascii_lowercase())) {
            let pointer = format!("/headers/{}", header.replace('~', "~0").replace('/', "~1"));
            let message = format!("the header {header} follows from the request");
            wrong.push(DeclarationFault { pointer, code: "wrong_value", message, hint: "remove it" });
        }
        let schema = self.schema().map_err(|fault| wrong.push(fault)).ok();
        let is_shown = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
        if !self.description.trim().chars().any(is_shown) {
            let message = "its description is empty: models choose tools by it";
            wrong.push(fault("/description", "wrong_value", message, "say its purpose"));
        }
        wrong.extend(if self.code { self.code_fault() } else { self.url_fault() });
        let is_too_much = |retry: &Retry| retry.times > MOST_RETRIES || retry.backoff_ms > LONGEST_PAUSE;
        if self.retry.as_ref().is_some_and(is_too_much) && !self.code {
            let message =
                format!("retry has at most {MOST_RETRIES} times, and a backoff_ms of at most {LONGEST_PAUSE}");
            wrong.push(fault("/retry", "wrong_value", message, "write less"));
        }
        schema.filter(|_| wrong.is_empty()).ok_or(wrong)
    }

    fn name_fault(&self, file: &str) -> Option<DeclarationFault> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let plain = self.plain_name(file);
        let is_one = !plain.is_empty() && plain.len() <= MAX_NAME && plain.chars().all(fits);
        let message = format!("a name has 1 to {MAX_NAME} letters, digits, - and _");
        (!is_one).then(|| fault("/name", "wrong_value", message, "write another `name`, or rename the file"))
    }

    fn schema(&self) -> Result<Schema, DeclarationFault> {
        let parameters = self.arguments();
        if parameters["type"] != "object" || domain::json_length(&parameters) > MAX_SCHEMA {
            let message = format!("parameters is a JSON Schema of an object, of at most {} KiB", MAX_SCHEMA >> 10);
            let hint = "write `type: object`, and the arguments under `properties`";
            return Err(fault("/parameters", "invalid_schema", message, hint));
        }
        Schema::compile_any_draft(&parameters).map_err(|error| DeclarationFault {
            pointer: format!("/parameters{}", error.pointer),
            code: "invalid_schema",
            message: format!("parameters: {error}"),
            hint: "it is read as JSON Schema 2020-12, unless `$schema` names another draft",
        })
    }

    fn code_fault(&self) -> Option<DeclarationFault> {
        let is_http = self.url.is_some() || self.method.is_some() || self.retry.is_some() || self.sign.is_some();
        let message = "a tool in code has no url, method, headers, sign, retry and max_bytes";
        (is_http || self.max_bytes.is_some() || !self.headers.is_empty())
            .then(|| fault("/code", "misplaced_key", message, "remove them, or `code`"))
    }

    /// Arguments may be in the path and in the query. They choose no host: the secrets of the tool go there.
    fn url_fault(&self) -> Option<DeclarationFault> {
        let Some(url) = &self.url else {
            let message = "it has neither a url nor code: true";
            return Some(fault("", "missing_key", message, "write `url: https://…`"));
        };
        let wrong = |message: &str| Some(fault("/url", "wrong_value", message, "it is `https://host/path`"));
        let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else {
            return wrong("its url begins with https:// or http://");
        };
        let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        if host.is_empty() || host.contains(['{', '}', '@']) {
            return wrong("the host of its url is fixed, and has no argument and no password in it");
        }
        if url.contains("${") {
            return wrong("a url has no secret in it: put it into headers");
        }
        None
    }
}

fn fault(pointer: &str, code: &'static str, message: impl Into<String>, hint: &'static str) -> DeclarationFault {
    DeclarationFault { pointer: pointer.into(), code, message: message.into(), hint }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_wrong_with_a_declaration_is_told_with_its_place() {
        let text = "{description: ' ', url: 'https://{host}/x', headers: {Host: a}, retry: {times: 9}, parameters: {type: string}}";
        let declared = Declaration::read("a b.yaml", text).unwrap_or_else(|error| panic!("{error}"));
        let wrong = declared.checked("a b.yaml").err().unwrap_or_default();
        let places: Vec<_> = wrong.iter().map(|wrong| (wrong.pointer.as_str(), wrong.code)).collect();
        let expected = [
            ("/name", "wrong_value"),
            ("/headers/Host", "wrong_value"),
            ("/parameters", "invalid_schema"),
            ("/description", "wrong_value"),
            ("/url", "wrong_value"),
            ("/retry", "wrong_value"),
        ];
        assert_eq!(places, expected, "{wrong:?}");
    }

    #[test]
    fn a_tool_has_the_name_of_its_file_unless_it_says_another() {
        let read = |text: &str| Declaration::read("x.yaml", text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read("{description: Looks., url: 'https://a.example'}").called("x.yaml"), "http__x");
        assert_eq!(read("{description: Rings., name: ring, code: true}").called("x.yaml"), "code__ring");
    }
}
