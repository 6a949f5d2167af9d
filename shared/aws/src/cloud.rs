//! The clients: each made once, when it is first asked for.

use crate::config::{Config, ConfigError};
use aws_config::{BehaviorVersion, SdkConfig, retry::RetryConfig, timeout::TimeoutConfig};
use aws_smithy_http_client::{Builder, tls};
use ports::Clock;
use std::{sync::Arc, time::Duration};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(2);

/// One account and region, and what was deployed in it.
///
/// Making it asks nobody: credentials are fetched with the first request, and each client is made when its adapter is. They
/// all share one pool of connections.
pub struct Cloud {
    config: Config,
    sdk: SdkConfig,
    clock: Arc<dyn Clock>,
}

impl Cloud {
    /// With credentials, region and endpoints from where the SDK looks for them (`AWS_ENDPOINT_URL_<SERVICE>` replaces one).
    pub async fn connect(config: Config, clock: Arc<dyn Clock>) -> Self {
        let http = Builder::new().tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring));
        let sdk = aws_config::defaults(BehaviorVersion::latest())
            .http_client(http.build_https())
            .retry_config(RetryConfig::standard())
            .load()
            .await;
        Self::new(config, sdk, clock)
    }

    /// With an SDK that somebody configured.
    pub fn new(config: Config, sdk: SdkConfig, clock: Arc<dyn Clock>) -> Self {
        Self { config, sdk, clock }
    }

    /// What was deployed.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The table.
    #[cfg(feature = "dynamodb")]
    pub fn table(&self) -> Result<crate::DynamoTable, ConfigError> {
        let name = self.config.table()?;
        let timeouts = timeouts(Duration::from_secs(5), Duration::from_secs(20));
        let config = aws_sdk_dynamodb::config::Builder::from(&self.sdk).timeout_config(timeouts).build();
        Ok(crate::DynamoTable::new(aws_sdk_dynamodb::Client::from_conf(config), name, self.clock.clone()))
    }

    /// The queue of commands. Schedules are needed by nobody who does not send far ahead, so that client is made when one is.
    #[cfg(feature = "sqs")]
    pub fn queue(&self) -> Result<crate::SqsQueue, ConfigError> {
        let names = crate::QueueNames {
            queue_url: self.config.queue_url()?.to_owned(),
            delay_queue_url: self.config.delay_queue_url()?.to_owned(),
            delay_queue_arn: self.config.delay_queue_arn()?.to_owned(),
            scheduler_group: self.config.scheduler_group()?.to_owned(),
            scheduler_role_arn: self.config.scheduler_role_arn()?.to_owned(),
        };
        // Longer than the longest wait for messages.
        let timeouts = timeouts(Duration::from_secs(30), Duration::from_secs(70));
        let config = aws_sdk_sqs::config::Builder::from(&self.sdk).timeout_config(timeouts).build();
        Ok(crate::SqsQueue::new(aws_sdk_sqs::Client::from_conf(config), self.sdk.clone(), names, self.clock.clone()))
    }
}

/// How long one attempt may take, and all of them: the SDK by itself would wait for ever for an answer that was lost.
fn timeouts(attempt: Duration, operation: Duration) -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(CONNECT)
        .operation_attempt_timeout(attempt)
        .operation_timeout(operation)
        .build()
}
