//! Two tenants with one of everything, and the tokens of an issuer that the door trusts.

use super::rows::Row;
use crate::{
    flows::WORKFLOW,
    openapi::check,
    support::{Door, Reply, Setup},
};
use axum::body::Body;
use buildscale_api::Auth;
use domain::{ChatEvent, Principal, TaskEvent, Timestamp};
use http::{Request, header};
use identity::{Role, Subject, TrustedIssuer, Verifier, mint};
use ports::{Clock, Secret, SystemClock};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

const ISSUER: &str = "https://issuer.example";
const AUDIENCE: &str = "buildscale";
pub const HOUR: Duration = Duration::from_secs(3600);

pub fn secret() -> Secret {
    Secret::new("the secret of the issuer in these tests")
}

/// A token that the door takes.
pub fn token(subject: &str) -> String {
    token_of(&secret(), ISSUER, AUDIENCE, subject, HOUR)
}

/// A token that may have something wrong with it.
pub fn token_of(secret: &Secret, issuer: &str, audience: &str, subject: &str, life: Duration) -> String {
    let trust = TrustedIssuer { issuer: issuer.into(), audience: audience.into() };
    mint(secret, &trust, subject, SystemClock.now(), life).unwrap()
}

/// The same, expired half an hour ago.
pub fn expired(subject: &str) -> String {
    let trust = TrustedIssuer { issuer: ISSUER.into(), audience: AUDIENCE.into() };
    let made = Timestamp::from_millis(SystemClock.now().as_millis() - 5_400_000);
    mint(&secret(), &trust, subject, made, HOUR).unwrap()
}

pub fn user_id(subject: &str) -> String {
    Subject::of(ISSUER, subject).unwrap().user.to_string()
}

pub fn accounts() -> Auth {
    let trust = TrustedIssuer { issuer: ISSUER.into(), audience: AUDIENCE.into() };
    Auth::accounts(Verifier::shared(&secret(), trust, Arc::new(SystemClock)).unwrap())
}

/// The data of a tenant.
pub struct Tenant {
    /// Its owner's name at the issuer; its texts have `SECRET-<name>` in them.
    pub name: String,
    pub token: String,
    /// Ids and names, as rows have them in braces.
    pub has: BTreeMap<String, String>,
    /// The path of its workspace.
    pub workspace: String,
}

pub struct World {
    pub door: Door,
    /// The time for the door: always the same. However slow the machine is, a minute is not over.
    pub clock: Arc<Standing>,
}

/// A clock that stands still; its ids are drawn.
pub struct Standing(Timestamp);

impl Clock for Standing {
    fn now(&self) -> Timestamp {
        self.0
    }
    fn id(&self) -> uuid::Uuid {
        SystemClock.id()
    }
}

impl World {
    pub fn open() -> Self {
        Self::with(accounts())
    }

    pub fn with(auth: Auth) -> Self {
        Self::of(Setup { auth, ..Setup::default() })
    }

    /// With other parts; the clock is this world's own.
    pub fn of(setup: Setup) -> Self {
        let clock = Arc::new(Standing(SystemClock.now()));
        Self { door: Door::with(Setup { clock: clock.clone(), ..setup }), clock }
    }

    /// Calls as somebody. An event stream that is let in is not read: it has no end.
    pub async fn call(&self, token: Option<&str>, method: &str, target: &str, body: &str) -> Reply {
        let headers = token.map(|token| (header::AUTHORIZATION, format!("Bearer {token}")));
        self.call_with(headers.into_iter().collect(), method, target, body).await
    }

