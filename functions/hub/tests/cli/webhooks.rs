//! Webhooks from the command line.

use crate::support::{ANYWHERE, Hub, text};
use serde_json::Value;
use std::{
    io::{Read, Write},
    net::TcpListener,
};

/// A receiver that answers each request with this status.
fn receiver(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 16 * 1024]);
            let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    format!("http://{address}/hook")
}

#[test]
fn a_webhook_is_made_tried_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(folder.path(), ANYWHERE, &[("BUILDSCALE__WEBHOOKS__ALLOW_PRIVATE", "true")]);
    assert!(hub.run(&["workspaces", "create", "team"]).status.success());
    assert!(text(&hub.run(&["webhooks"]).stderr).contains("no webhooks"));

    let made = hub.run(&["webhooks", "add", "Good", &receiver("204 No Content"), "--event", "turn.ended"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let shown = text(&made.stdout);
    assert!(shown.contains("secret  whsec_") && shown.contains("turn.ended"), "{shown}");
    assert!(hub.run(&["webhooks", "add", "Bad", &receiver("503 Service Unavailable")]).status.success());
    let tried = hub.run(&["webhooks", "test", "Good"]);
    assert_eq!(
        (tried.status.code(), text(&tried.stderr).contains("took it")),
        (Some(0), true),
        "{}",
        text(&tried.stderr)
    );
    let tried = hub.run(&["webhooks", "test", "Bad"]);
    assert_eq!(
        (tried.status.code(), text(&tried.stderr).contains("it says 503")),
        (Some(1), true),
        "{}",
        text(&tried.stderr)
    );

    let listed = text(&hub.run(&["webhooks", "deliveries", "Good"]).stdout);
    assert!(listed.contains("webhook.test") && listed.contains("delivered") && listed.contains("204 in "), "{listed}");
    let id = hub.json(0, &["webhooks", "deliveries", "Good", "--json"])[0]["deliveries"][0]["delivery_id"].clone();
    let again = hub.run(&["webhooks", "retry", "Good", &id.as_str().unwrap()[..13]]);
    assert!(text(&again.stderr).contains("took it"), "{}", text(&again.stderr));
    // A webhook hears of an attempt a moment after its delivery.
    let fails = |listed: &Value| {
        listed["webhooks"].as_array().is_some_and(|all| all.iter().any(|one| one["failing_since"].is_string()))
    };
    hub.until(&["webhooks", "list", "--json"], fails);
    let listed = text(&hub.run(&["webhooks", "list"]).stdout);
    assert!(listed.contains("fails since") && listed.contains("enabled"), "{listed}");
    assert!(!listed.contains("whsec_") && !text(&hub.run(&["webhooks", "show", "Good"]).stdout).contains("whsec_"));
    assert!(text(&hub.run(&["webhooks", "secret", "Good"]).stdout).contains("secret  whsec_"));

    assert!(hub.run(&["webhooks", "disable", "Bad"]).status.success());
    assert_eq!(hub.run(&["webhooks", "test", "Bad"]).status.code(), Some(4));
    assert!(text(&hub.run(&["webhooks", "show", "Bad"]).stdout).contains("disabled (person)"));
    assert!(hub.run(&["webhooks", "enable", "Bad"]).status.success());
    assert!(hub.run(&["webhooks", "remove", "Bad"]).status.success());
    assert_eq!(hub.run(&["webhooks", "show", "Bad"]).status.code(), Some(3));

    let namesake = hub.run(&["webhooks", "add", "Good", &receiver("200 OK")]);
    let told = text(&namesake.stderr);
    assert!(namesake.status.success() && told.contains("another webhook has the name \"Good\""), "{told}");
    let ambiguous = hub.run(&["webhooks", "show", "Good"]);
    assert_eq!(ambiguous.status.code(), Some(2));
    for one in hub.json(0, &["webhooks", "--json"])[0]["webhooks"].as_array().unwrap() {
        let (id, url) = (one["webhook_id"].as_str().unwrap(), one["url"].as_str().unwrap());
        assert!(text(&ambiguous.stderr).contains(&format!("{id} ({url})")), "{}", text(&ambiguous.stderr));
        assert!(hub.run(&["webhooks", "show", id]).status.success());
    }
}

#[test]
fn a_receiver_in_a_private_network_is_refused_unless_the_operator_allows_it() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(folder.path(), ANYWHERE, &[]);
    assert!(hub.run(&["workspaces", "create", "team"]).status.success());
    let refused = hub.run(&["webhooks", "add", "Inside", "http://127.0.0.1:8686/"]);
    assert!(
        !refused.status.success() && text(&refused.stderr).contains("private networks"),
        "{}",
        text(&refused.stderr)
    );
}
