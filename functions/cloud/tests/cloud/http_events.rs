//! Addresses that AWS hands on decoded in part.

use buildscale_cloud::http_events::well_formed;
use lambda_http::{Request, request::LambdaRequest};
use lambda_runtime::{Context, LambdaEvent};
use serde_json::json;

/// The path and query that routes see for an event with these.
fn address(path: &str, query: &str) -> String {
    let http =
        json!({ "method": "GET", "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1", "userAgent": "test" });
    let event = json!({
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": { "host": "local" },
        "requestContext": {
            "accountId": "000000000000", "apiId": "local", "domainName": "local", "domainPrefix": "local", "http": http,
            "requestId": "local", "routeKey": "$default", "stage": "$default", "time": "01/Jan/2026:00:00:00 +0000",
            "timeEpoch": 1_767_225_600_000_u64,
        },
        "isBase64Encoded": false,
    });
    let payload: LambdaRequest = serde_json::from_str(&event.to_string()).unwrap();
    let request: Request = well_formed(LambdaEvent::new(payload, Context::default())).payload.into();
    request.uri().path_and_query().unwrap().to_string()
}

#[test]
fn an_address_that_was_decoded_on_its_way_is_whole_again() {
    for (path, query, expected) in [
        ("/", "", "/"),
        ("/flows/a/tasks", "limit=3&after=%20", "/flows/a/tasks?limit=3&after=%20"),
        ("/flows/What next?/tasks", "limit=3", "/flows/What%20next%3F/tasks?limit=3"),
        ("/flows/C#/tasks", "limit=3", "/flows/C%23/tasks?limit=3"),
        ("/flows/a\\b", "", "/flows/a%5Cb"),
        ("/flows/`a`", "q=`b`", "/flows/%60a%60?q=`b`"),
        ("/flows/\u{e9}%20b", "", "/flows/%C3%A9%20b"),
        ("/search", "q=two words&r=\"<\u{e9}>\"", "/search?q=two%20words&r=%22%3C%C3%A9%3E%22"),
    ] {
        assert_eq!(address(path, query), expected);
    }
}
