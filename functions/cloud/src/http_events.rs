//! HTTP requests as events of Lambda.
//!
//! AWS hands addresses on decoded in part: an HTTP API the path, and a function's URL may turn a `+` of the query into a space. `lambda_http` makes an
//! address of them as they are. So a `?` in a name would begin a query, and a character that no address has would end in a panic, which the
//! alarms take for a crash of this version.

use axum::{Router, body::Body, response::Response};
use domain::text::percent_encoded;
use lambda_http::{Adapter, StreamAdapter, request::LambdaRequest};
use lambda_runtime::{Error, LambdaEvent, tower::util::MapRequest};

/// Answers requests by these routes, until Lambda ends the process. Each answer is given back whole.
///
/// # Errors
/// When Lambda gives no events.
pub async fn answer_whole(router: Router) -> Result<(), Error> {
    let adapter: Adapter<'_, Response, Router> = Adapter::from(router);
    lambda_runtime::run(MapRequest::new(adapter, well_formed)).await
}

/// The same with answers that stream.
///
/// # Errors
/// Those of [`answer_whole`].
pub async fn answer_in_pieces(router: Router) -> Result<(), Error> {
    let adapter: StreamAdapter<'_, Router, Body> = StreamAdapter::from(router);
    lambda_runtime::run(MapRequest::new(adapter, well_formed)).await
}

/// The event with a path and a query that are parts of an address.
pub fn well_formed(mut event: LambdaEvent<LambdaRequest>) -> LambdaEvent<LambdaRequest> {
    if let LambdaRequest::ApiGatewayV2(request) = &mut event.payload {
        request.raw_path = request.raw_path.take().map(|path| encoded(&path, &['?', '\\', '`']));
        request.raw_query_string = request.raw_query_string.take().map(|query| encoded(&query, &[]));
    }
    event
}

/// The text with all characters encoded that no address has as they are, and with `others`. What is encoded stays so.
fn encoded(text: &str, others: &[char]) -> String {
    let stays = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '#' | '<' | '>') && !others.contains(&c);
    let mut encoded = String::with_capacity(text.len());
    for c in text.chars() {
        match stays(c) {
            true => encoded.push(c),
            false => encoded.push_str(&percent_encoded(c.encode_utf8(&mut [0; 4]))),
        }
    }
    encoded
}
