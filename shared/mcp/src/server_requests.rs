//! Questions of a server to a person (elicitation by a form or by a page that they open), and to the model of a chat (sampling), while a call of it runs. The call waits without a
//! task of its own: its answer comes through the connection, and a person may take an hour.
//!
//! The protocol does not say which call a question belongs to. So a question is taken while one call runs on the connection, and is cancelled otherwise. The
//! same holds for what a server says meanwhile: its progress and its log.

use crate::bounds::{depth, printable};
use domain::{CallId, event::Question};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use ports::Listener;
use rmcp::{
    ErrorData,
    model::{CallToolResult, ElicitResult, ElicitationAction, ErrorCode},
    service::ServiceError,
};
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};
use tokio::sync::{mpsc, oneshot};

/// The longest question, in characters.
const MAX_MESSAGE: usize = 2_000;
/// The longest form, as its schema in bytes, and its depth: forms are flat.
const MAX_FORM: usize = 16 * 1024;
const MAX_DEPTH: usize = 8;
/// The longest address of a page, and the most pages that one refusal asks for.
const MAX_URL: usize = 2_048;
const MAX_PAGES: usize = 4;
/// The code of a refusal until a person has opened a page (`URLElicitationRequiredError`).
const PAGE_REQUIRED: ErrorCode = ErrorCode(-32_042);
/// The most tokens of an answer of a model.
const MAX_TOKENS: u64 = 8_192;
/// The longest piece of what a server says while a call runs, in characters.
const MAX_TOLD: usize = 500;
/// The most requests of a server that wait behind the one that is being answered. Each of them is a task and its words, for as long as a person takes.
const MAX_WAITING: usize = 8;
/// The most calls of a connection that wait for people. The oldest gives way: its turn may have been stopped.
const MAX_PARKED: usize = 32;

/// A request of a server to the client.
pub(crate) enum ServerRequest {
    /// A form, filled in by a person.
    Form { message: String, form: Value },
    /// A page, opened by a person.
    Page { message: String, url: String },
    /// An answer of the model, as [`ports::ServedStep::Samples`] has it.
    Sample(Value),
}

/// A question that waits for its answer.
pub(crate) struct Ask {
    pub wanted: ServerRequest,
    pub reply: oneshot::Sender<Value>,
}

/// A call as the connection knows it: the way to its person, and the ear for what its server says.
struct Listening {
    asks: mpsc::Sender<Ask>,
    told: Option<Listener>,
    /// Whether it waits for an answer: it asks nothing meanwhile.
    waits: bool,
}

/// The calls that run on a connection.
#[derive(Default)]
pub(crate) struct Asks(Mutex<BTreeMap<u64, Listening>>);

/// A call that runs.
pub(crate) struct Running {
    pub answer: BoxFuture<'static, Result<CallToolResult, ServiceError>>,
    pub asks: mpsc::Receiver<Ask>,
    listed: Listed,
}

/// Takes a call off the list of its connection.
struct Listed(Arc<Asks>, u64);

impl Drop for Listed {
    fn drop(&mut self) {
        self.0.lock().remove(&self.1);
    }
}

