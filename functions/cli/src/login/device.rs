//! The device authorization grant (RFC 8628): a person confirms a code in any browser, and this program asks until they have.

use super::{
    http::{Http, endpoint, url_text},
    metadata::Offer,
    now,
    store::Saved,
};
use crate::{
    failure::CliError,
    output::{Look, Output, one_line},
    value::{number, text},
};
use ports::Secret;
use reqwest::Url;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// The pause between questions when the issuer names none, and the step by which it grows (RFC 8628 §3.2 and §3.5).
const STEP: Duration = Duration::from_secs(5);
/// The longest pause; an issuer that asks for more gets this one.
const LONGEST: Duration = Duration::from_secs(60);
/// The longest life of a code, in seconds.
const LIFE: u64 = 3600;

/// A login that a person has yet to confirm.
pub(crate) struct Grant {
    http: Http,
    offer: Offer,
    device_code: Secret,
    user_code: String,
    /// Where they confirm it, and the same with the code in it.
    at: (Url, Option<Url>),
    interval: Duration,
    ends: Instant,
}

/// The meaning of an answer of the token endpoint for a program that asks again and again.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Ask again after the pause.
    Again,
    /// Ask again, and less often from now on.
    Slower,
    /// It is over.
    Over(&'static str, Option<&'static str>),
    /// The issuer has another reason.
    Refused(String),
}

impl Step {
    fn of(body: &Value) -> Self {
        const ANEW: Option<&str> = Some("begin again with: buildscale auth login");
        match text(body, "error") {
            "authorization_pending" => Self::Again,
            "slow_down" => Self::Slower,
            "expired_token" => Self::Over("the code expired before anybody confirmed it", ANEW),
            "access_denied" => Self::Over("the login was declined at the issuer", ANEW),
            _ => Self::Refused(reason(body)),
        }
    }

    /// The pause before the next question, after one of this length.
    fn pause(&self, interval: Duration) -> Duration {
        match self {
            Self::Slower => (interval + STEP).min(LONGEST),
            Self::Again | Self::Over(..) | Self::Refused(_) => interval,
        }
    }
}

/// The words of an error of OAuth (RFC 6749 §5.2).
pub(crate) fn reason(body: &Value) -> String {
    match (text(body, "error"), text(body, "error_description")) {
        ("", _) => "its answer is none of OAuth 2.0".to_owned(),
        (code, "") => one_line(code, 60),
        (code, words) => format!("{} ({})", one_line(words, 200), one_line(code, 60)),
    }
}

impl Grant {
    /// Asks the issuer for a code.
    pub(crate) async fn begin(http: Http, offer: Offer) -> Result<Self, CliError> {
        let mut fields = vec![("client_id", offer.client_id.as_str())];
        if !offer.scope.is_empty() {
            fields.push(("scope", &offer.scope));
        }
        // Not of the standard. Issuers that do not know it ignore it (RFC 6749 §3.1), others give no token for an API without it.
        if let Some(audience) = &offer.audience {
            fields.push(("audience", audience));
        }
        let answer = http.post(&offer.device_endpoint, &fields).await?;
        let wrong = |reason: String| CliError::Issuer { url: one_line(&offer.issuer, 200), reason };
        if !answer.status.is_success() {
            return Err(wrong(reason(&answer.body)));
        }
        let body = &answer.body;
        // A page for a browser, which no token is sent to.
        let page =
            |key: &str| text(body, key).parse::<Url>().ok().filter(|url| matches!(url.scheme(), "https" | "http"));
        let (device_code, user_code) = (text(body, "device_code"), text(body, "user_code"));
        let Some(at) = page("verification_uri").filter(|_| !device_code.is_empty() && !user_code.is_empty()) else {
            return Err(wrong("its answer has no code, or no page to confirm it on".into()));
        };
        let interval = match number(body, "interval") {
            0 => STEP,
            seconds => Duration::from_secs(seconds).min(LONGEST),
        };
        let life = Duration::from_secs(number(body, "expires_in").clamp(1, LIFE));
        Ok(Self {
            device_code: Secret::new(device_code),
            user_code: one_line(user_code, 60),
            at: (at, page("verification_uri_complete")),
            interval,
            ends: Instant::now() + life,
            http,
            offer,
        })
    }

