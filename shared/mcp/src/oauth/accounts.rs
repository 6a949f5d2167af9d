//! Sign-ins that wait for a person, and the accounts that came of them: rows whose contents are sealed.

use super::{
    credentials::is_credential,
    fetch::Fetch,
    grant::{self, Client, FoundIssuer, NoTokens, Tokens, exposed, exposed_token},
    metadata::{Challenge, Issuer},
    seal::{self, KeySource},
};
use crate::Egress;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::{Code, Error, Sha256, Timestamp, WorkspaceId};
use ports::{Clock, Expect, Key, KnownSecrets, Secret, SignIn, SignInAnswer, Table, Write};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// How long a person has to sign in.
const PENDING: Duration = Duration::from_secs(600);
/// A token is renewed so long before its end.
const EARLY: Duration = Duration::from_secs(20);
/// The wrong codes that end a sign-in.
const MOST_WRONG: u32 = 5;

/// The parts that accounts are kept with.
#[derive(Clone)]
pub struct AccountDependencies {
    /// The rows.
    pub table: Arc<dyn Table>,
    /// The key that seals them.
    pub key: KeySource,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Learns each token, so that it is taken out of all that is written down.
    pub known: KnownSecrets,
}

/// A server of a workspace, as its account knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holder {
    pub workspace: WorkspaceId,
    pub server: String,
    pub url: String,
    pub allow_private: bool,
}

/// The partition of the accounts of a workspace.
pub(super) fn partition(workspace: WorkspaceId) -> String {
    format!("{workspace}/mcp")
}

impl Holder {
    pub(super) fn key(&self) -> Key {
        Key::new(partition(self.workspace), format!("account/{}", self.server))
    }

    fn unconfirmed(&self) -> Key {
        Key::new(partition(self.workspace), format!("unconfirmed/{}", self.server))
    }

    fn place_of_unconfirmed(&self) -> String {
        format!("{}/unconfirmed", self.place())
    }

    /// The place that tokens are sealed for: after another declaration of the server they are good for nothing.
    pub(super) fn place(&self) -> String {
        format!("{}/{}/{}", self.workspace, self.server, self.url)
    }
}

/// An account at a server.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredAccount {
    pub issuer: Issuer,
    pub client: Client,
    pub resource: String,
    #[serde(serialize_with = "exposed_token")]
    pub access_token: Secret,
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "exposed")]
    pub refresh_token: Option<Secret>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// The sign-in that an account came of: that of another one is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Session(Option<Timestamp>);

impl StoredAccount {
    pub fn token(&self) -> Token {
        Token { secret: self.access_token.clone(), expires_at: self.expires_at }
    }
}

/// A token, and the end of its time where that is known.
#[derive(Clone)]
pub(crate) struct Token {
    pub secret: Secret,
    expires_at: Option<Timestamp>,
}

impl Token {
    /// Whether it is good for a while.
    pub fn is_good(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|at| now + EARLY < at)
    }
}

/// An account whose sign-in waits for its code.
#[derive(Serialize, Deserialize)]
struct Unconfirmed {
    account: StoredAccount,
    code: String,
    /// How many wrong codes were given.
    wrong: u32,
}

/// A sign-in that a person was asked for.
#[derive(Serialize, Deserialize)]
struct Pending {
    holder: Holder,
    #[serde(default)]
    confirms: bool,
    /// Whether it has a row among those of its workspace, without which it is void. One that an earlier version began has none.
    #[serde(default)]
    is_listed: bool,
    issuer: Issuer,
    client: Client,
    resource: String,
    verifier: String,
    redirect: String,
}

/// A row: nothing in it is readable without the key of the host.
#[derive(Serialize, Deserialize)]
struct Row {
    version: u32,
    sealed: String,
    /// A process renews the token, until then at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    renewing_until: Option<Timestamp>,
}

/// The contents of a row.
pub(super) struct StoredRow<T> {
    pub value: T,
    pub rev: u64,
    pub renewing_until: Option<Timestamp>,
}

/// The client that the operator or the workspace has at the issuer, and the scope that it asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Registered {
    pub client_id: Option<String>,
    pub client_secret: Option<Secret>,
    pub scope: Option<String>,
}

pub(super) fn unavailable(error: impl std::fmt::Display) -> Error {
    Error::new(Code::UpstreamUnavailable, format!("the accounts of MCP servers cannot be read or written: {error}"))
}

