//! A call of an HTTP tool: one request, sent again as its declaration says.

use crate::{
    dependencies::WebDependencies,
    read,
    tool_declarations::{HttpTool, Method},
};
use domain::{
    Code, Error, WorkspaceId,
    text::{counted, percent_encoded},
};
use ports::{Address, Recipient, ServedAnswer, all_filled, filled};
use reqwest::{
    Response,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT},
};
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The name that servers know this program by.
pub(crate) const AGENT: &str = concat!("BuildScale/", env!("CARGO_PKG_VERSION"));
/// The longest pause that a server can ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A request that can be sent several times.
struct Request {
    url: String,
    body: Vec<u8>,
    headers: HeaderMap,
}

/// Why an attempt came to nothing.
enum Failed {
    /// Nothing was sent.
    Unsent(String),
    /// It is not known what the server made of it.
    Unknown(String),
}

/// Calls a tool.
///
/// # Errors
/// Those of [`ports::ToolServers::call`].
pub(crate) async fn call(
    parts: &WebDependencies,
    allow_private: bool,
    workspace: WorkspaceId,
    tool: &HttpTool,
    args: Map<String, Value>,
) -> Result<ServedAnswer, Error> {
    let name = &tool.served.name;
    let args = Value::Object(args);
    if let Some(first) = tool.schema.errors(&args, 1).first() {
        return Err(Error::invalid("args", format!("the arguments of {name} are wrong: {first}")));
    }
    let Value::Object(args) = args else { return Err(Error::invalid("args", "the arguments are no object")) };
    let request = request(parts, workspace, tool, args).await?;
    let client = parts.egress.client(&request.url, allow_private).map_err(|why| {
        Error::new(Code::Forbidden, format!("{name} may not be called: {why}"))
            .hint("the operator allows private networks with web.allow_private")
    })?;
    match timeout(tool.timeout, attempts(&client, tool, &request)).await {
        Ok(answer) => answer,
        Err(_) => {
            let seconds = tool.timeout.as_secs();
            let error = Error::new(Code::Timeout, format!("{name} does not answer within {seconds} s"));
            Err(if tool.served.is_repeatable { error } else { error.hint(LOOK) })
        }
    }
}

const LOOK: &str = "the call may have taken effect or not: look before you make it again";

async fn attempts(client: &reqwest::Client, tool: &HttpTool, request: &Request) -> Result<ServedAnswer, Error> {
    let mut pause = Duration::from_millis(tool.retry.backoff_ms);
    for left in (0..=tool.retry.times).rev() {
        let waits = match attempt(client, tool.method, request).await {
            Ok(response) if left > 0 && tool.retry.statuses.contains(&response.status().as_u16()) => asked(&response),
            Ok(response) => return answer(tool, response).await,
            Err(Failed::Unsent(_)) if left > 0 => None,
            // Sent again it may be done twice.
            Err(Failed::Unknown(_)) if left > 0 && tool.served.is_repeatable => None,
            Err(failed) => return Err(gone(tool, failed)),
        };
        sleep(waits.unwrap_or(pause)).await;
        pause = pause.saturating_mul(2);
    }
    Err(Error::new(Code::Internal, "no request was made"))
}

fn gone(tool: &HttpTool, failed: Failed) -> Error {
    let told = |why: &str| Error::new(Code::UpstreamUnavailable, format!("{}: {why}", tool.served.name));
    match failed {
        Failed::Unknown(why) if !tool.served.is_repeatable => told(&why).hint(LOOK),
        Failed::Unsent(why) | Failed::Unknown(why) => told(&why),
    }
}

async fn attempt(client: &reqwest::Client, method: Method, request: &Request) -> Result<Response, Failed> {
    let method = match method {
        Method::Get => reqwest::Method::GET,
        Method::Post => reqwest::Method::POST,
        Method::Put => reqwest::Method::PUT,
        Method::Patch => reqwest::Method::PATCH,
        Method::Delete => reqwest::Method::DELETE,
    };
    let sent = client.request(method, &request.url).headers(request.headers.clone()).body(request.body.clone()).send();
    sent.await.map_err(|error| {
        let why = read::unreachable(&error);
        if error.is_connect() { Failed::Unsent(why) } else { Failed::Unknown(why) }
    })
}

/// The pause that a server asks for.
fn asked(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_PAUSE))
}

