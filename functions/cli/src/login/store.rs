//! Logins on this machine: one file per hub, in the folder of this user's state, readable for this user alone.

use crate::{
    failure::CliError,
    value::{number, text},
};
use domain::Sha256;
use ports::Secret;
use reqwest::Url;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::PathBuf,
};

/// A login, with all that is needed to refresh it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Saved {
    /// The hub that the token is for.
    pub(crate) url: String,
    pub(crate) issuer: String,
    pub(crate) token_endpoint: String,
    pub(crate) revocation_endpoint: Option<String>,
    pub(crate) client_id: String,
    #[serde(serialize_with = "exposed")]
    pub(crate) access_token: Secret,
    #[serde(serialize_with = "exposed_if_any")]
    pub(crate) refresh_token: Option<Secret>,
    /// When another token is to be had, in milliseconds since 1970; none when the issuer does not say how long this one is good.
    pub(crate) refresh_at: Option<i64>,
    /// When it expires, the same.
    pub(crate) expires_at: Option<i64>,
}

fn exposed<S: Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose())
}

fn exposed_if_any<S: Serializer>(secret: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(Secret::expose).serialize(serializer)
}

impl Saved {
    /// Takes in the answer of a token endpoint (RFC 6749 §5.1), which came at this time. An issuer that rotates refresh tokens sends a new
    /// one; another sends none, and the old one stays.
    ///
    /// # Errors
    /// The reason, when there is no token in it that can be used.
    pub(crate) fn take_in(&mut self, body: &Value, now: i64) -> Result<(), &'static str> {
        let token = text(body, "access_token");
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("its answer has no access token");
        }
        if !text(body, "token_type").eq_ignore_ascii_case("bearer") {
            return Err("its token is no bearer token");
        }
        self.access_token = Secret::new(token);
        match text(body, "refresh_token") {
            "" => {}
            fresh => self.refresh_token = Some(Secret::new(fresh)),
        }
        let life =
            body.get("expires_in").map(|_| i64::try_from(number(body, "expires_in")).unwrap_or(i64::MAX / 4_000));
        self.expires_at = life.map(|seconds| now.saturating_add(seconds.saturating_mul(1_000)));
        // A minute before its end, or a fifth of its life when that is short.
        let early = |seconds: i64| (seconds - (seconds / 5).min(60)).saturating_mul(1_000);
        self.refresh_at = life.map(|seconds| now.saturating_add(early(seconds)));
        Ok(())
    }

    /// Whether another token is to be had at this time.
    pub(crate) fn is_due(&self, now: i64) -> bool {
        self.refresh_token.is_some() && self.refresh_at.is_some_and(|at| at <= now)
    }

    /// Whether it is of no use any more.
    pub(crate) fn is_over(&self, now: i64) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

/// The file of one hub's login.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    path: PathBuf,
}

impl Store {
    /// Of the hub at this address.
    pub(crate) fn of(hub: &Url) -> Result<Self, CliError> {
        let Some(state) = crate::history::state() else {
            return Err(CliError::Login {
                reason: "there is no folder for a login: neither XDG_STATE_HOME nor HOME is set".into(),
                hint: Some("set BUILDSCALE_TOKEN instead"),
            });
        };
        let name = Sha256::of(super::http::url_text(hub).as_bytes()).to_string();
        Ok(Self { path: state.join("logins").join(format!("{}.json", name.get(..32).unwrap_or(&name))) })
    }

    fn wrong(&self, source: io::Error) -> CliError {
        CliError::Local { path: self.path.display().to_string(), source }
    }

    /// The login, if there is one.
    pub(crate) fn load(&self) -> Result<Option<Saved>, CliError> {
        match fs::read(&self.path) {
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|_| CliError::Login {
                // The parser would quote what it does not understand, and that may be a token.
                reason: format!("the login in {} cannot be read", self.path.display()),
                hint: Some("log in again with: buildscale auth login"),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.wrong(error)),
        }
    }

    /// Keeps a login. It takes the place of an earlier one at once.
    pub(crate) fn save(&self, saved: &Saved) -> Result<(), CliError> {
        let beside = self.path.with_extension("new");
        let written = || {
            drop(fs::remove_file(&beside));
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
            // A umask may have taken the owner's own rights from the mode above.
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
            file.write_all(&serde_json::to_vec_pretty(saved)?)?;
            file.sync_all()?;
            fs::rename(&beside, &self.path)
        };
        written().map_err(|error| self.wrong(error))
    }