    pub async fn call_with(
        &self,
        headers: Vec<(header::HeaderName, String)>,
        method: &str,
        target: &str,
        body: &str,
    ) -> Reply {
        let mut request = Request::builder().method(method).uri(target);
        if headers.iter().all(|(name, _)| name != header::HOST) {
            request = request.header(header::HOST, "buildscale.test");
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if target.starts_with("/v1/") {
            request = request.header("x-client-id", "test");
        }
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let response = self.door.send(request.body(Body::from(body.to_owned())).unwrap()).await;
        let (parts, body) = response.into_parts();
        let kind = parts.headers.get(header::CONTENT_TYPE).map_or("", |kind| kind.to_str().unwrap());
        let endless = kind.starts_with("text/event-stream");
        let bytes = if endless { Default::default() } else { axum::body::to_bytes(body, usize::MAX).await.unwrap() };
        let json = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        let reply = Reply { status: parts.status, headers: parts.headers, bytes, json };
        if reply.header(header::CONTENT_TYPE.as_str()) == "application/json" {
            check(method, target, &reply);
        }
        reply
    }

    pub async fn json(&self, token: &str, method: &str, target: &str, body: Value) -> Reply {
        self.call(Some(token), method, target, &body.to_string()).await
    }

    /// A tenant with one of everything.
    pub async fn tenant(&self, name: &str) -> Tenant {
        let token = token(name);
        let secret = format!("SECRET-{name}");
        let made = self.json(&token, "POST", "/api/v1/workspaces", json!({ "name": secret })).await.is(201);
        let id = made.text("workspace_id");
        let workspace = format!("/api/v1/workspaces/{id}");
        let post = async |to: &str, body: Value| {
            let reply = self.json(&token, "POST", &format!("{workspace}/{to}"), body).await;
            assert!(reply.status.is_success(), "{to}: {}", String::from_utf8_lossy(&reply.bytes));
            reply
        };
        let file = async |path: &str, content: &str| {
            post("files", json!({ "path": path, "content": content })).await.text("file_id")
        };
        let file_id = file("/notes.md", &secret).await;
        let second = json!({ "content": format!("{secret} again") });
        self.json(&token, "PUT", &format!("{workspace}/files/{file_id}"), second).await.is(200);
        let plan_id = file("/plan.md", &format!("- [ ] {secret}\n")).await;
        let trashed_id = file("/gone.md", &secret).await;
        self.call(Some(&token), "DELETE", &format!("{workspace}/files/{trashed_id}"), "").await.is(200);
        let flow = format!("flow-of-{name}");
        file(&format!("/system/flows/{flow}/workflow.yaml"), WORKFLOW).await;
        let suites = "suites:\n  - name: s\n    cases:\n      - id: c\n        input: {good: true}\n        assertions: [{type: status, expected: success}]\n";
        file(&format!("/system/flows/{flow}/evaluations.yaml"), suites).await;
        let agent = format!("agent-of-{name}");
        file(&format!("/system/agents/{agent}/AGENT.md"), &secret).await;

        let chat_id = post("chats", json!({ "goal": secret })).await.text("chat_id");
        let message_id = domain::MessageId(uuid());
        let said = ChatEvent::Chunk { text: secret.clone(), message_id };
        let permission_id = uuid();
        let resolved = ChatEvent::PermissionResolved {
            permission_id: domain::PermissionId(permission_id),
            outcome: domain::event::PermissionOutcome::Declined,
            by: "timeout".into(),
            always: None,
            reason: None,
            option_id: None,
            at: self.clock.now(),
        };
        let chat = format!("{workspace}/chats/{chat_id}");
        self.door.put_events(&chat, vec![said, resolved]).await;
        self.door.put_permission(&chat, permission_id).await;
        let here = format!("?workspaceId={id}");
        let new = json!({ "agent": "buildscale", "cwd": "/workspace", "title": secret });
        let thread_id = self.json(&token, "POST", &format!("/v1/threads{here}"), new).await.is(200).text("threadId");
        let turns = format!("/v1/threads/{thread_id}/turns{here}");
        let turn_id = self.json(&token, "POST", &turns, json!({ "input": secret })).await.is(202).text("turnId");
        let rule = domain::PermissionRule::Command { words: vec![secret.clone()], folder: domain::FilePath::root() };
        self.door.put_view(&format!("{workspace}/chats/{thread_id}"), json!({ "permissions": [rule] })).await;
        let standing_id = self.door.put_standing_rule(&workspace, &rule).await;
        let task = async || post(&format!("flows/{flow}/tasks"), json!({ "input": secret })).await.text("task_id");
        let (task_id, other_task_id) = (task().await, task().await);
        let happened = TaskEvent::Routed { from: "begin".into(), to: secret.as_str().into() };
        self.door.put_task_events(&format!("{workspace}/tasks/{task_id}"), vec![happened]).await;
        let evaluation_id = post(&format!("flows/{flow}/evaluations"), json!({})).await.text("evaluation_id");
        let due = json!({ "kind": "chat", "goal": secret });
        let due = json!({ "name": secret, "rrule": "FREQ=DAILY", "action": due });
        let schedule_id = post("schedules", due).await.text("schedule_id");
        let hook = json!({ "name": secret, "url": "https://receiver.example/", "events": ["turn.ended"] });
        let made = self.json(&token, "POST", &format!("{workspace}/webhooks"), hook).await.is(201);
        let webhook_id = made.json["webhook"]["webhook_id"].as_str().unwrap().to_owned();
        let delivery_id = post(&format!("webhooks/{webhook_id}/test"), json!({})).await.text("delivery_id");
        let key =
            self.json(&token, "POST", "/api/v1/keys", json!({ "name": secret, "scopes": ["read"] })).await.is(201);
        let carl = user_id(&format!("carl-of-{name}"));
        post("members", json!({ "user_id": carl, "role": "viewer" })).await;

        let has = [
            ("workspace_id", id),
            ("file_id", file_id),
            ("trashed_id", trashed_id),
            ("plan_id", plan_id),
            ("response_id", format!("resp_{0}{0}", chat_id.replace('-', ""))),
            ("chat_id", chat_id),
            ("task_id", task_id),
            ("other_task_id", other_task_id),
            ("evaluation_id", evaluation_id),
            ("schedule_id", schedule_id),
            ("webhook_id", webhook_id),
            ("delivery_id", delivery_id),
            ("key_id", key.json["api_key"]["key_id"].as_str().unwrap().to_owned()),
            ("user_id", carl),
            ("flow", flow),
            ("agent", agent),
            ("question_id", uuid().to_string()),
            ("call_id", uuid().to_string()),
            ("permission_id", permission_id.to_string()),
            ("rule_id", rule.id()),
            ("standing_id", standing_id),
            ("thread_id", thread_id),
            ("turn_id", turn_id),
            ("node", "choose".into()),
            ("v", "1".into()),
            ("sha256", domain::Sha256::of(secret.as_bytes()).to_string()),
            ("name", "workflow".into()),
            ("tag", "open".into()),
            ("server", "tracker".into()),
        ];
        let has = has.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Tenant { name: name.to_owned(), token, has, workspace }
    }

    /// Somebody with this role in a tenant's workspace: their name at the issuer.
    pub async fn person_as(&self, tenant: &Tenant, role: Role) -> String {
        let name = format!("{role}-of-{}", tenant.name);
        let body = json!({ "subject": name, "role": role });
        self.json(&tenant.token, "POST", &format!("{}/members", tenant.workspace), body).await.is(201);
        name
    }

    /// An API key of somebody.
    pub async fn key(&self, name: &str, scopes: &[identity::Action], workspaces: Option<&str>) -> String {
        let mut body = json!({ "name": "test", "scopes": scopes });
        if let Some(only) = workspaces {
            body["workspaces"] = json!([only]);
        }
        self.json(&token(name), "POST", "/api/v1/keys", body).await.is(201).text("key")
    }

    /// A reading API key of the machine's own person, who has this token.
    pub async fn key_of_the_machine(&self, token: &str) -> String {
        let body = json!({ "name": "test", "scopes": ["read"] });
        self.json(token, "POST", "/api/v1/keys", body).await.is(201).text("key")
    }
}

impl Tenant {
    /// Fills in the ids of this tenant, but for `swapped`, which is the other's.
    pub fn fill(&self, text: &str, swapped: Option<(&str, &Self)>) -> String {
        self.has.iter().fold(text.to_owned(), |text, (name, own)| {
            let value = match swapped {
                Some((which, other)) if which == name => &other.has[name],
                _ => own,
            };
            text.replace(&format!("{{{name}}}"), value)
        })
    }

    /// A row's call.
    pub fn filled(&self, row: &Row, swapped: Option<(&str, &Self)>) -> (String, String) {
        (self.fill(&row.target(), swapped), self.fill(row.body, swapped))
    }

    /// A text that no other tenant may read.
    pub fn secret(&self) -> String {
        format!("SECRET-{}", self.name)
    }
}

pub fn uuid() -> uuid::Uuid {
    SystemClock.id()
}

#[test]
fn no_person_of_the_issuer_is_the_machines_own_person() {
    assert_ne!(user_id("ann"), Principal::local().user().to_string());
    assert!(Subject::of(ISSUER, &Principal::local().user().to_string()).is_none());
}
