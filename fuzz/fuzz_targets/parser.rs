//! Any parser that input reaches: that which `BUILDSCALE_PARSER` names, of `tests/parsers`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static FEED: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("BUILDSCALE_PARSER").unwrap_or_else(|_| "paths".into());
    parsers::target(&name).unwrap_or_else(|| panic!("there is no parser {name}")).feed
});

fuzz_target!(|bytes: &[u8]| FEED(bytes));