    /// Removes the login, and gives it back.
    pub(crate) fn take(&self) -> Result<Option<Saved>, CliError> {
        // One that cannot be read is removed, too.
        let saved = self.load().unwrap_or_default();
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.wrong(error)),
            _ => Ok(saved),
        }
    }

    /// Does something while no other process of this user does: an issuer that rotates refresh tokens ends a login whose old token is used
    /// twice.
    pub(crate) async fn locked<T>(&self, work: impl AsyncFnOnce(&Self) -> Result<T, CliError>) -> Result<T, CliError> {
        let path = self.path.with_extension("lock");
        let locked = tokio::task::spawn_blocking(move || {
            let folder = path.parent().unwrap_or(&path);
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path)?;
            file.lock().map(|()| file)
        });
        let lock: File = locked.await.map_err(io::Error::other).flatten().map_err(|error| self.wrong(error))?;
        let done = work(self).await;
        // Also given up when the process ends.
        drop(lock);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn saved() -> Saved {
        Saved {
            url: "http://127.0.0.1:1".into(),
            issuer: "https://issuer.example".into(),
            token_endpoint: "https://issuer.example/token".into(),
            revocation_endpoint: None,
            client_id: "cli".into(),
            access_token: Secret::new("old"),
            refresh_token: Some(Secret::new("first")),
            refresh_at: None,
            expires_at: None,
        }
    }

    #[test]
    fn a_token_is_refreshed_before_it_expires() {
        let mut login = saved();
        assert_eq!(
            login.take_in(&json!({ "access_token": "a", "token_type": "bearer", "expires_in": 600 }), 0),
            Ok(())
        );
        assert_eq!((login.refresh_at, login.expires_at), (Some(540_000), Some(600_000)));
        assert!(!login.is_due(539_999) && login.is_due(540_000) && !login.is_over(599_999) && login.is_over(600_000));
        assert_eq!(login.refresh_token.as_ref().map(Secret::expose), Some("first"), "one that is not rotated stays");
        let short = json!({ "access_token": "b", "token_type": "Bearer", "expires_in": 10, "refresh_token": "second" });
        assert_eq!(login.take_in(&short, 0), Ok(()));
        assert_eq!(login.refresh_at, Some(8_000));
        assert_eq!(login.refresh_token.as_ref().map(Secret::expose), Some("second"));
        assert_eq!(login.take_in(&json!({ "access_token": "c", "token_type": "Bearer" }), 0), Ok(()));
        assert!(!login.is_due(i64::MAX) && !login.is_over(i64::MAX));
    }

    #[test]
    fn an_answer_without_a_usable_token_changes_nothing() {
        let mut login = saved();
        for odd in [
            json!({}),
            json!({ "access_token": "a\nb", "token_type": "Bearer" }),
            json!({ "access_token": "a", "token_type": "mac" }),
        ] {
            assert!(login.take_in(&odd, 0).is_err(), "{odd}");
            assert_eq!(login.access_token.expose(), "old");
        }
    }

    #[tokio::test]
    async fn a_login_is_private_and_no_text_of_it_is_shown() -> Result<(), CliError> {
        let folder = tempfile::tempdir()?;
        let store = Store { path: folder.path().join("state/logins/x.json") };
        store.locked(async |store| store.save(&saved())).await?;
        let mode = |path: &std::path::Path| fs::metadata(path).map(|about| about.permissions().mode() & 0o777);
        assert_eq!((mode(&store.path)?, mode(&folder.path().join("state/logins"))?), (0o600, 0o700));
        let loaded = store.load()?;
        assert_eq!(loaded.as_ref().map(|login| login.access_token.expose()), Some("old"));
        assert!(!format!("{loaded:?}").contains("old") && !format!("{loaded:?}").contains("first"));
        fs::write(&store.path, "{\"access_token\": \"hunter2\"")?;
        let refused = store.load().err().map(|failure| failure.to_string()).unwrap_or_default();
        assert!(refused.contains("cannot be read") && !refused.contains("hunter2"), "{refused}");
        store.take()?;
        assert!(store.load()?.is_none());
        Ok(())
    }

    #[test]
    fn each_hub_has_a_file_of_its_own() -> Result<(), CliError> {
        let url = |text: &str| ::client::parse_url(text);
        let path = |text: &str| -> Result<_, CliError> { Ok(Store::of(&url(text)?).ok().map(|store| store.path)) };
        assert_eq!(path("localhost:8686")?, path("http://localhost:8686/")?);
        assert_ne!(path("localhost:8686")?, path("localhost:8687")?);
        Ok(())
    }
}
