//! People: their identity, the people whom they let in, and keys that act for them.

use super::Stage;
use crate::{Other, Result};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

pub(super) async fn people_invite_each_other_and_see_nothing_else(stage: Stage) -> Result {
    let (ann, Other { client: bob, subject }) = (stage.client(), stage.shared.other()?);
    let place = ann.place().await?;
    let chat = ann.chat(&place, "hello").await?;
    ann.watch(&chat).until_event("done").await?;
    let file = ann.file(&place, "/projects/secret.md", "ann's alone").await?;

    for token in [None, Some("nonsense"), Some("bsk_019bf537f2287cd3aa1c3da8af302e12_nonsense")] {
        let nobody = ann.with_token(token);
        for path in ["/api/v1/workspaces", "/api/v1/models", &place, &format!("{chat}/events?after=0")] {
            assert_eq!(nobody.look(path).await?.status, StatusCode::UNAUTHORIZED, "{path} {token:?}");
        }
    }
    let ours = [place.clone(), chat.clone(), file.clone(), format!("{file}/content"), format!("{chat}/events?after=0")];
    let hidden = async || {
        for path in &ours {
            bob.look(path).await?.refuses(404, "NOT_FOUND")?;
        }
        let mine = bob.get("/api/v1/workspaces?limit=200").await?.to_string();
        assert!(!mine.contains(place.rsplit('/').next().unwrap_or_default()), "{mine}");
        Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    };
    hidden().await?;

    let members = format!("{place}/members");
    let added = ann.post(&members, json!({ "subject": subject, "role": "viewer" })).await?;
    let member = format!("{members}/{}", added["user_id"].as_str().ok_or("no user_id")?);
    assert_eq!(bob.get(&format!("{members}/me")).await?["may"], json!(["read"]));
    for path in ours.iter().filter(|path| !path.contains("/events")) {
        bob.look(path).await?.is(200)?;
    }
    bob.open(&format!("{chat}/events?after=0")).await?.until_event("done").await?;
    bob.ask(Method::POST, &chat, json!({ "content": "hello" })).await?.refuses(403, "FORBIDDEN")?;
    bob.ask(Method::DELETE, &file, Value::Null).await?.refuses(403, "FORBIDDEN")?;
    ann.ask(Method::PATCH, &member, json!({ "role": "member" })).await?.is(200)?;
    ann.watch(&bob.chat(&place, "hello").await?).until_event("done").await?;
    bob.ask(Method::POST, &members, json!({ "subject": "x", "role": "viewer" })).await?.refuses(403, "FORBIDDEN")?;
    assert_eq!(ann.get(&members).await?["members"].as_array().map(Vec::len), Some(2));

    ann.ask(Method::DELETE, &member, Value::Null).await?.is(204)?;
    hidden().await?;
    let me = ann.get(&format!("{members}/me")).await?;
    let last = format!("{members}/{}", me["user_id"].as_str().ok_or("no user_id")?);
    ann.ask(Method::DELETE, &last, Value::Null).await?.refuses(409, "CONFLICT")?;
    Ok(())
}

pub(super) async fn keys_open_their_scopes_until_they_are_revoked(stage: Stage) -> Result {
    let client = stage.client();
    let (place, elsewhere) = (client.place().await?, client.place().await?);
    let workspace = place.rsplit('/').next().unwrap_or_default();
    let new = json!({ "name": "nightly", "scopes": ["read"], "workspaces": [workspace] });
    let made = client.ask(Method::POST, "/api/v1/keys", new).await?.is(201)?;
    assert_eq!(made.header("cache-control"), "no-store");
    let made = made.json();
    let secret = made["key"].as_str().ok_or("no key")?;
    assert!(secret.starts_with("bsk_"));
    let key = client.with_token(Some(secret));
    key.look(&format!("{place}/files")).await?.is(200)?;
    key.ask(Method::POST, &format!("{place}/files"), json!({ "path": "/x.md" })).await?.refuses(403, "FORBIDDEN")?;
    let other = key.look(&format!("{elsewhere}/files")).await?;
    assert!([StatusCode::FORBIDDEN, StatusCode::NOT_FOUND].contains(&other.status), "{other:?}");
    key.look("/api/v1/keys").await?.refuses(403, "FORBIDDEN")?;
    let id = made["api_key"]["key_id"].as_str().ok_or("no key_id")?;
    let is_listed =
        |page: &Value| page["keys"].as_array().is_some_and(|keys| keys.iter().any(|one| one["key_id"] == id));
    let listed = client.until("/api/v1/keys?limit=200", is_listed).await?;
    assert!(!listed.to_string().contains(secret), "the secret is told once");
    client.ask(Method::DELETE, &format!("/api/v1/keys/{id}"), Value::Null).await?;
    key.look(&format!("{place}/files")).await?.refuses(401, "UNAUTHORIZED")?;
    Ok(())
}