impl Asks {
    fn lock(&self) -> parking_lot::MutexGuard<'_, BTreeMap<u64, Listening>> {
        self.0.lock()
    }

    /// Puts a call on the list: `answer` is its answer, given the way to the person for whom it runs.
    pub fn running(
        self: &Arc<Self>,
        answer: impl FnOnce(Asker) -> BoxFuture<'static, Result<CallToolResult, ServiceError>>,
    ) -> Running {
        let (sender, asks) = mpsc::channel(MAX_WAITING);
        let answer = answer(Asker(sender.clone()));
        let mut calls = self.lock();
        let number = calls.last_key_value().map_or(1, |(last, _)| last + 1);
        calls.insert(number, Listening { asks: sender, told: None, waits: false });
        drop(calls);
        Running { answer, asks, listed: Listed(self.clone(), number) }
    }

    /// Has a call listen from now on.
    pub fn listen(&self, running: &Running, told: Option<Listener>) {
        if let Some(call) = self.lock().get_mut(&running.listed.1) {
            (call.told, call.waits) = (told, false);
        }
    }

    /// The one call that runs and does not wait; none where that is not clear.
    fn only<T>(&self, of: impl Fn(&Listening) -> T) -> Option<T> {
        let calls = self.lock();
        let mut running = calls.values().filter(|call| !call.waits);
        let one = running.next()?;
        running.next().is_none().then(|| of(one))
    }

    /// Tells the one call that runs what the server says.
    pub fn tell(&self, words: &str) {
        if let Some(Listener(told)) = self.only(|call| call.told.clone()).flatten() {
            told(printable(words, MAX_TOLD));
        }
    }

    /// Asks the person for whom the call runs.
    pub async fn ask(&self, message: String, form: Value) -> ElicitResult {
        let is_fit = form.to_string().len() <= MAX_FORM && depth(&form) <= MAX_DEPTH && form["type"] == "object";
        if !is_fit {
            return ElicitResult::new(ElicitationAction::Cancel);
        }
        let wanted = ServerRequest::Form { message: printable(&message, MAX_MESSAGE), form: form.clone() };
        result(&form, self.want(wanted).await)
    }

    /// Has the person for whom the call runs open a page.
    pub async fn open(&self, message: &str, url: &str) -> ElicitResult {
        let answer = match page(message, url) {
            Some(wanted) => self.want(wanted).await,
            None => Value::Null,
        };
        ElicitResult::new(action(&answer))
    }

    /// Asks the model of the chat for which the call runs: its words, and its name. None for a no.
    pub async fn sample(&self, params: &Value) -> Option<(String, String)> {
        let answer = self.want(ServerRequest::Sample(request(params)?)).await;
        let model = answer["model"].as_str().unwrap_or("unknown").to_owned();
        Some((answer["text"].as_str()?.to_owned(), model))
    }

    /// The answer to the one call that runs; null where none does, or more.
    async fn want(&self, wanted: ServerRequest) -> Value {
        match self.only(|call| Asker(call.asks.clone())) {
            Some(asker) => asker.want(wanted).await,
            None => Value::Null,
        }
    }
}

/// The way from a call to the person for whom it runs.
pub(crate) struct Asker(mpsc::Sender<Ask>);

impl Asker {
    async fn want(&self, wanted: ServerRequest) -> Value {
        let (reply, answer) = oneshot::channel();
        // One for which there is no room is a no at once.
        match self.0.try_send(Ask { wanted, reply }) {
            Ok(()) => answer.await.unwrap_or_default(),
            Err(_) => Value::Null,
        }
    }

    /// Has the person open the pages that the server wants opened before it takes the call; whether the call can be made again.
    pub async fn opens(&self, refusal: &ErrorData) -> bool {
        let Some(pages) = pages_before(refusal) else { return false };
        for page in pages {
            if action(&self.want(page).await) != ElicitationAction::Accept {
                return false;
            }
        }
        true
    }
}

/// The pages that a refusal of a call asks for, where that is its reason.
fn pages_before(refusal: &ErrorData) -> Option<Vec<ServerRequest>> {
    let asked = refusal.data.as_ref().filter(|_| refusal.code == PAGE_REQUIRED)?["elicitations"].as_array()?;
    let text = |one: &Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    let pages = asked.iter().map(|one| {
        let is_page = one["mode"] == "url";
        is_page.then(|| page(&text(one, "message"), &text(one, "url"))).flatten()
    });
    (1..=MAX_PAGES).contains(&asked.len()).then(|| pages.collect()).flatten()
}

/// A page, if a person can be sent there: by HTTPS, or on the machine itself, without credentials. The address is as a browser reads it, with the
/// host in ASCII, so that no sign looks like another one.
fn page(message: &str, url: &str) -> Option<ServerRequest> {
    let url = reqwest::Url::parse(url).ok()?;
    let is_here = matches!(url.host_str()?, "localhost" | "127.0.0.1" | "[::1]");
    let is_fit = url.scheme() == "https" || (url.scheme() == "http" && is_here);
    let is_plain = url.username().is_empty() && url.password().is_none() && url.as_str().len() <= MAX_URL;
    let message = printable(message, MAX_MESSAGE);
    (is_fit && is_plain).then(|| ServerRequest::Page { message, url: url.into() })
}

