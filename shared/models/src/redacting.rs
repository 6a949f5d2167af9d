//! Keeps the host's secrets from models, and out of their answers.

use async_trait::async_trait;
use domain::{Message, Usage};
use futures::{StreamExt, stream};
use ports::{Delta, KnownSecrets, Model, ModelError, ModelInfo, ModelRequest, ModelStream, Redactor};
use std::{borrow::Cow, collections::VecDeque, sync::Arc};

/// A model that gets no secret of this host and repeats none: a secret that a tool found in a file is not sent to the provider, and one
/// that a provider knows is in nothing that is written down.
///
/// A secret may come in pieces. So the end of a piece that may begin a secret is held back until that is clear, which is no more than a few
/// characters, and nothing if there are no secrets.
pub struct Redacting {
    inner: Arc<dyn Model>,
    secrets: KnownSecrets,
}

impl Redacting {
    /// `inner`, without these secrets.
    pub fn new(inner: Arc<dyn Model>, secrets: KnownSecrets) -> Self {
        Self { inner, secrets }
    }
}

#[async_trait]
impl Model for Redacting {
    async fn stream(&self, mut request: ModelRequest) -> Result<ModelStream, ModelError> {
        let redactor = self.secrets.redactor();
        clean_request(&mut request, &redactor);
        let answer = self.inner.stream(request).await.map_err(|error| clean_error(error, &redactor))?;
        let cleaning = Cleaning {
            answer,
            secrets: self.secrets.clone(),
            held: String::new(),
            reasoning: false,
            ready: VecDeque::new(),
        };
        Ok(stream::unfold(cleaning, |mut cleaning| async move { Some((cleaning.next().await?, cleaning)) }).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        self.inner.catalog()
    }

    fn cost(&self, model: Option<&str>, usage: &Usage) -> f64 {
        self.inner.cost(model, usage)
    }

    fn default_model(&self) -> Option<String> {
        self.inner.default_model()
    }
}

struct Cleaning {
    answer: ModelStream,
    /// Asked at each piece: a key may be looked up while the answer comes.
    secrets: KnownSecrets,
    /// The end of a piece that may begin a secret; of the reasoning, or of the text.
    held: String,
    reasoning: bool,
    ready: VecDeque<Result<Delta, ModelError>>,
}

impl Cleaning {
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            if let Some(delta) = self.ready.pop_front() {
                return Some(delta);
            }
            let redactor = self.secrets.redactor();
            match self.answer.next().await {
                Some(Ok(Delta::Text(piece))) => self.piece(&piece, false, &redactor),
                Some(Ok(Delta::Reasoning(piece))) => self.piece(&piece, true, &redactor),
                Some(Ok(Delta::Call { tool, args })) => {
                    self.release(&redactor);
                    let args = redactor.text(&args).into_owned();
                    self.ready.push_back(Ok(Delta::Call { tool, args }));
                }
                Some(Ok(end @ Delta::End { .. })) => {
                    self.release(&redactor);
                    self.ready.push_back(Ok(end));
                }
                Some(Err(error)) => {
                    self.release(&redactor);
                    self.ready.push_back(Err(clean_error(error, &redactor)));
                }
                None => {
                    self.release(&redactor);
                    return self.ready.pop_front();
                }
            }
        }
    }

    fn piece(&mut self, piece: &str, reasoning: bool, redactor: &Redactor) {
        // A sign of life and no more.
        if piece.is_empty() {
            return;
        }
        if self.reasoning != reasoning {
            self.release(redactor);
            self.reasoning = reasoning;
        }
        self.held.push_str(piece);
        if let Cow::Owned(clean) = redactor.text(&self.held) {
            self.held = clean;
        }
        let unsure = redactor.unsure(&self.held);
        let held = self.held.split_off(self.held.len() - unsure);
        let sure = std::mem::replace(&mut self.held, held);
        if !sure.is_empty() {
            self.say(sure);
        }
    }

    /// Passes on the held-back text: no secret continues here.
    fn release(&mut self, redactor: &Redactor) {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            self.say(redactor.text(&held).into_owned());
        }
    }

    fn say(&mut self, text: String) {
        let delta = if self.reasoning { Delta::Reasoning(text) } else { Delta::Text(text) };
        self.ready.push_back(Ok(delta));
    }
}

/// The same history always becomes the same bytes, so the caches of providers hold.
fn clean_request(request: &mut ModelRequest, redactor: &Redactor) {
    if redactor.is_empty() {
        return;
    }
    if let Cow::Owned(clean) = redactor.text(&request.system) {
        request.system = clean.into();
    }
    for message in Arc::make_mut(&mut request.messages) {
        let texts: Vec<&str> = match &**message {
            Message::User { content, context, .. } => vec![content, context],
            Message::Assistant { content, calls, reasoning, .. } => {
                calls.iter().map(|call| call.args.as_str()).chain([content.as_str(), reasoning.as_str()]).collect()
            }
            Message::Tool { output, .. } => vec![output],
            Message::System { content, .. } => vec![content],
        };
        // Histories are long and shared; nearly none has a secret in it.
        if texts.iter().all(|text| matches!(redactor.text(text), Cow::Borrowed(_))) {
            continue;
        }
        let clean = |text: &mut String| *text = redactor.text(text).into_owned();
        match Arc::make_mut(message) {
            Message::User { content, context, .. } => [content, context].into_iter().for_each(clean),
            Message::Assistant { content, calls, reasoning, .. } => {
                calls.iter_mut().map(|call| &mut call.args).chain([content, reasoning]).for_each(clean);
            }
            Message::Tool { output, .. } => clean(output),
            Message::System { content, .. } => clean(content),
        }
    }
}

