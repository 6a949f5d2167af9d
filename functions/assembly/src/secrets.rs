//! The secrets that a process knows, from all origins, and their removal from logs and answers.
//!
//! | origin | known |
//! |---|---|
//! | the configuration, file and variables | every key that ends as secrets do, and passwords in addresses |
//! | the environment | variables that end as secrets do, passwords in addresses, headers of the collector |
//! | `{data}/secrets`, in the hub | every file, read again from time to time |
//! | secrets that flows refer to | the moment that it is looked up |

use axum::{
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use http::{HeaderMap, HeaderValue, header};
use ports::{KnownSecrets, Redactor, Secret};
use reqwest::Url;
use std::io::{self, Write};
use toml::{Table, Value};
use tracing_subscriber::fmt::MakeWriter;

/// The endings of keys and variables that hold secrets; the last is AWS's `AWS_BEARER_TOKEN_BEDROCK`.
const ENDINGS: [&str; 8] =
    ["key", "token", "secret", "password", "passwd", "credential", "credentials", "token_bedrock"];
/// The longest refusal that is looked through, in bytes: far longer than any.
const LONGEST: usize = api::MAX_JSON;

/// Learns the secrets of the environment.
pub fn learn_environment(environment: &[(String, String)], known: &KnownSecrets) {
    let mut found = Vec::new();
    for (name, value) in environment {
        if is_secret(name) {
            found.push(Secret::new(value));
        }
        found.extend(in_address(value));
        if name.ends_with("_HEADERS") {
            found.extend(in_headers(value));
        }
    }
    known.learn(&found);
}

/// Learns the secrets of a configuration as it was written.
pub fn learn_configuration(table: &Table, known: &KnownSecrets) {
    fn collect(name: &str, value: &Value, found: &mut Vec<Secret>) {
        match value {
            Value::String(text) => {
                if name.contains("headers") {
                    found.extend(in_headers(text));
                }
                if is_secret(name) {
                    found.push(Secret::new(text));
                }
                found.extend(in_address(text));
            }
            Value::Array(items) => items.iter().for_each(|item| collect(name, item, found)),
            Value::Table(table) => table.iter().for_each(|(name, value)| collect(name, value, found)),
            Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {}
        }
    }
    let mut found = Vec::new();
    table.iter().for_each(|(name, value)| collect(name, value, &mut found));
    known.learn(&found);
}

pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ENDINGS
        .iter()
        .any(|ending| name.strip_suffix(ending).is_some_and(|rest| rest.is_empty() || rest.ends_with(['_', '-'])))
}

/// The values of a list of headers.
fn in_headers(text: &str) -> impl Iterator<Item = Secret> {
    text.split(',').filter_map(|pair| pair.split_once('=')).map(|(_, value)| Secret::new(value.trim()))
}

/// The password of an address.
fn in_address(text: &str) -> Vec<Secret> {
    let password = Url::parse(text).ok().and_then(|url| url.password().map(str::to_owned));
    password.map(Secret::new).into_iter().collect()
}

/// Keeps known secrets out at the door: messages of people to agents and tasks come in without them, and refusals, of any part of the hub,
/// go out without them. Contents of files are people's own and pass as they are.
pub async fn redact(State(known): State<KnownSecrets>, mut request: Request, next: Next) -> Response {
    // The reader of a body takes them out: it bounds the body, and knows the words of a message from its files.
    request.extensions_mut().insert(known.clone());
    let response = next.run(request).await;
    let status = response.status();
    if !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    // One that is longer than all that we say is none of ours and goes as nothing. A key may have been looked up meanwhile.
    let body = to_bytes(body, LONGEST).await.unwrap_or_default();
    let body = without(body, &known.redactor(), &mut head.headers);
    Response::from_parts(head, body)
}

fn without(body: Bytes, redactor: &Redactor, headers: &mut HeaderMap) -> Body {
    let Some(clean) = redactor.body(&body) else { return Body::from(body) };
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(clean.len()));
    Body::from(clean)
}

/// A stream for logs: a line at a time, without secrets.
#[derive(Clone)]
pub struct RedactedStream<W>(pub KnownSecrets, pub fn() -> W);

impl<'a, W: Write + 'a> MakeWriter<'a> for RedactedStream<W> {
    type Writer = CleanLine<W>;

    fn make_writer(&'a self) -> CleanLine<W> {
        CleanLine(self.0.clone(), (self.1)())
    }
}

/// One line of a [`RedactedStream`] stream.
pub struct CleanLine<W>(KnownSecrets, W);

impl<W: Write> Write for CleanLine<W> {
    /// Gets whole lines: that is how the subscriber writes.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        self.1.write_all(self.0.redactor().text(&text).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.1.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s10_11_secrets_are_known_by_the_endings_of_their_names() {
        for (name, secret) in [
            ("api_key", true),
            ("OPENAI_API_KEY", true),
            ("auth-token", true),
            ("secret", true),
            ("PGPASSWORD", false),
            ("PG_PASSWORD", true),
            ("monkey", false),
            ("max_tokens", false),
            ("keys", false),
        ] {
            assert_eq!(is_secret(name), secret, "{name}");
        }
    }

    #[test]
    fn s10_11_every_origin_is_learned() -> Result<(), toml::de::Error> {
        let known = KnownSecrets::default();
        let file = "[ai.openai]\napi_key = \"from-the-file\"\nbase_url = \"http://u:pass-of-url@h/v1\"\n[[x]]\ntoken = \"in-a-list\"\n";
        learn_configuration(&file.parse::<Table>()?, &known);
        let variables = [
            ("MY_TOKEN", "from-environment"),
            ("PROXY", "http://u:pass-of-proxy@h/"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-a=header-value-one,x-b=header-value-two"),
            ("PATH", "/usr/bin-not-secret"),
        ];
        learn_environment(&variables.map(|(name, value)| (name.to_owned(), value.to_owned())), &known);
        let redactor = known.redactor();
        for secret in [
            "from-the-file",
            "pass-of-url",
            "in-a-list",
            "from-environment",
            "pass-of-proxy",
            "header-value-one",
            "header-value-two",
        ] {
            assert_eq!(redactor.text(secret), "[redacted]", "{secret}");
        }
        assert_eq!(redactor.text("/usr/bin-not-secret"), "/usr/bin-not-secret");
        Ok(())
    }
}
