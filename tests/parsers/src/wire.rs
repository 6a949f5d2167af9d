//! Inputs that come over the wire before anything is known of their sender: forms, answers of calendar servers, event streams, requests of commands to their
//! proxy, and signed tokens.

use crate::{parts, text};
use calendars::caldav::xml::{self, Element};
use identity::{MIN_SECRET, TrustedIssuer, Verifier, mint};
use ports::{Clock, Secret};
use protocols::multipart;
use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};
use testkit::TestClock;

/// The deepest tree of an answer: elements that are opened, and an empty one in the last of them.
const DEPTH: usize = 33;

/// XML of WebDAV.
pub(crate) fn dav(bytes: &[u8]) {
    fn depth(of: &Element) -> usize {
        1 + of.children.iter().map(depth).max().unwrap_or_default()
    }
    if let Some(root) = xml::parse(&text(bytes)) {
        assert!(depth(&root) <= DEPTH, "{root:?}");
    }
}

/// A stream of events, as clients read it: it means the same however it is cut.
pub(crate) fn event_streams(bytes: &[u8]) {
    let read = |pieces: [&[u8]; 2]| {
        let mut parser = client::Parser::default();
        let frames: Result<Vec<_>, _> = pieces.into_iter().map(|piece| parser.push(piece)).collect();
        (frames.map(|frames| frames.concat()), parser.last_id().to_owned(), parser.retry())
    };
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    assert_eq!(read([bytes, &[]]), read([first, rest]));
}

/// The first line is a `Content-Type`, the rest a body: its parts lie in it, one behind the other.
pub(crate) fn forms(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (kind, body) = bytes.split_at(end);
    let Ok(all) = multipart::parts(&text(kind), body) else { return };
    let length: usize = all.iter().map(|part| part.content.len()).sum();
    assert!(all.len() <= 64 && length <= body.len(), "{all:?}");
    let begins = all.iter().map(|part| part.content.as_ptr());
    assert!(begins.is_sorted(), "{all:?}");
}

/// The head of a request that a command sends to its proxy.
pub(crate) fn proxy_requests(bytes: &[u8]) {
    let Some(request) = sandbox::http_proxy::request(bytes) else { return };
    assert!(!request.host.is_empty() && !request.host.contains(['@', ' ', '/']), "{request:?}");
    if let Some(head) = request.head.as_deref().map(text) {
        assert!(head.ends_with("\r\n\r\n"), "{head}");
        let fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        let secrets = fields.filter(|(name, _)| name.eq_ignore_ascii_case("proxy-authorization"));
        assert_eq!(secrets.count(), 0, "{head}");
    }
}

/// A token with the word `MINTED` for one that opens: no other one opens.
pub(crate) fn tokens(bytes: &[u8]) {
    static MINTED: LazyLock<Option<(Verifier, String)>> = LazyLock::new(|| {
        let trust = TrustedIssuer { issuer: "https://id.example".into(), audience: "buildscale".into() };
        let (secret, clock) = (Secret::new("s".repeat(MIN_SECRET)), Arc::new(TestClock::new(1)));
        let token = mint(&secret, &trust, "ann", clock.now(), Duration::from_secs(3600)).ok()?;
        Some((Verifier::shared(&secret, trust, clock).ok()?, token))
    });
    let Some((verifier, minted)) = &*MINTED else { panic!("a token can be minted") };
    let (head, rest) = parts(bytes);
    let token = [head, rest].concat().replace("MINTED", minted);
    let opened = futures::executor::block_on(verifier.verify(&token));
    assert_eq!(opened.is_ok(), token == *minted, "{token}");
}