/// A request to a model, from the parameters of the protocol; none for one that is too long, or has other parts than text.
fn request(params: &Value) -> Option<Value> {
    let mut messages = Vec::new();
    for message in params["messages"].as_array()? {
        let contents = match &message["content"] {
            Value::Array(all) => all.clone(),
            one => vec![one.clone()],
        };
        for content in contents {
            let text = content["text"].as_str().filter(|_| content["type"] == "text")?;
            messages.push(json!({ "role": message["role"], "text": printable(text, MAX_FORM) }));
        }
    }
    let system = printable(params["systemPrompt"].as_str().unwrap_or_default(), MAX_FORM);
    let most = params["maxTokens"].as_u64().unwrap_or(MAX_TOKENS).clamp(1, MAX_TOKENS);
    let request = json!({ "system": system, "messages": messages, "max_tokens": most });
    (!messages.is_empty() && request.to_string().len() <= MAX_FORM).then_some(request)
}

/// The question of a server, for a person: one value, which is the form filled in, a no, or the end of the whole.
pub(crate) fn question(server: &str, message: &str, form: &Value) -> Question {
    let mut form = form.clone();
    form["additionalProperties"] = false.into();
    let needs_values = form["required"].as_array().is_some_and(|required| !required.is_empty());
    let needed: &[&str] = if needs_values { &["action", "content"] } else { &["action"] };
    let accept = json!({ "type": "object", "properties": { "action": { "const": "accept" }, "content": form },
        "required": needed, "additionalProperties": false });
    let refuse = json!({ "type": "object", "properties": { "action": { "enum": ["decline", "cancel"] } },
        "required": ["action"], "additionalProperties": false });
    let actions = if needs_values { &["decline", "cancel"][..] } else { &["accept", "decline", "cancel"] };
    Question {
        name: "reply".into(),
        question: format!("The MCP server {server} asks: {message}"),
        schema: json!({ "oneOf": [accept, refuse] }),
        buttons: Some(actions.iter().map(|action| json!({ "action": action })).collect()),
    }
}

/// The question of a server that wants a page opened. Nothing but the person's consent goes back to the server: the page has the rest.
pub(crate) fn page_question(server: &str, message: &str, url: &str) -> Question {
    let actions = ["accept", "decline", "cancel"];
    Question {
        name: "reply".into(),
        question: format!("The MCP server {server} asks you to open {url} in a browser: {message}"),
        schema: json!({ "enum": actions }),
        buttons: Some(actions.iter().map(|action| json!(action)).collect()),
    }
}

fn action(reply: &Value) -> ElicitationAction {
    match reply.as_str().or(reply["action"].as_str()) {
        Some("accept") => ElicitationAction::Accept,
        Some("decline") => ElicitationAction::Decline,
        _ => ElicitationAction::Cancel,
    }
}

/// The answer for the server. Values that the person left out are the defaults of the form.
fn result(form: &Value, reply: Value) -> ElicitResult {
    let action = action(&reply);
    let told = ElicitResult::new(action.clone());
    if action != ElicitationAction::Accept {
        return told;
    }
    let mut content: Map<String, Value> = reply["content"].as_object().cloned().unwrap_or_default();
    for (name, schema) in form["properties"].as_object().into_iter().flatten() {
        if let Some(default) = schema.get("default").filter(|_| !content.contains_key(name)) {
            content.insert(name.clone(), default.clone());
        }
    }
    told.with_content(Value::Object(content))
}

/// Calls that wait for a person, the oldest first.
#[derive(Default)]
pub(crate) struct Parked(Mutex<VecDeque<(CallId, Running, oneshot::Sender<Value>)>>);

