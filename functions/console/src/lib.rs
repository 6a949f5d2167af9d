//! The console: the page at `/` of a hub, embedded in the binary and compressed ahead of time.
//!
//! ```text
//!   web/ (TypeScript, React) ─ scripts/console ─> dist/ ─ build.rs ─> FILES ─ before(router) ─> browsers
//! ```
//!
//! `web/` knows the hub by its HTTP API alone, through `clients/typescript`. A build without Node.js embeds nothing: then the page that the
//! API has at `/` is served, and says so.
//!
//! Deliberately absent: routes of its own for data, sessions, cookies. The page holds its token in the browser.

mod negotiate;

use axum::{
    Router,
    body::Body,
    extract::Request,
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use negotiate::{accepts, is_known};

/// A file of the page, as it is and compressed.
struct File {
    /// Its path in URLs.
    path: &'static str,
    /// Its entity tag.
    etag: &'static str,
    plain: &'static [u8],
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The page runs its own scripts alone, and talks to its own origin and to `origins`: those of the issuer at which people sign in. Contents of
/// files are shown from memory (`blob:`), and never run. Styles of the editor are sheets that a script makes, which needs no `unsafe-inline`.
fn policy(origins: &[String]) -> HeaderValue {
    let connect = origins.iter().fold("'self'".to_owned(), |all, origin| all + " " + origin);
    let text = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; font-src 'self'; connect-src {connect}; \
         manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    );
    // An origin has no character that a header could not carry; a text that is none closes the page instead of opening it.
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

/// Whether the page was built into this binary.
pub fn is_built() -> bool {
    !FILES.is_empty()
}

/// `app`, behind the files of the console: `GET /` of a browser, and the files below `/assets`. `GET /docs` of a browser leads to the console's
/// reference of the API. All else reaches `app`. The page may talk to `origins`, beside its own.
pub fn before(app: Router, origins: &[String]) -> Router {
    let policy = policy(origins);
    app.layer(from_fn(move |request: Request, next: Next| {
        let policy = policy.clone();
        async move {
            match file_for(FILES, &request) {
                Some(file) => answer(file, request.headers(), policy),
                None if wants_reference(FILES, &request) => to_reference(),
                None => next.run(request).await,
            }
        }
    }))
}

/// Whether a browser asks for the reference of the API, and there is the page that shows it.
fn wants_reference(files: &[File], request: &Request) -> bool {
    let reads = request.method() == Method::GET || request.method() == Method::HEAD;
    let is_browser = accepts(request.headers(), header::ACCEPT, "text/html");
    reads && is_browser && request.uri().path() == "/docs" && !files.is_empty()
}

/// Leads to the reference. The place is relative, since a proxy may put the hub below any path.
fn to_reference() -> Response {
    let fields = [
        (header::LOCATION, "./#/reference"),
        (header::CACHE_CONTROL, "no-cache"),
        (header::VARY, "accept"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (StatusCode::FOUND, fields).into_response()
}

/// The file that a request asks for. A program that asks for `/` gets the text of the API.
fn file_for<'a>(files: &'a [File], request: &Request) -> Option<&'a File> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return None;
    }
    let path = match request.uri().path() {
        "/" if accepts(request.headers(), header::ACCEPT, "text/html") => "/index.html",
        "/" | "/index.html" => return None,
        path => path,
    };
    files.iter().find(|file| file.path == path)
}

fn answer(file: &File, headers: &HeaderMap, policy: HeaderValue) -> Response {
    let (encoding, content) = match (file.brotli, file.gzip) {
        (Some(brotli), _) if accepts(headers, header::ACCEPT_ENCODING, "br") => (Some("br"), brotli),
        (_, Some(gzip)) if accepts(headers, header::ACCEPT_ENCODING, "gzip") => (Some("gzip"), gzip),
        _ => (None, file.plain),
    };
    let mut response = match is_known(headers, file.etag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Response::new(Body::from(content)),
    };
    let kept = match file.path.starts_with("/assets/") {
        // Their names have the digest of their content.
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    let fields = [
        (header::CONTENT_TYPE, kind(file.path)),
        (header::ETAG, file.etag),
        (header::CACHE_CONTROL, kept),
        (header::VARY, "accept, accept-encoding"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-site"),
    ];
    let head = response.headers_mut();
    head.extend(fields.map(|(name, value)| (name, HeaderValue::from_static(value))));
    head.insert(header::CONTENT_SECURITY_POLICY, policy);
    if let Some(encoding) = encoding {
        head.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    response
}

fn kind(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json" | "webmanifest") => "application/json",
        Some("woff2") => "font/woff2",
        Some("png") => "image/png",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests;
