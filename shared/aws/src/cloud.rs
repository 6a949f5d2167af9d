//! The clients: each made once, when it is first asked for.

#[cfg(any(feature = "momento", feature = "redis"))]
use crate::config::BusAddress;
use crate::{
    config::{Config, ConfigError},
    sdk::timeouts,
};
use aws_config::SdkConfig;
use ports::Clock;
use std::{sync::Arc, time::Duration};

/// One account and region, with the resources deployed in it.
///
/// Making it sends no request: credentials are fetched with the first one, and each client is made when its adapter is. They all share one
/// pool of connections.
///
/// # Errors
/// A method that needs a variable fails with [`ConfigError`], which names it, when it is not set.
pub struct Cloud {
    config: Config,
    sdk: SdkConfig,
    clock: Arc<dyn Clock>,
}

impl Cloud {
    /// With the credentials and the region that Lambda and ECS give a process (`AWS_ENDPOINT_URL_<SERVICE>` replaces an endpoint).
    pub fn connect(config: Config, clock: Arc<dyn Clock>) -> Self {
        Self::new(config, crate::sdk::from_env(), clock)
    }

    /// With an SDK that somebody configured.
    pub fn new(config: Config, sdk: SdkConfig, clock: Arc<dyn Clock>) -> Self {
        Self { config, sdk, clock }
    }

    /// The deployed resources.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The table.
    ///
    /// # Errors
    /// When `BUILDSCALE__AWS__TABLE` is not set.
    #[cfg(feature = "dynamodb")]
    pub fn table(&self) -> Result<crate::DynamoTable, ConfigError> {
        let name = self.config.table()?;
        let timeouts = timeouts(Duration::from_secs(5), Duration::from_secs(20));
        let config = aws_sdk_dynamodb::config::Builder::from(&self.sdk).timeout_config(timeouts).build();
        Ok(crate::DynamoTable::new(aws_sdk_dynamodb::Client::from_conf(config), name, self.clock.clone()))
    }

    /// The queue of commands. Only messages for far ahead need schedules, so that client is made when one is sent.
    ///
    /// # Errors
    /// When `BUILDSCALE__AWS__QUEUE_URL`, `…DELAY_QUEUE_URL`, `…DELAY_QUEUE_ARN`, `…SCHEDULER_GROUP` or `…SCHEDULER_ROLE_ARN` is not set.
    #[cfg(feature = "sqs")]
    pub fn queue(&self) -> Result<crate::SqsQueue, ConfigError> {
        let names = crate::QueueNames {
            queue_url: self.config.queue_url()?.to_owned(),
            delay_queue_url: self.config.delay_queue_url()?.to_owned(),
            delay_queue_arn: self.config.delay_queue_arn()?.to_owned(),
            scheduler_group: self.config.scheduler_group()?.to_owned(),
            scheduler_role_arn: self.config.scheduler_role_arn()?.to_owned(),
        };
        // Receiving takes longer by itself, and has time-outs of its own. A sender waits for the answer to a person's request, and a lost
        // one has to be noticed while there is time to ask again.
        let sdk = self.impatient();
        Ok(crate::SqsQueue::new(aws_sdk_sqs::Client::new(&sdk), sdk, names, self.clock.clone()))
    }

    /// The archive of contents.
    ///
    /// # Errors
    /// When `BUILDSCALE__AWS__BUCKET` is not set.
    #[cfg(feature = "s3")]
    pub fn blobs(&self) -> Result<crate::S3Blobs, ConfigError> {
        let bucket = self.config.bucket()?;
        // A part of a large content may take its time; silence may not.
        let timeouts = timeouts(Duration::from_secs(60), Duration::from_secs(180)).to_builder();
        let timeouts = timeouts.read_timeout(Duration::from_secs(10)).build();
        // An emulator has one name for all buckets.
        let config = aws_sdk_s3::config::Builder::from(&self.sdk).timeout_config(timeouts);
        let config = config.force_path_style(crate::sdk::is_redirected("S3")).build();
        Ok(crate::S3Blobs::new(aws_sdk_s3::Client::from_conf(config), bucket))
    }

    /// The bus. Must be called in a runtime of tokio.
    ///
    /// # Errors
    /// When `BUILDSCALE__AWS__BUS` is not set, is no address of a Redis, or names a bus that this function was built without; for Momento
    /// also when `…MOMENTO_SECRET` is not set. The secret itself is read later.
    #[cfg(any(feature = "momento", feature = "redis"))]
    pub fn bus(&self) -> Result<Arc<dyn ports::Bus>, ConfigError> {
        match self.config.bus()? {
            #[cfg(feature = "redis")]
            BusAddress::Redis(address) => match crate::RedisBus::new(address) {
                Ok(bus) => Ok(Arc::new(bus)),
                Err(error) => Err(ConfigError::of_bus(error.to_string())),
            },
            #[cfg(feature = "momento")]
            BusAddress::Momento { cache } => {
                let name: Arc<str> = self.config.momento_secret()?.into();
                let secrets = Arc::new(self.secrets(""));
                let keys = move || {
                    let (name, secrets) = (name.clone(), secrets.clone());
                    let key = async move {
                        let absent =
                            || ports::Error::Invalid(format!("there is no parameter {name} with the key of the bus"));
                        secrets.parameter(&name).await?.ok_or_else(absent)
                    };
                    Box::pin(key) as futures::future::BoxFuture<'static, _>
                };
                Ok(Arc::new(crate::MomentoBus::new(cache, Arc::new(keys))))
            }
            #[cfg(not(all(feature = "momento", feature = "redis")))]
            _ => Err(ConfigError::of_bus("names a bus that this function was built without")),
        }
    }

    /// The secrets that flows may name: those below `prefix`.
    #[cfg(feature = "secrets")]
    pub fn secrets(&self, prefix: &str) -> crate::AwsSecrets {
        crate::AwsSecrets::new(self.impatient(), prefix)
    }

    /// The sandboxes, whose items are in `table`; none when none were deployed. `connect` makes the client of one.
    #[cfg(feature = "ecs")]
    pub fn sandboxes(&self, table: Arc<dyn ports::Table>, connect: crate::Connect) -> Option<crate::EcsSandboxes> {
        let deployed = self.config.sandbox()?.clone();
        let client = aws_sdk_ecs::Client::new(&self.impatient());
        Some(crate::EcsSandboxes::new(client, deployed, table, self.clock.clone(), connect))
    }

    /// For services that answer at once.
    #[cfg(any(feature = "ecs", feature = "secrets", feature = "sqs"))]
    fn impatient(&self) -> SdkConfig {
        let timeouts = timeouts(Duration::from_secs(5), Duration::from_secs(20));
        self.sdk.clone().into_builder().timeout_config(timeouts).build()
    }
}