impl Parked {
    fn lock(&self) -> parking_lot::MutexGuard<'_, VecDeque<(CallId, Running, oneshot::Sender<Value>)>> {
        self.0.lock()
    }

    /// Has a call wait.
    pub fn park(&self, id: CallId, running: Running, reply: oneshot::Sender<Value>) {
        if let Some(call) = running.listed.0.lock().get_mut(&running.listed.1) {
            (call.told, call.waits) = (None, true);
        }
        let mut parked = self.lock();
        parked.push_back((id, running, reply));
        if parked.len() > MAX_PARKED {
            drop(parked.pop_front());
        }
    }

    /// The call goes on with this answer; none when it waits no longer.
    pub fn resume(&self, id: CallId, answer: Value) -> Option<Running> {
        let mut parked = self.lock();
        let at = parked.iter().position(|(parked, ..)| *parked == id)?;
        let (_, running, reply) = parked.remove(at)?;
        // One whose server has given the question up goes on as well.
        let _ = reply.send(answer);
        Some(running)
    }

    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Whether this call waits.
    pub fn has(&self, id: CallId) -> bool {
        self.lock().iter().any(|(parked, ..)| *parked == id)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use futures::FutureExt;

    fn asked() -> Value {
        json!({ "type": "object", "required": ["name"],
            "properties": { "name": { "type": "string" }, "age": { "type": "integer", "default": 7 } } })
    }

    #[test]
    fn a_request_to_a_model_is_text_and_bounded() {
        let message = |content: Value| json!({ "role": "user", "content": content });
        let text = json!({ "type": "text", "text": "hi\u{1b}" });
        let params = json!({ "messages": [message(text.clone()), message(json!([text]))], "maxTokens": 1_000_000 });
        let asked = request(&params).unwrap();
        assert_eq!((&asked["messages"][1]["text"], &asked["max_tokens"]), (&json!("hi"), &json!(MAX_TOKENS)));
        let image = json!({ "messages": [message(json!({ "type": "image", "data": "AAAA" }))] });
        let long = json!({ "messages": [message(json!({ "type": "text", "text": "x".repeat(MAX_FORM) }))] });
        assert_eq!([request(&image), request(&long), request(&json!({ "messages": [] }))], [None, None, None]);
    }

    #[test]
    fn a_form_is_one_question_that_can_be_declined_and_cancelled() {
        let question = question("s", "Who are you?", &asked());
        assert_eq!(question.question, "The MCP server s asks: Who are you?");
        assert_eq!(question.buttons, Some(vec![json!({ "action": "decline" }), json!({ "action": "cancel" })]));
        let accept = &question.schema["oneOf"][0];
        assert_eq!(accept["required"], json!(["action", "content"]));
        assert_eq!(accept["properties"]["content"]["additionalProperties"], false);
    }

    #[test]
    fn pages_are_those_that_a_person_can_be_sent_to() {
        let url = |url: &str| match page("sign in\u{1b}", url) {
            Some(ServerRequest::Page { message, url }) => Some((message, url)),
            _ => None,
        };
        assert_eq!(url("https://shop.example/pay?id=1").unwrap().0, "sign in");
        assert_eq!(url("https://\u{440}aypal.com/").unwrap().1, "https://xn--aypal-uye.com/");
        assert!(url("http://127.0.0.1:9000/x").is_some());
        for wrong in
            ["http://shop.example/", "javascript:alert(1)", "file:///etc/passwd", "https://me:key@shop.example/", "x"]
        {
            assert_eq!(url(wrong), None, "{wrong}");
        }
        assert_eq!(url(&format!("https://shop.example/{}", "a".repeat(MAX_URL))), None);
        let refusal = |code: i32, elicitations: Value| {
            pages_before(&ErrorData::new(ErrorCode(code), "first", Some(json!({ "elicitations": elicitations }))))
        };
        let one = json!({ "mode": "url", "url": "https://shop.example/", "message": "Sign in.", "elicitationId": "1" });
        assert_eq!(refusal(-32_042, json!([one, one])).unwrap().len(), 2);
        let form = json!({ "mode": "form", "message": "x" });
        for (code, asked) in [(-32_042, json!([])), (-32_042, json!([one, form])), (-32_602, json!([one]))] {
            assert!(refusal(code, asked).is_none());
        }
        let question = page_question("shop", "Sign in.", "https://shop.example/");
        assert_eq!(
            question.question,
            "The MCP server shop asks you to open https://shop.example/ in a browser: Sign in."
        );
    }

    #[test]
    fn a_server_is_told_the_values_with_its_defaults_or_a_no() {
        let form = asked();
        let told = result(&form, json!({ "action": "accept", "content": { "name": "Ada" } }));
        assert_eq!(told.content, Some(json!({ "name": "Ada", "age": 7 })));
        for (reply, action) in [
            (json!({ "action": "decline" }), ElicitationAction::Decline),
            (json!({ "action": "cancel" }), ElicitationAction::Cancel),
            (Value::Null, ElicitationAction::Cancel),
        ] {
            let told = result(&form, reply);
            assert!(told.action == action && told.content.is_none());
        }
    }

    #[test]
    fn the_one_call_that_runs_is_told_what_the_server_says() {
        let (asks, heard) = (Arc::new(Asks::default()), Arc::new(Mutex::new(Vec::new())));
        let into = heard.clone();
        let one = asks.running(|_| futures::future::pending().boxed());
        asks.listen(&one, Some(Listener(Arc::new(move |words| into.lock().push(words)))));
        asks.tell("half\u{1b}[31m done");
        asks.tell(&"x".repeat(10_000));
        let other = asks.running(|_| futures::future::pending().boxed());
        asks.tell("of whom?");
        drop((one, other));
        asks.tell("too late");
        let heard = heard.lock();
        assert_eq!((heard[0].as_str(), heard[1].len(), heard.len()), ("half[31m done", MAX_TOLD, 2));
    }

    #[test]
    fn a_server_has_a_few_questions_waiting_and_no_more() {
        let (asks, form) = (Arc::new(Asks::default()), asked());
        let running = asks.running(|_| futures::future::pending().boxed());
        let mut asking: Vec<_> = (0..1_000).map(|_| asks.ask("x".into(), form.clone()).boxed()).collect();
        let answers: Vec<_> = asking.iter_mut().filter_map(|one| one.now_or_never()).collect();
        assert_eq!(answers.len(), 1_000 - MAX_WAITING);
        assert!(answers.iter().all(|answer| answer.action == ElicitationAction::Cancel));
        drop(running);
        let answers: Vec<_> = asking.iter_mut().take(MAX_WAITING).filter_map(|one| one.now_or_never()).collect();
        assert!(answers.len() == MAX_WAITING && answers.iter().all(|one| one.action == ElicitationAction::Cancel));
    }

    #[tokio::test]
    async fn a_question_belongs_to_the_one_call_that_runs() {
        let (asks, form) = (Arc::new(Asks::default()), asked());
        let never = || futures::future::pending().boxed();
        let nobody = asks.ask("x".into(), form.clone()).await;
        assert_eq!(nobody.action, ElicitationAction::Cancel, "no call runs");
        let mut one = asks.running(|_| never());
        let (told, ()) = tokio::join!(asks.ask("x".into(), form.clone()), async {
            let ask = one.asks.recv().await.unwrap();
            ask.reply.send(json!({ "action": "decline" })).unwrap();
        });
        assert_eq!(told.action, ElicitationAction::Decline);
        let other = asks.running(|_| never());
        let both = asks.ask("x".into(), form.clone()).await;
        assert_eq!(both.action, ElicitationAction::Cancel, "it is not known whose question it is");
        let parked = Parked::default();
        parked.park(CallId::from_key("a", "call"), other, oneshot::channel().0);
        let (told, ()) = tokio::join!(asks.ask("x".into(), form.clone()), async {
            one.asks.recv().await.unwrap().reply.send(json!({ "action": "decline" })).unwrap();
        });
        assert_eq!(told.action, ElicitationAction::Decline, "a call that waits asks nothing");
        let deep = asks.ask("x".into(), json!({ "type": "object", "properties": { "a": "x".repeat(MAX_FORM) } })).await;
        assert_eq!(deep.action, ElicitationAction::Cancel, "it is too long");
    }
}
