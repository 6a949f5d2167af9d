//! An answer of the server, and what is expected of it.

use crate::Result;
use serde_json::Value;
use std::ops::Deref;

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Answer(::client::Answer);

impl Deref for Answer {
    type Target = ::client::Answer;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Answer {
    pub(crate) fn of(answer: ::client::Answer) -> Self {
        Self(answer)
    }

    /// The body as JSON; as a JSON text when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|_| Value::String(self.text()))
    }

    /// This, when its status is this one; else an error that shows it.
    pub fn is(self, status: u16) -> Result<Self> {
        match self.status.as_u16() == status {
            true => Ok(self),
            false => Err(format!("{}: {} instead of {status}: {}", self.asked, self.status, self.text()).into()),
        }
    }

    /// The body, when it is a success.
    pub fn good(self) -> Result<Value> {
        match self.status.is_success() {
            true => Ok(self.json()),
            false => Err(format!("{}: {} {}", self.asked, self.status, self.text()).into()),
        }
    }

    /// The inside of the envelope, when it refuses with this status and code. Every refusal names its request.
    pub fn refuses(self, status: u16, code: &str) -> Result<Value> {
        let this = self.is(status)?;
        let error = this.json()["error"].clone();
        if error["code"] != code || error["message"].as_str().is_none_or(str::is_empty) {
            return Err(format!("{}: {error} instead of {code}", this.asked).into());
        }
        if error["request_id"].as_str().is_none_or(|id| id != this.header("x-request-id")) {
            return Err(format!("{}: {error} does not name the request {:?}", this.asked, this.headers).into());
        }
        Ok(error)
    }
}
