use super::*;
use axum::routing::get;
use tower::ServiceExt as _;

static PAGE: &[File] = &[
    File { path: "/assets/a-1.js", etag: "\"a\"", plain: b"plain", brotli: Some(b"br"), gzip: Some(b"gz") },
    File { path: "/index.html", etag: "\"i\"", plain: b"page", brotli: None, gzip: None },
];

fn request(method: Method, path: &str, headers: &[(&str, &str)]) -> Request {
    let mut request = http::Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::empty()).expect("a request")
}

fn found(method: Method, path: &str, headers: &[(&str, &str)]) -> Option<&'static str> {
    file_for(PAGE, &request(method, path, headers)).map(|file| file.path)
}

#[test]
fn browsers_get_the_page_and_programs_do_not() {
    let browser = [("accept", "text/html,application/xhtml+xml,*/*;q=0.8")];
    assert_eq!(found(Method::GET, "/", &browser), Some("/index.html"));
    assert_eq!(found(Method::HEAD, "/", &browser), Some("/index.html"));
    assert_eq!(found(Method::POST, "/", &browser), None);
    assert_eq!(found(Method::GET, "/", &[("accept", "*/*")]), None);
    assert_eq!(found(Method::GET, "/", &[]), None);
    assert_eq!(found(Method::GET, "/assets/a-1.js", &[]), Some("/assets/a-1.js"));
    assert_eq!(found(Method::GET, "/assets/../index.html", &[]), None);
    assert_eq!(found(Method::GET, "/api/v1/workspaces", &browser), None);
}

#[test]
fn a_browser_that_asks_for_the_docs_is_led_to_the_reference_of_the_api() {
    let browser = [("accept", "text/html,application/xhtml+xml,*/*;q=0.8")];
    let wants = |files: &[File], method, path, headers| wants_reference(files, &request(method, path, headers));
    assert!(wants(PAGE, Method::GET, "/docs", &browser));
    assert!(wants(PAGE, Method::HEAD, "/docs", &browser));
    assert!(!wants(PAGE, Method::POST, "/docs", &browser));
    assert!(!wants(PAGE, Method::GET, "/docs/more", &browser));
    assert!(!wants(PAGE, Method::GET, "/docs", &[("accept", "*/*")]), "a program gets the answer of the API");
    assert!(!wants(&[], Method::GET, "/docs", &browser), "the page was not built");
    assert!(!wants(PAGE, Method::GET, "//docs", &browser));
    let response = to_reference();
    let head = |name: HeaderName| response.headers()[name].to_str().expect("text");
    assert_eq!((response.status(), head(header::LOCATION)), (StatusCode::FOUND, "./#/reference"));
    // A cache on the way gives it to no program.
    assert_eq!((head(header::VARY), head(header::CACHE_CONTROL)), ("accept", "no-cache"));
}

#[tokio::test]
async fn the_shortest_form_that_the_client_takes_is_sent_with_a_strict_policy() {
    for (accepted, encoding, content) in [
        ("gzip, deflate, br", Some("br"), "br"),
        ("gzip", Some("gzip"), "gz"),
        ("br;q=0, gzip;q=0.5", Some("gzip"), "gz"),
        ("identity", None, "plain"),
    ] {
        let response =
            answer(&PAGE[0], request(Method::GET, "/", &[("accept-encoding", accepted)]).headers(), policy(&[]));
        let head = response.headers();
        assert_eq!(head.get(header::CONTENT_ENCODING).map(|value| value.as_bytes()), encoding.map(str::as_bytes));
        assert_eq!(head[header::CACHE_CONTROL], "public, max-age=31536000, immutable");
        assert!(!head[header::CONTENT_SECURITY_POLICY].to_str().expect("text").contains("unsafe"));
        assert_eq!(head[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert_eq!(head["cross-origin-resource-policy"], "same-site");
        assert_eq!(axum::body::to_bytes(response.into_body(), 100).await.expect("a body"), content);
    }
}

#[test]
fn the_page_may_ask_the_issuer_and_nobody_else() {
    let told = |origins: &[&str]| {
        let origins: Vec<String> = origins.iter().map(|&origin| origin.to_owned()).collect();
        let policy = policy(&origins).to_str().expect("text").to_owned();
        policy.split("; ").find(|part| part.starts_with("connect-src")).map(str::to_owned)
    };
    assert_eq!(told(&[]).as_deref(), Some("connect-src 'self'"));
    assert_eq!(told(&["https://a.example"]).as_deref(), Some("connect-src 'self' https://a.example"));
    assert_eq!(told(&["https://a.example\n"]), None);
}

#[test]
fn a_page_that_the_client_has_is_not_sent_again() {
    let known =
        |tags| answer(&PAGE[1], request(Method::GET, "/", &[("if-none-match", tags)]).headers(), policy(&[])).status();
    assert_eq!(known("\"i\""), StatusCode::NOT_MODIFIED);
    assert_eq!(known("W/\"x\", W/\"i\""), StatusCode::NOT_MODIFIED);
    assert_eq!(known("\"x\""), StatusCode::OK);
}

#[tokio::test]
async fn all_else_reaches_the_routes_behind_it() {
    let app = before(Router::new().route("/api", get(async || "api")), &[]);
    let response = app.oneshot(request(Method::GET, "/api", &[])).await.expect("an answer");
    assert_eq!(axum::body::to_bytes(response.into_body(), 100).await.expect("a body"), "api");
}
