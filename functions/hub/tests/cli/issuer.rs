//! An issuer of tokens that is stricter than a real one: it takes a request only as the standards write it, and remembers each fault.

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use jsonwebtoken::{Algorithm, EncodingKey, Header, jwk::Jwk};
use parking_lot::{Mutex, MutexGuard};
use ports::{Clock, SystemClock};
use reqwest::Url;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;

pub const CLIENT: &str = "buildscale-cli";
pub const AUDIENCE: &str = "https://buildscale.test";
const SCOPE: &str = "openid offline_access";
const INTERVAL: Duration = Duration::from_secs(1);
const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// A key for ES256, PKCS #8; of these tests alone.
const KEY: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgOqCg9daYtFyJcqCgfp560zD/S/mkr4XfYnIGTIedmYyhRANCAAQsM5Tu59//bxhwPDazipkaPFo9wnZSPiqrjJWRhsDLUOSY8v0+XCybOWkaiCDNxAXf0rKAzmqL5wV2/RSdeWHH";

type Reply = (StatusCode, Value);
type Fields = BTreeMap<String, String>;

/// The decision of the person whom a code is shown to, from the second question on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Person {
    Confirms,
    Declines,
    DoesNotCome,
}

/// An issuer on this machine, for as long as the process runs.
#[derive(Clone)]
pub struct Issuer {
    pub url: String,
    inside: Arc<Mutex<Inside>>,
}

struct Inside {
    url: String,
    person: Person,
    /// When each code may be asked about again, and how often it was.
    codes: HashMap<String, (Instant, u32)>,
    refresh_tokens: HashSet<String>,
    /// Every token that was ever given.
    given: Vec<String>,
    refreshes: usize,
    revoked: usize,
    faults: Vec<String>,
}

impl Issuer {
    pub fn start(person: Person) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let inside = Arc::new(Mutex::new(Inside {
            url: url.clone(),
            person,
            codes: HashMap::new(),
            refresh_tokens: HashSet::new(),
            given: Vec::new(),
            refreshes: 0,
            revoked: 0,
            faults: Vec::new(),
        }));
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(configuration))
            .route("/jwks", get(|| async { Json(keys()) }))
            .route("/device", post(device))
            .route("/token", post(token))
            .route("/revoke", post(revoke))
            .with_state(inside.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                axum::serve(listener, router).await.unwrap();
            });
        });
        Self { url, inside }
    }

    /// The variables of a hub that trusts it.
    pub fn trusted(&self) -> Vec<(&'static str, String)> {
        vec![
            ("BUILDSCALE__AUTH__ISSUER", self.url.clone()),
            ("BUILDSCALE__AUTH__AUDIENCE", AUDIENCE.into()),
            ("BUILDSCALE__AUTH__JWKS_URL", format!("{}/jwks", self.url)),
            ("BUILDSCALE__AUTH__CLI_CLIENT_ID", CLIENT.into()),
        ]
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock()
    }

    pub fn refreshes(&self) -> usize {
        self.inside().refreshes
    }

    pub fn revoked(&self) -> usize {
        self.inside().revoked
    }

    /// Ends all logins, as an administrator would.
    pub fn forget(&self) {
        self.inside().refresh_tokens.clear();
    }

    /// Every access token, refresh token and device code so far.
    pub fn given(&self) -> Vec<String> {
        self.inside().given.clone()
    }

    #[track_caller]
    pub fn has_no_complaint(&self) {
        assert_eq!(self.inside().faults, Vec::<String>::new());
    }
}

impl Inside {
    fn refuse(&mut self, error: &str, fault: impl Into<String>) -> Reply {
        self.faults.push(fault.into());
        refusal(error)
    }

    fn fresh(&mut self, kind: &str) -> String {
        let fresh = format!("{kind}-{}-of-the-issuer", self.given.len());
        self.given.push(fresh.clone());
        fresh
    }

    /// An access token that the hub takes for an hour, and of which the client is told that it has no time left.
    fn tokens(&mut self) -> Reply {
        let now = SystemClock.now().as_millis() / 1000;
        let id = self.given.len();
        let claims =
            json!({ "sub": "ann", "iss": self.url, "aud": AUDIENCE, "exp": now + 3600, "jti": id.to_string() });
        let header = Header { kid: Some("k1".into()), ..Header::new(Algorithm::ES256) };
        let access = jsonwebtoken::encode(&header, &claims, &signing()).unwrap();
        self.given.push(access.clone());
        let refresh = self.fresh("refresh");
        self.refresh_tokens.insert(refresh.clone());
        let tokens =
            json!({ "access_token": access, "token_type": "Bearer", "expires_in": 0, "refresh_token": refresh });
        (StatusCode::OK, tokens)
    }

    fn by_code(&mut self, fields: &Fields) -> Reply {
        if let Some(fault) = other_than(fields, &["client_id", "device_code", "grant_type"]) {
            return self.refuse("invalid_request", fault);
        }
        let code = fields["device_code"].clone();
        let Some((next, asked)) = self.codes.get(&code).copied() else {
            return self.refuse("invalid_grant", "a code that is over is asked about again");
        };
        // The clock of the client is another one; a tenth is more than they differ.
        if Instant::now() + INTERVAL / 10 < next {
            return self.refuse("slow_down", "asked before the interval was over");
        }
        self.codes.insert(code.clone(), (Instant::now() + INTERVAL, asked + 1));
        if asked == 0 {
            return refusal("authorization_pending");
        }
        self.codes.remove(&code);
        match self.person {
            Person::Confirms => self.tokens(),
            Person::Declines => refusal("access_denied"),
            Person::DoesNotCome => refusal("expired_token"),
        }
    }

