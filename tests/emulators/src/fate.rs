//! The fate of one request.

use std::{fmt, sync::Arc, time::Duration};

/// The fate of one request.
#[derive(Clone, Debug)]
pub enum Fate {
    /// It is answered.
    Pass,
    /// It has no effect, and the connection breaks.
    Lost,
    /// It has no effect, and no answer comes.
    Silence,
    /// It has no effect; the answer is this status and this body.
    Answered(u16, String),
    /// It has its effect, and the connection breaks before the answer.
    AnswerLost,
    /// It has its effect, and no answer comes.
    SilenceAfter,
    /// It has its effect; the answer is another one, with this status and this body.
    AnsweredAfter(u16, String),
    /// It has its effect, and the connection breaks in the middle of the answer.
    AnswerCut,
    /// It has its effect, and the answer takes this long.
    Slow(Duration),
    /// It has its effect; then this is done, and the connection breaks before the answer.
    Then(FaultAction),
}

impl Fate {
    /// The answer of services of the JSON protocols (DynamoDB, SQS) with this code.
    pub fn json(status: u16, code: &str) -> Self {
        Self::Answered(status, json(code))
    }

    /// The same, although it had its effect.
    pub fn json_after(status: u16, code: &str) -> Self {
        Self::AnsweredAfter(status, json(code))
    }

    /// The answer of S3 with this code.
    pub fn xml(status: u16, code: &str) -> Self {
        let text = format!("<Error><Code>{code}</Code><Message>a planned fault</Message></Error>");
        Self::Answered(status, text)
    }

    /// Something that is done when a request has had its effect, and before anybody knows.
    pub fn then(deed: impl Fn() + Send + Sync + 'static) -> Self {
        Self::Then(FaultAction(Arc::new(deed)))
    }
}

fn json(code: &str) -> String {
    format!(r#"{{"__type":"{code}","message":"a planned fault"}}"#)
}

/// Something to do, such as to kill a process.
#[derive(Clone)]
pub struct FaultAction(pub(crate) Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for FaultAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a deed")
    }
}