fn refused(server: &str, why: &str) -> Error {
    Error::new(Code::UpstreamRefused, format!("nobody can sign in at the MCP server {server}: {why}"))
}

/// Finds the issuer of a server, and the resource that its tokens are for.
///
/// # Errors
/// `UPSTREAM_REFUSED` when the server makes no sign-in possible, with the reason.
pub(crate) async fn find(egress: &dyn Egress, holder: &Holder, challenge: &Challenge) -> Result<FoundIssuer, Error> {
    let fetch = Fetch { egress, allow_private: holder.allow_private };
    let told = |why: String| refused(&holder.server, &why);
    let server = Url::parse(&holder.url).map_err(|error| told(format!("its address is none: {error}")))?;
    grant::find(fetch, &server, challenge).await.map_err(told)
}

impl AccountDependencies {
    /// A row; none where there is none, or one that is damaged: a person signs in over it.
    pub(super) async fn read<T: for<'a> Deserialize<'a>>(
        &self,
        key: &Key,
        place: &str,
    ) -> Result<Option<StoredRow<T>>, Error> {
        let Some(item) = self.table.get(key).await.map_err(unavailable)? else { return Ok(None) };
        // Without the words of the error, which may have a token in them.
        let damaged = |error: serde_json::Error| {
            let (row, column) = (&key.sk, error.column());
            tracing::warn!(row, column, "a row about an account at an MCP server is damaged, and counts as none");
            Ok(None)
        };
        let row: Row = match serde_json::from_str(&item.body) {
            Ok(row) => row,
            Err(error) => return damaged(error),
        };
        let Some(text) = seal::open(&self.key, place, &row.sealed).map_err(unavailable)? else { return Ok(None) };
        match serde_json::from_str(&text) {
            Ok(value) => Ok(Some(StoredRow { value, rev: item.rev, renewing_until: row.renewing_until })),
            Err(error) => damaged(error),
        }
    }

    fn row(&self, place: &str, value: &impl Serialize, renewing_until: Option<Timestamp>) -> Result<String, Error> {
        let text = serde_json::to_string(value).map_err(unavailable)?;
        let sealed = seal::seal(&self.key, place, &text).map_err(unavailable)?;
        serde_json::to_string(&Row { version: 1, sealed, renewing_until }).map_err(unavailable)
    }

    /// Writes an account; whether nobody was faster.
    pub(super) async fn write(
        &self,
        holder: &Holder,
        account: &StoredAccount,
        renewing_until: Option<Timestamp>,
        expect: Expect,
    ) -> Result<bool, Error> {
        let body = self.row(&holder.place(), account, renewing_until)?;
        match self.table.commit(vec![Write::put(holder.key(), body, expect)]).await {
            Ok(()) => Ok(true),
            Err(ports::Error::Conflict { .. }) => Ok(false),
            Err(error) => Err(unavailable(error)),
        }
    }