    fn by_refresh(&mut self, fields: &Fields) -> Reply {
        if let Some(fault) = other_than(fields, &["client_id", "grant_type", "refresh_token"]) {
            return self.refuse("invalid_request", fault);
        }
        // Each is good once.
        if !self.refresh_tokens.remove(&fields["refresh_token"]) {
            return refusal("invalid_grant");
        }
        self.refreshes += 1;
        self.tokens()
    }
}

fn refusal(error: &str) -> Reply {
    (StatusCode::BAD_REQUEST, json!({ "error": error }))
}

fn signing() -> EncodingKey {
    EncodingKey::from_ec_der(&STANDARD.decode(KEY).unwrap())
}

fn keys() -> Value {
    let mut jwk = serde_json::to_value(Jwk::from_encoding_key(&signing(), Algorithm::ES256).unwrap()).unwrap();
    jwk["kid"] = json!("k1");
    json!({ "keys": [jwk] })
}

/// The fields of a form, each once; or why it is none.
fn form(headers: &HeaderMap, body: &str) -> Result<Fields, String> {
    if headers.get("content-type").is_none_or(|kind| kind != "application/x-www-form-urlencoded") {
        return Err("it is no form".into());
    }
    if headers.contains_key("authorization") {
        return Err("a public client has no credential".into());
    }
    let mut fields = Fields::new();
    for (name, value) in Url::parse(&format!("http://x/?{body}")).unwrap().query_pairs() {
        if fields.insert(name.clone().into_owned(), value.into_owned()).is_some() {
            return Err(format!("{name} is there twice"));
        }
    }
    match fields.get("client_id").map(String::as_str) {
        Some(CLIENT) => Ok(fields),
        other => Err(format!("the client {other:?} is not known")),
    }
}

/// A fault, unless a form has exactly these fields.
fn other_than(fields: &Fields, expected: &[&str]) -> Option<String> {
    let is = fields.keys().map(String::as_str).eq(expected.iter().copied());
    (!is).then(|| format!("the fields are {:?}, not {expected:?}", fields.keys()))
}

type Shared = State<Arc<Mutex<Inside>>>;

async fn configuration(State(inside): Shared) -> Json<Value> {
    let url = inside.lock().url.clone();
    Json(json!({
        "issuer": url,
        "device_authorization_endpoint": format!("{url}/device"),
        "token_endpoint": format!("{url}/token"),
        "revocation_endpoint": format!("{url}/revoke"),
        "jwks_uri": format!("{url}/jwks"),
    }))
}

fn answered((status, body): Reply) -> Response {
    (status, [("cache-control", "no-store")], Json(body)).into_response()
}

async fn device(State(inside): Shared, headers: HeaderMap, body: String) -> Response {
    let mut inside = inside.lock();
    let fault = match form(&headers, &body) {
        Err(fault) => Some(fault),
        Ok(fields) => other_than(&fields, &["audience", "client_id", "scope"]).or_else(|| {
            let is = fields["scope"] == SCOPE && fields["audience"] == AUDIENCE;
            (!is).then(|| format!("scope or audience: {fields:?}"))
        }),
    };
    answered(match fault {
        Some(fault) => inside.refuse("invalid_request", fault),
        None => {
            let code = inside.fresh("code");
            inside.codes.insert(code.clone(), (Instant::now() + INTERVAL, 0));
            let url = &inside.url;
            let told = json!({
                "device_code": code,
                "user_code": "WDJB-MJHT",
                "verification_uri": format!("{url}/activate"),
                "verification_uri_complete": format!("{url}/activate?user_code=WDJB-MJHT"),
                "expires_in": 600,
                "interval": INTERVAL.as_secs(),
            });
            (StatusCode::OK, told)
        }
    })
}

async fn token(State(inside): Shared, headers: HeaderMap, body: String) -> Response {
    let mut inside = inside.lock();
    answered(match form(&headers, &body) {
        Err(fault) => inside.refuse("invalid_client", fault),
        Ok(fields) => match fields.get("grant_type").map(String::as_str) {
            Some(DEVICE_GRANT) => inside.by_code(&fields),
            Some("refresh_token") => inside.by_refresh(&fields),
            other => inside.refuse("unsupported_grant_type", format!("the grant {other:?}")),
        },
    })
}

async fn revoke(State(inside): Shared, headers: HeaderMap, body: String) -> Response {
    let mut inside = inside.lock();
    let fields = match form(&headers, &body) {
        Err(fault) => return answered(inside.refuse("invalid_client", fault)),
        Ok(fields) => fields,
    };
    if let Some(fault) = other_than(&fields, &["client_id", "token", "token_type_hint"]) {
        return answered(inside.refuse("invalid_request", fault));
    }
    if inside.refresh_tokens.remove(&fields["token"]) {
        inside.revoked += 1;
    }
    answered((StatusCode::OK, json!({})))
}