async fn answer(tool: &HttpTool, response: Response) -> Result<ServedAnswer, Error> {
    let (status, media_type, charset) = (response.status(), read::media_type(&response), read::charset(&response));
    let (bytes, is_whole) =
        read::body(response, tool.max_bytes).await.map_err(|why| gone(tool, Failed::Unknown(why)))?;
    let text = read::decoded(&bytes, charset);
    let is_json = media_type == "application/json" || media_type.ends_with("+json");
    // An answer with a number that would change is not taken apart: its text stays whole.
    let data = if is_json { domain::exact_numbers::value(&text).unwrap_or_default() } else { Value::Null };
    let is_text = is_json || media_type.is_empty() || media_type.starts_with("text/") || media_type.ends_with("xml");
    let (mut text, _) = match is_text {
        true => read::printable(&text, usize::MAX),
        false => (format!("[{media_type}, {}, not shown]", counted(bytes.len(), "byte")), true),
    };
    if status.is_redirection() {
        text = "it redirects, and HTTP tools follow no redirect: declare the last address".into();
    }
    if !status.is_success() {
        text = format!("The server answers {status}.\n{text}");
    }
    Ok(ServedAnswer { text, data, is_error: !status.is_success(), is_cut: !is_whole })
}

/// The request of a call: arguments that the URL names are there, the others in the query or in the body.
async fn request(
    parts: &WebDependencies,
    workspace: WorkspaceId,
    tool: &HttpTool,
    mut args: Map<String, Value>,
) -> Result<Request, Error> {
    let mut url = placed(&tool.url, &mut args)?;
    let body = match tool.method {
        Method::Get | Method::Delete => {
            for (name, value) in &args {
                let separator = if url.contains('?') { '&' } else { '?' };
                url.push_str(&format!("{separator}{}={}", percent_encoded(name), percent_encoded(&plain(value))));
            }
            Vec::new()
        }
        Method::Post | Method::Put | Method::Patch => Value::Object(args).to_string().into_bytes(),
    };
    let to = Recipient { workspace, address: Address::Url(&url) };
    let refused = |why: String| Error::new(Code::Unprocessable, format!("{}: {why}", tool.served.name));
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/*;q=0.9, */*;q=0.1"));
    if !body.is_empty() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    for (name, value) in all_filled(&*parts.secrets, to, &tool.headers).await.map_err(refused)? {
        let header: HeaderName = name.parse().map_err(|_| refused(format!("{name:?} is no header")))?;
        let value =
            HeaderValue::try_from(value).map_err(|_| refused(format!("the value of {name} is none of a header")))?;
        headers.insert(header, sensitive(value));
    }
    if let Some(sign) = &tool.sign {
        let secret = filled(&*parts.secrets, to, "sign", sign).await.map_err(refused)?;
        // The same for all attempts, so that the server can tell that they are one call.
        let (id, timestamp) = (format!("msg_{}", parts.clock.id().simple()), parts.clock.now().as_millis() / 1000);
        let signature = (parts.sign)(&secret, &id, timestamp, &body);
        for (name, value) in
            [("webhook-id", id), ("webhook-timestamp", timestamp.to_string()), ("webhook-signature", signature)]
        {
            let value = HeaderValue::try_from(value).map_err(|_| refused("it cannot be signed".into()))?;
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    Ok(Request { url, body, headers })
}

fn sensitive(mut value: HeaderValue) -> HeaderValue {
    value.set_sensitive(true);
    value
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The URL with its arguments, which are taken out of the others.
fn placed(template: &str, args: &mut Map<String, Value>) -> Result<String, Error> {
    let (mut url, mut rest, mut taken) = (String::new(), template, Vec::new());
    while let Some((before, (name, after))) =
        rest.split_once('{').and_then(|(before, inside)| Some((before, inside.split_once('}')?)))
    {
        let value = args.get(name).filter(|value| !value.is_null());
        let value = plain(value.ok_or_else(|| Error::invalid(name, format!("the argument {name:?} is missing")))?);
        // A segment of dots would lead to another path.
        if value.is_empty() || value.chars().all(|c| c == '.') {
            return Err(Error::invalid(
                name,
                format!("the argument {name:?} is a part of the URL: it has to be a word"),
            ));
        }
        url.push_str(before);
        url.push_str(&percent_encoded(&value));
        taken.push(name);
        rest = after;
    }
    url.push_str(rest);
    for name in taken {
        args.remove(name);
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_stay_within_their_place_in_the_url() {
        let place = |args: Value| {
            let mut args = args.as_object().unwrap().clone();
            placed("https://a.example/p/{id}/t?q={q}", &mut args).map(|url| (url, args.len()))
        };
        let url = "https://a.example/p/..%2F..%2Fadmin/t?q=a%26b%3Dc".to_owned();
        assert_eq!(place(json!({ "id": "../../admin", "q": "a&b=c", "rest": 1 })), Ok((url, 1)));
        for wrong in [
            json!({ "id": "..", "q": "x" }),
            json!({ "id": "", "q": "x" }),
            json!({ "id": null, "q": "x" }),
            json!({ "id": 1 }),
        ] {
            assert!(place(wrong).is_err());
        }
    }
}