pub(crate) fn clean_error(error: ModelError, redactor: &Redactor) -> ModelError {
    let clean = |text: String| redactor.text(&text).into_owned();
    match error {
        ModelError::RateLimited { .. } => error,
        ModelError::Unavailable(text) => ModelError::Unavailable(clean(text)),
        ModelError::Unauthorized(text) => ModelError::Unauthorized(clean(text)),
        ModelError::Rejected(text) => ModelError::Rejected(clean(text)),
        ModelError::TooLong(text) => ModelError::TooLong(clean(text)),
        ModelError::Broken(text) => ModelError::Broken(clean(text)),
        ModelError::Postponed { after, failures, why } => {
            ModelError::Postponed { after, failures, why: Box::new(clean_error(*why, redactor)) }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use domain::event::StopReason;
    use parking_lot::Mutex;
    use ports::Secret;
    use serde_json::Value;

    /// Answers with these pieces, and keeps the request.
    struct Says(Vec<Result<Delta, ModelError>>, Mutex<Option<ModelRequest>>);

    #[async_trait]
    impl Model for Says {
        async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
            *self.1.lock() = Some(request);
            Ok(stream::iter(self.0.clone()).boxed())
        }

        fn catalog(&self) -> Vec<ModelInfo> {
            Vec::new()
        }
    }

    fn text(piece: &str) -> Result<Delta, ModelError> {
        Ok(Delta::Text(piece.into()))
    }

    async fn answers(says: Vec<Result<Delta, ModelError>>, request: ModelRequest) -> (Vec<String>, ModelRequest) {
        let says = Arc::new(Says(says, Mutex::default()));
        let secrets = KnownSecrets::default();
        secrets.learn(&[Secret::new("hunter2-hunter3")]);
        let stream = Redacting::new(says.clone(), secrets).stream(request).await.unwrap();
        let said = stream.map(|delta| format!("{delta:?}")).collect().await;
        let asked = says.1.lock().take().unwrap();
        (said, asked)
    }

    #[tokio::test]
    async fn s10_11_a_secret_that_comes_in_pieces_is_not_said() {
        let end =
            Delta::End { reason: StopReason::EndTurn, usage: Usage::default(), provider: Value::Null, model: None };
        let says = vec![
            text("the key is hun"),
            text("ter2-"),
            text("hunter3, and hunters hunt"),
            Ok(Delta::Reasoning("hunter2-hunt".into())),
            Ok(Delta::Call { tool: "write".into(), args: "{\"content\":\"hunter2-hunter3\"}".into() }),
            Ok(end),
            Err(ModelError::Broken("hunter2-hunter3".into())),
        ];
        let (said, _) = answers(says, ModelRequest::default()).await;
        assert_eq!(
            said[..6],
            [
                "Ok(Text(\"the key is \"))",
                "Ok(Text(\"[redacted], and hunters \"))",
                "Ok(Text(\"hunt\"))",
                "Ok(Reasoning(\"hunter2-hunt\"))",
                "Ok(Call { tool: \"write\", args: \"{\\\"content\\\":\\\"[redacted]\\\"}\" })",
                &said[5],
            ]
        );
        assert!(said[5].starts_with("Ok(End"), "{said:?}");
        assert_eq!(said[6], "Err(Broken(\"[redacted]\"))");
    }

    #[tokio::test]
    async fn s10_11_a_secret_that_a_tool_came_upon_does_not_go_to_the_provider() {
        let at = domain::Timestamp::from_millis(0);
        let tool = |output: &str| {
            let call_id = domain::CallId::from_key("t", output);
            Arc::new(Message::Tool { call_id, tool: "read".into(), at, output: output.into(), success: true })
        };
        let messages = vec![tool("KEY=hunter2-hunter3"), tool("nothing")];
        let kept = messages[1].clone();
        let request =
            ModelRequest { system: "hunter2-hunter3".into(), messages: messages.into(), ..ModelRequest::default() };
        let (_, asked) = answers(Vec::new(), request).await;
        let Message::Tool { output, .. } = asked.messages[0].as_ref() else { panic!("{asked:?}") };
        assert_eq!((&*asked.system, output.as_str()), ("[redacted]", "KEY=[redacted]"));
        assert!(Arc::ptr_eq(&asked.messages[1], &kept), "a clean message is not copied");
    }
}
