//! HTTPS for all clients, which no start of a function waits for.

use aws_smithy_http_client::{Builder, tls};
use aws_smithy_runtime_api::client::{
    http::{HttpClient, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector},
    runtime_components::{RuntimeComponents, RuntimeComponentsBuilder},
};
use aws_smithy_types::config_bag::ConfigBag;

/// The SDK's own client, but that it need not be complete before anything is asked: the SDK would read the machine's root
/// certificates, a hundred and more files on some, whenever a client is configured.
#[derive(Debug)]
struct Https(SharedHttpClient);

/// One for all clients. The root certificates are read by a thread of their own meanwhile: a function polls for work at once, and the
/// sender of the first request waits for the rest of it.
pub(crate) fn client() -> SharedHttpClient {
    let ring = tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring);
    let client = Builder::new().tls_provider(ring).build_https();
    let reads = client.clone();
    // This is when the SDK reads them, once per process. The first request reports any fault of theirs.
    std::thread::spawn(move || {
        drop(reads.validate_base_client_config(&RuntimeComponentsBuilder::new("https"), &ConfigBag::base()));
    });
    SharedHttpClient::new(Https(client))
}

impl HttpClient for Https {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        self.0.http_connector(settings, components)
    }
}
