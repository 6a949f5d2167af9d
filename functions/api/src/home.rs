//! `GET /`: a page for a person who opens the address of a server in a browser or asks it with curl.

use axum::{
    Extension, Router,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, header};

/// The places that the page names, each with its purpose. The first ones are routes; the last ones are pages of `docs/` in the source.
const ROUTES: [(&str, &str); 4] = [
    ("/openapi.json", "all routes, as OpenAPI 3.1"),
    ("/health", "whether the server lives"),
    ("/ready", "whether it can work"),
    ("/.well-known/oauth-protected-resource", "how to get a token"),
];
const DOCS: [(&str, &str); 4] = [
    ("docs/tutorial", "first steps"),
    ("docs/how-to/web-app.md", "use it from a web application"),
    ("docs/reference/routes.md", "all routes, for people"),
    ("docs/reference/streams.md", "event streams"),
];
const WHAT: &str =
    "A backend for AI agents: chats, flows and versioned files over HTTP, with events as Server-Sent Events.";
/// A first chat, in characters that HTML takes as they are.
const FIRST_CHAT: &str = r#"api=http://127.0.0.1:8686/api/v1 json='content-type: application/json'  # or the address of this page
curl -s $api/workspaces -H "$json" -d '{"name": "demo"}'
curl -s $api/workspaces/WORKSPACE/chats -H "$json" -d '{"goal": "Show me what you can do"}'
curl -N "$api/workspaces/WORKSPACE/chats/CHAT/events?after=0"
"#;
const TOKEN: &str = "Where a token is needed, each of them has one more: -H \"authorization: Bearer TOKEN\".";
const STYLE: &str = ":root { color-scheme: light dark } body { font: 16px/1.5 system-ui, sans-serif; max-width: 42rem; \
    margin: 3rem auto; padding: 0 1rem } pre { overflow-x: auto }";
/// The page loads and runs nothing, sends nothing, and has this one style: the digest is that of [`STYLE`].
const POLICY: &str = "default-src 'none'; style-src 'sha256-xzfH1M63UQAlmG2qYfOKGFxLN4hUmNcDS7RXiEbrDKE='; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";

/// The sentence of the page where a person expects the console.
const NO_CONSOLE: &str =
    "This build has no console, the page to work with in a browser: scripts/console builds it, with Node.js.";

/// Marks the requests of a server that was built without the console. On AWS another server has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoConsole;

/// `router`, whose page at `/` says that this build has no console.
pub fn without_console(router: Router) -> Router {
    router.layer(Extension(NoConsole))
}

/// A page about this server: its version, and where its routes and documents are. HTML for browsers, text for others.
#[utoipa::path(get, path = "/", tag = "health",
    responses((status = 200, description = "The page.", content((String = "text/plain"), (String = "text/html")))))]
pub(crate) async fn home(lacks: Option<Extension<NoConsole>>, headers: HeaderMap) -> Response {
    let accepts = headers.get(header::ACCEPT).and_then(|accepts| accepts.to_str().ok()).unwrap_or_default();
    let note = lacks.map(|_| NO_CONSOLE);
    let (kind, page) = match accepts.contains("text/html") {
        true => ("text/html; charset=utf-8", html(note)),
        false => ("text/plain; charset=utf-8", text(note)),
    };
    ([(header::CONTENT_TYPE, kind), (header::VARY, "accept"), (header::CONTENT_SECURITY_POLICY, POLICY)], page)
        .into_response()
}

fn text(note: Option<&str>) -> String {
    let lines = |places: &[(&str, &str)]| -> String {
        places.iter().map(|(place, purpose)| format!("  {place:38} {purpose}\n")).collect()
    };
    let note = note.map(|note| format!("{note}\n")).unwrap_or_default();
    format!(
        "BuildScale {}\n{WHAT}\n{note}\nThe API is below /api/v1.\n{}\nA first chat:\n\n{FIRST_CHAT}\n{TOKEN}\n\nDocuments of the source:\n{}",
        env!("CARGO_PKG_VERSION"),
        lines(&ROUTES),
        lines(&DOCS),
    )
}

fn html(note: Option<&str>) -> String {
    let note = note.map(|note| format!("<p>{note}</p>\n")).unwrap_or_default();
    let routes: String = ROUTES
        .iter()
        .map(|(place, purpose)| format!("<li><a href=\".{place}\"><code>{place}</code></a> – {purpose}</li>\n"))
        .collect();
    let docs: String =
        DOCS.iter().map(|(place, purpose)| format!("<li><code>{place}</code> – {purpose}</li>\n")).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>BuildScale</title>\n\
         <style>{STYLE}</style>\n\
         <h1>BuildScale {}</h1>\n<p>{WHAT}</p>\n{note}\
         <p>The API is below <code>/api/v1</code>.</p>\n<ul>\n{routes}</ul>\n\
         <p>A first chat:</p>\n<pre><code>{FIRST_CHAT}</code></pre>\n<p>{TOKEN}</p>\n\
         <p>Documents of the source:</p>\n<ul>\n{docs}</ul>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
    )
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use axum::{
        body::{Body, to_bytes},
        routing::get,
    };
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use http::Request;
    use sha2::{Digest, Sha256};
    use std::path::Path;
    use tower::ServiceExt as _;

    #[test]
    fn its_policy_allows_its_own_style_alone() {
        let digest = STANDARD.encode(Sha256::digest(STYLE));
        assert!(POLICY.contains(&format!("style-src 'sha256-{digest}';")), "{digest}");
        assert!(html(None).contains(&format!("<style>{STYLE}</style>")) && !html(None).contains("style="));
    }

    #[tokio::test]
    async fn a_build_without_the_console_says_so_to_browsers_and_programs() {
        for accepts in ["text/html", "*/*"] {
            let page = async |router: Router| {
                let request = Request::get("/").header(header::ACCEPT, accepts).body(Body::empty()).unwrap();
                let answer = router.oneshot(request).await.unwrap();
                String::from_utf8(to_bytes(answer.into_body(), 100_000).await.unwrap().to_vec()).unwrap()
            };
            let router = || Router::new().route("/", get(home));
            assert!(page(without_console(router())).await.contains(NO_CONSOLE), "{accepts}");
            assert!(!page(router()).await.contains("console"), "{accepts}");
        }
    }

    #[test]
    fn the_documents_that_it_names_are_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (place, _) in DOCS {
            assert!(root.join(place).exists(), "{place}");
        }
    }
}