    /// Tells the person what to do.
    pub(crate) fn tell(&self, out: &mut Output) -> Result<(), CliError> {
        let (page, whole) = (&self.at.0, self.at.1.as_ref());
        if out.is_json() {
            return out.json(&json!({
                "verification_uri": page.as_str(),
                "verification_uri_complete": whole.map(Url::as_str),
                "user_code": self.user_code,
            }));
        }
        let code = out.err_style().paint(Look::Bold, &self.user_code);
        let page = one_line(page.as_str(), 400);
        out.progress(format_args!("Open {page} in a browser, and enter the code {code}"))?;
        match whole {
            Some(whole) => out.progress(format_args!("or open {}", one_line(whole.as_str(), 400))),
            None => Ok(()),
        }
    }

    /// Asks until the person has confirmed it, or declined, or has not come in time.
    pub(crate) async fn wait(self, hub: &Url, out: &mut Output) -> Result<Saved, CliError> {
        let mut interval = self.interval;
        let fields =
            [("grant_type", GRANT), ("device_code", self.device_code.expose()), ("client_id", &self.offer.client_id)];
        out.draw("waiting for you to confirm it …")?;
        loop {
            let next = Instant::now() + interval;
            if next >= self.ends {
                sleep_until(self.ends).await;
                return Err(over(Step::of(&json!({ "error": "expired_token" })), &self.offer.issuer));
            }
            sleep(interval).await;
            let answer = match self.http.post(&self.offer.token_endpoint, &fields).await {
                Ok(answer) => answer,
                // RFC 8628 §3.5: one that does not answer is asked less often.
                Err(CliError::Issuer { .. }) => {
                    interval = (interval * 2).min(LONGEST);
                    continue;
                }
                Err(other) => return Err(other),
            };
            if answer.status.is_success() {
                return Saved::of(&answer.body, &self.offer, hub);
            }
            match Step::of(&answer.body) {
                step @ (Step::Again | Step::Slower) => interval = step.pause(interval),
                // A server that is overloaded says nothing of the login.
                Step::Refused(_) if answer.status.is_server_error() => interval = (interval * 2).min(LONGEST),
                end => return Err(over(end, &self.offer.issuer)),
            }
        }
    }
}

fn over(step: Step, issuer: &str) -> CliError {
    match step {
        Step::Over(reason, hint) => CliError::Login { reason: reason.to_owned(), hint },
        Step::Refused(reason) => CliError::Issuer { url: one_line(issuer, 200), reason },
        Step::Again | Step::Slower => CliError::Login { reason: "the login did not end".to_owned(), hint: None },
    }
}

impl Saved {
    /// The tokens that the issuer gave.
    fn of(body: &Value, offer: &Offer, hub: &Url) -> Result<Self, CliError> {
        let wrong = |reason: &str| CliError::Issuer { url: one_line(&offer.issuer, 200), reason: reason.to_owned() };
        let mut saved = Self {
            url: url_text(hub),
            issuer: offer.issuer.clone(),
            token_endpoint: offer.token_endpoint.to_string(),
            revocation_endpoint: offer.revocation_endpoint.as_ref().map(Url::to_string),
            client_id: offer.client_id.clone(),
            access_token: Secret::new(""),
            refresh_token: None,
            refresh_at: None,
            expires_at: None,
        };
        saved.take_in(body, now()).map_err(wrong)?;
        // It was asked for over a private connection, and is refreshed over one.
        endpoint(&saved.token_endpoint).map(|_| saved).ok_or_else(|| wrong("its token endpoint is no https URL"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_of_the_standard_has_its_meaning() {
        let step = |error: &str| Step::of(&json!({ "error": error }));
        assert_eq!(step("authorization_pending"), Step::Again);
        assert_eq!(step("slow_down"), Step::Slower);
        let seconds = Duration::from_secs;
        assert_eq!(step("authorization_pending").pause(seconds(5)), seconds(5));
        assert_eq!(step("slow_down").pause(seconds(5)), seconds(10), "for this and all further questions");
        assert_eq!(step("slow_down").pause(seconds(59)), seconds(60));
        assert!(matches!(step("expired_token"), Step::Over(why, Some(_)) if why.contains("expired")));
        assert!(matches!(step("access_denied"), Step::Over(why, Some(_)) if why.contains("declined")));
        let odd = json!({ "error": "invalid_client", "error_description": "no such\nclient" });
        assert_eq!(Step::of(&odd), Step::Refused("no such client (invalid_client)".into()));
        assert!(matches!(Step::of(&Value::Null), Step::Refused(_)));
    }
}
