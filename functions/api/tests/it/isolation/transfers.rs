//! Addresses of contents: each opens one content, one way, for every holder, as long as its person may.

use super::world::{Tenant, World, user_id};
use crate::support::Reply;
use axum::body::Body;
use domain::Sha256;
use http::Request;
use identity::Role;
use serde_json::json;

/// Long enough to have an address, and short enough for a test.
fn content(tenant: &Tenant) -> Vec<u8> {
    tenant.secret().repeat(3000).into_bytes()
}

fn tag_of(tenant: &Tenant) -> String {
    format!("\"{}\"", Sha256::of(&content(tenant)))
}

async fn put(world: &World, to: &str, content: Vec<u8>) -> u16 {
    let request = Request::builder().method("PUT").uri(to).body(Body::from(content)).unwrap();
    world.door.send(request).await.status().as_u16()
}

/// The address to send a tenant's content to.
async fn upload(world: &World, tenant: &Tenant, token: &str) -> Reply {
    let content = content(tenant);
    let wanted = json!({ "sha256": Sha256::of(&content).to_string(), "size": content.len() });
    world.call(Some(token), "POST", &format!("{}/uploads", tenant.workspace), &wanted.to_string()).await
}

fn url(reply: &Reply) -> String {
    assert_eq!(reply.header("cache-control"), "no-store");
    reply.json["request"]["url"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_address_opens_one_content_one_way_and_only_for_members() {
    let world = World::open();
    let (ann, bob) = (world.tenant("ann").await, world.tenant("bob").await);
    let editor = super::world::token(&world.person_as(&ann, Role::Editor).await);
    let to = url(&upload(&world, &ann, &editor).await.is(201));
    upload(&world, &ann, &bob.token).await.refuses(404, "NOT_FOUND");

    // It opens no other content, and gives no other person access.
    let of_bob = url(&upload(&world, &bob, &bob.token).await.is(201));
    let (path, ticket) = to.split_once('?').unwrap();
    let (path_of_bob, ticket_of_bob) = of_bob.split_once('?').unwrap();
    for wrong in [format!("{path}?{ticket_of_bob}"), format!("{path_of_bob}?{ticket}"), path.to_owned()] {
        assert_eq!(put(&world, &wrong, content(&ann)).await, 401, "{wrong}");
        world
            .call(Some(&bob.token), "PUT", &wrong.replace(&bob.workspace, &ann.workspace), "x")
            .await
            .refuses(404, "NOT_FOUND");
    }
    world.call(None, "GET", &to, "").await.refuses(403, "FORBIDDEN");
    assert_eq!(put(&world, &to, content(&bob)).await, 400, "other bytes");
    assert_eq!(put(&world, &to, content(&ann)).await, 204);

    let body = json!({ "path": "/data/long", "sha256": Sha256::of(&content(&ann)).to_string() }).to_string();
    let files = |tenant: &Tenant| format!("{}/files", tenant.workspace);
    world.call(Some(&bob.token), "POST", &files(&bob), &body).await.refuses(404, "NOT_FOUND");
    let made = world.call(Some(&ann.token), "POST", &files(&ann), &body).await.is(201);
    let address = format!("{}/{}/address", files(&ann), made.text("file_id"));
    world.call(Some(&bob.token), "GET", &address, "").await.refuses(404, "NOT_FOUND");
    let from = url(&world.call(Some(&editor), "GET", &address, "").await.is(200));
    assert_eq!(world.call(None, "GET", &from, "").await.is(200).bytes, content(&ann));
    let (tag, other) = (tag_of(&ann), tag_of(&bob));
    for (condition, tag, status) in [
        ("if-none-match", &tag, 304),
        ("if-none-match", &other, 200),
        ("if-match", &tag, 200),
        ("if-match", &other, 412),
    ] {
        let asked = Request::builder().uri(from.as_str()).header(condition, tag).body(Body::empty()).unwrap();
        assert_eq!(world.door.send(asked).await.status().as_u16(), status, "{condition}: {tag}");
    }
    assert_eq!(put(&world, &from, content(&ann)).await, 403, "it only reads");

    // A former member has no address either.
    let gone = user_id(&format!("{}-of-ann", Role::Editor));
    world.call(Some(&ann.token), "DELETE", &format!("{}/members/{gone}", ann.workspace), "").await;
    world.call(None, "GET", &from, "").await.refuses(404, "NOT_FOUND");
    assert_eq!(put(&world, &to, content(&ann)).await, 404);
}