    /// Has the credentials of an account taken out of all that is written down.
    pub(super) fn learn<'a>(&self, secrets: impl IntoIterator<Item = &'a Secret>) {
        self.known.learn_passing(secrets.into_iter().filter(|secret| is_credential(secret.expose())));
    }

    /// Begins a sign-in at the issuer that was found: the address for the person.
    ///
    /// # Errors
    /// `UPSTREAM_REFUSED` when the issuer makes no sign-in possible, with the reason.
    pub(crate) async fn begin(
        &self,
        egress: &dyn Egress,
        holder: Holder,
        found: FoundIssuer,
        registered: Registered,
        (redirect, confirms): (&str, bool),
    ) -> Result<SignIn, Error> {
        let fetch = Fetch { egress, allow_private: holder.allow_private };
        let told = |why: String| refused(&holder.server, &why);
        let client = match registered.client_id {
            Some(id) => {
                let secret = registered.client_secret;
                let method = if secret.is_none() { "none" } else { found.issuer.method() };
                // One that has a secret is no public client.
                let method = if secret.is_some() && method == "none" { "client_secret_basic" } else { method };
                Client { id, secret, method: method.into() }
            }
            None => grant::register(fetch, &found.issuer, redirect).await.map_err(told)?,
        };
        let (state, verifier) = (seal::random_text().map_err(told)?, seal::random_text().map_err(told)?);
        self.known.learn_passing([&Secret::new(&*verifier)]);
        self.learn(&client.secret);
        // RFC 7636 §4.2.
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::of(verifier.as_bytes()).as_bytes());
        let scope = registered.scope.or(found.scope);
        let mut pairs = vec![
            ("redirect_uri", redirect),
            ("state", &state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &found.resource),
        ];
        pairs.extend(scope.iter().map(|scope| ("scope", scope.as_str())));
        let url = grant::authorize_url(&found.issuer, &client, &pairs).map_err(told)?;
        let expires_at = self.clock.now() + PENDING;
        let (key, place) = pending_at(&state);
        let (redirect, resource) = (redirect.to_owned(), found.resource);
        let listed = Write::put(listed_at(&holder, &state), "{}", Expect::Absent).expiring(expires_at);
        let (is_listed, issuer) = (true, found.issuer);
        let pending = Pending { holder, confirms, is_listed, issuer, client, resource, verifier, redirect };
        let write = Write::put(key, self.row(&place, &pending, None)?, Expect::Absent).expiring(expires_at);
        self.table.commit(vec![write, listed]).await.map_err(unavailable)?;
        Ok(SignIn { url: url.into(), expires_at })
    }

    /// Completes a sign-in with the answer that the issuer sent along with the person's browser; each answer once. Gives the code by which the account
    /// is confirmed, if it has to be.
    ///
    /// # Errors
    /// `NOT_FOUND` for an answer that no sign-in waits for; `UPSTREAM_REFUSED` when the person or the issuer refused it.
    pub(crate) async fn complete(
        &self,
        egress: &dyn Egress,
        answer: &SignInAnswer,
    ) -> Result<(Holder, Option<String>), Error> {
        let (key, place) = pending_at(&answer.state);
        let nobody = || {
            Error::new(Code::NotFound, "no sign-in waits for this answer: it was used, or took longer than 10 minutes")
                .hint("begin the sign-in again")
        };
        let StoredRow { value: pending, rev, .. } = self.read::<Pending>(&key, &place).await?.ok_or_else(nobody)?;
        let Pending { holder, confirms, is_listed, issuer, client, resource, verifier, redirect } = pending;
        let listed = is_listed.then(|| listed_at(&holder, &answer.state));
        let checked = listed.clone().map(|listed| Write::check(listed, Expect::Present));
        self.commit_or(nobody, checked.into_iter().chain([Write::delete(key, Expect::Rev(rev))])).await?;
        // The last write depends on it, too: the workspace may end while the issuer is asked.
        let unlisted = listed.map(|listed| Write::delete(listed, Expect::Present));
        // RFC 9207 §2.4: an answer of another issuer is not believed.
        let is_from = match &answer.iss {
            Some(iss) => *iss == issuer.issuer,
            None => !issuer.authorization_response_iss_parameter_supported,
        };
        if !is_from {
            return Err(refused(&holder.server, "the answer is that of another issuer"));
        }
        let Some(code) = answer.code.as_deref().filter(|_| answer.error.is_none()) else {
            let why = answer.error.as_deref().unwrap_or("the answer has no code");
            let plain: String =
                why.chars().filter(|c| c.is_ascii_alphanumeric() || " _-".contains(*c)).take(64).collect();
            return Err(refused(&holder.server, &plain));
        };
        let pairs = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &*redirect),
            ("code_verifier", &*verifier),
            ("resource", &*resource),
        ];
        let fetch = Fetch { egress, allow_private: holder.allow_private };
        let tokens = match grant::tokens(fetch, &issuer, &client, &pairs).await {
            Ok(tokens) => tokens,
            Err(NoTokens::Refused(why) | NoTokens::Failed(why)) => return Err(refused(&holder.server, &why)),
        };
        self.learn([&tokens.access_token].into_iter().chain(&tokens.refresh_token));
        let since = Some(self.clock.now());
        let account = StoredAccount { since, ..self.account(issuer, client, resource, tokens, None) };
        let (write, code) = match confirms {
            false => (Write::put(holder.key(), self.row(&holder.place(), &account, None)?, Expect::Any), None),
            true => {
                let code = seal::random_digits().map_err(unavailable)?;
                let unconfirmed = Unconfirmed { account, code: code.clone(), wrong: 0 };
                (self.unconfirmed(&holder, &unconfirmed, Expect::Any)?, Some(code))
            }
        };
        self.commit_or(nobody, unlisted.into_iter().chain([write])).await?;
        Ok((holder, code))
    }

    /// Commits all of these writes. Where somebody was faster, nothing is written, and `refused` is the error.
    async fn commit_or(
        &self,
        refused: impl FnOnce() -> Error,
        writes: impl IntoIterator<Item = Write>,
    ) -> Result<(), Error> {
        match self.table.commit(writes.into_iter().collect()).await {
            Ok(()) => Ok(()),
            Err(ports::Error::Conflict { .. }) => Err(refused()),
            Err(error) => Err(unavailable(error)),
        }
    }

    fn unconfirmed(&self, holder: &Holder, unconfirmed: &Unconfirmed, expect: Expect) -> Result<Write, Error> {
        let body = self.row(&holder.place_of_unconfirmed(), unconfirmed, None)?;
        Ok(Write::put(holder.unconfirmed(), body, expect).expiring(self.clock.now() + PENDING))
    }

    /// Makes the account of a completed sign-in the workspace's, by its code.
    ///
    /// # Errors
    /// `NOT_FOUND` where none waits for a code; `INVALID_ARGUMENT` for another code.
    pub(crate) async fn confirm(&self, holder: &Holder, code: &str) -> Result<(), Error> {
        let nobody = || {
            Error::new(Code::NotFound, "no sign-in waits for a code: it took longer than 10 minutes, or was confirmed")
                .hint("begin the sign-in again")
        };
        let found = self.read::<Unconfirmed>(&holder.unconfirmed(), &holder.place_of_unconfirmed()).await?;
        let StoredRow { value: Unconfirmed { account, code: expected, wrong }, rev, .. } = found.ok_or_else(nobody)?;
        let given: String = code.chars().filter(char::is_ascii_digit).collect();
        if given == expected {
            let body = self.row(&holder.place(), &account, None)?;
            let gone = Write::delete(holder.unconfirmed(), Expect::Rev(rev));
            return self.commit_or(nobody, [gone, Write::put(holder.key(), body, Expect::Any)]).await;
        }
        let wrong = wrong + 1;
        let write = match wrong < MOST_WRONG {
            true => self.unconfirmed(holder, &Unconfirmed { account, code: expected, wrong }, Expect::Rev(rev))?,
            false => Write::delete(holder.unconfirmed(), Expect::Rev(rev)),
        };
        self.table.commit(vec![write]).await.map_err(unavailable)?;
        Err(Error::invalid("code", "that is not the code of the sign-in")
            .hint("the page at the end of the sign-in shows it: eight digits"))
    }

    pub(super) fn account(
        &self,
        issuer: Issuer,
        client: Client,
        resource: String,
        tokens: Tokens,
        refresh_before: Option<Secret>,
    ) -> StoredAccount {
        let expires_at = tokens.expires_in.map(|seconds| self.clock.now() + Duration::from_secs(seconds.min(1 << 32)));
        // An issuer that rotates none gives none: the one before stays good.
        let refresh_token = tokens.refresh_token.or(refresh_before);
        StoredAccount {
            issuer,
            client,
            resource,
            access_token: tokens.access_token,
            refresh_token,
            expires_at,
            since: None,
        }
    }

    /// Whether there is an account.
    ///
    /// # Errors
    /// When that cannot be read.
    pub(crate) async fn has(&self, holder: &Holder) -> Result<bool, Error> {
        Ok(self.session(holder).await?.is_some())
    }

    /// The sign-in that the account came of; none without an account.
    ///
    /// # Errors
    /// When that cannot be read.
    pub(crate) async fn session(&self, holder: &Holder) -> Result<Option<Session>, Error> {
        let kept = self.read::<StoredAccount>(&holder.key(), &holder.place()).await?;
        Ok(kept.map(|kept| Session(kept.value.since)))
    }

    /// Forgets an account; none is fine.
    ///
    /// # Errors
    /// When that cannot be written.
    pub(crate) async fn forget(&self, holder: &Holder) -> Result<(), Error> {
        self.table.commit(vec![Write::delete(holder.key(), Expect::Any)]).await.map_err(unavailable)
    }
}

/// The row by which a workspace knows of a sign-in that waits: it goes with the workspace, and the sign-in is void then.
fn listed_at(holder: &Holder, state: &str) -> Key {
    Key::new(partition(holder.workspace), format!("sign-in/{}", Sha256::of(state.as_bytes())))
}

/// The place of a sign-in that waits. The row does not tell the state: only the browser of the person has it.
fn pending_at(state: &str) -> (Key, String) {
    let digest = Sha256::of(state.as_bytes());
    (Key::new(format!("mcp-sign-in/{digest}"), "pending"), json!(["sign-in", digest.to_string()]).to_string())
}
