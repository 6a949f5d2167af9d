//! Clients of HTTP.

use reqwest::{ClientBuilder, redirect};
use std::time::Duration;

/// How long a connection may take. A task that has gone leaves an address without an answer.
pub(crate) const CONNECT: Duration = Duration::from_secs(3);

/// A client that asks the given address alone: it follows no redirect, and uses no proxy of the environment.
pub(crate) fn client() -> ClientBuilder {
    // A program that links another provider has installed it before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().connect_timeout(CONNECT).redirect(redirect::Policy::none()).no_proxy()
}
