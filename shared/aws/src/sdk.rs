//! The sources of a deployed process's credentials, region and endpoints: the variables and addresses that Lambda and ECS give it, and no
//! others.
//!
//! The SDK would look in more places: a profile's files, web identities, the metadata of an instance. None of them applies here, each costs
//! a client or a parser in every binary, and a start that waits.

use aws_config::{
    BehaviorVersion, Region, SdkConfig, ecs::EcsCredentialsProvider,
    environment::EnvironmentVariableCredentialsProvider, identity::IdentityCache,
    meta::credentials::CredentialsProviderChain, provider_config::ProviderConfig, retry::RetryConfig,
    timeout::TimeoutConfig,
};
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_async::{rt::sleep::TokioSleep, time::SystemTimeSource};
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};
use std::time::Duration;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(2);

/// How long one attempt may take, and all of them: the SDK by itself would wait for ever for an answer that was lost.
pub(crate) fn timeouts(attempt: Duration, operation: Duration) -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(CONNECT)
        .operation_attempt_timeout(attempt)
        .operation_timeout(operation)
        .build()
}

/// Sends no request: credentials are fetched with the first one.
pub(crate) fn from_env() -> SdkConfig {
    // Lambda puts them into the environment, ECS behind an address that is there.
    let http = crate::https::client();
    let asks = ProviderConfig::without_region().with_http_client(http.clone());
    let credentials = CredentialsProviderChain::first_try("Environment", EnvironmentVariableCredentialsProvider::new())
        .or_else("EcsContainer", EcsCredentialsProvider::builder().configure(&asks).build());
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .http_client(http)
        .identity_cache(IdentityCache::lazy().build())
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .region(variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION")).map(Region::new))
        .service_config(Endpoints)
        .use_fips(is_on("AWS_USE_FIPS_ENDPOINT"))
        .use_dual_stack(is_on("AWS_USE_DUALSTACK_ENDPOINT"))
        .retry_config(RetryConfig::standard())
        .sleep_impl(TokioSleep::new())
        .time_source(SystemTimeSource::new())
        .build()
}

/// `AWS_ENDPOINT_URL_<SERVICE>`, and `AWS_ENDPOINT_URL` for the services that have none of their own.
#[derive(Debug)]
struct Endpoints;

impl LoadServiceConfig for Endpoints {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        let own = format!("{}_{}", key.env(), key.service_id().to_uppercase().replace(' ', "_"));
        variable(&own).or_else(|| variable(key.env()))
    }
}

/// Whether somebody else than AWS answers for a service, such as `S3`.
pub(crate) fn is_redirected(service: &str) -> bool {
    variable(&format!("AWS_ENDPOINT_URL_{service}")).or_else(|| variable("AWS_ENDPOINT_URL")).is_some()
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn is_on(name: &str) -> bool {
    variable(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}
