//! Secrets from Secrets Manager, and from SSM's parameters.

use crate::fault::unavailable;
use async_trait::async_trait;
use aws_config::SdkConfig;
use parking_lot::Mutex;
use ports::{Error, Recipient, Result, Secret, SecretRef, Secrets};
use std::{collections::HashMap, sync::OnceLock, time::Duration};
use tokio::time::Instant;

const MANAGER: &str = "Secrets Manager";
const PARAMETERS: &str = "SSM";
/// How long a secret is cached: a rotation is noticed within this time, and a busy worker asks twelve times an hour.
const GOOD_FOR: Duration = Duration::from_secs(5 * 60);

/// The secrets of a deployment, below one prefix.
///
/// The author of a flow names a secret, and may name none but those made for flows: the prefix is put before every name. A name that begins
/// with `/` is a parameter of SSM, any other one a secret of Secrets Manager. Variables and files of the function are refused. Values are
/// cached for five minutes.
pub struct AwsSecrets {
    sdk: SdkConfig,
    prefix: String,
    manager: OnceLock<aws_sdk_secretsmanager::Client>,
    parameters: OnceLock<aws_sdk_ssm::Client>,
    known: Mutex<HashMap<String, (Instant, Option<Secret>)>>,
}

impl AwsSecrets {
    /// The secrets called `{prefix}/…`, and the parameters called `/{prefix}/…`.
    pub fn new(sdk: SdkConfig, prefix: impl Into<String>) -> Self {
        let prefix = prefix.into().trim_matches('/').to_owned();
        Self { sdk, prefix, manager: OnceLock::new(), parameters: OnceLock::new(), known: Mutex::default() }
    }

    /// The value of the parameter of SSM with this name, wherever it is: for the deployment's own use. It is not cached.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when SSM does not answer, throttles or refuses. A parameter that does not exist is none.
    pub async fn parameter(&self, name: &str) -> Result<Option<Secret>> {
        let client = self.parameters.get_or_init(|| aws_sdk_ssm::Client::new(&self.sdk));
        match client.get_parameter().name(name).with_decryption(true).send().await {
            Ok(answer) => Ok(answer.parameter().and_then(|parameter| parameter.value()).and_then(clean)),
            Err(error) if error.as_service_error().is_some_and(|error| error.is_parameter_not_found()) => Ok(None),
            Err(error) => Err(unavailable(PARAMETERS, &error)),
        }
    }

    async fn secret(&self, id: &str) -> Result<Option<Secret>> {
        let client = self.manager.get_or_init(|| aws_sdk_secretsmanager::Client::new(&self.sdk));
        match client.get_secret_value().secret_id(id).send().await {
            Ok(answer) => Ok(answer.secret_string().and_then(clean)),
            Err(error) if error.as_service_error().is_some_and(|error| error.is_resource_not_found_exception()) => {
                Ok(None)
            }
            Err(error) => Err(unavailable(MANAGER, &error)),
        }
    }

    fn remembered(&self, name: &str) -> Option<Option<Secret>> {
        let known = self.known.lock();
        known.get(name).filter(|(at, _)| at.elapsed() < GOOD_FOR).map(|(_, secret)| secret.clone())
    }
}

#[async_trait]
impl Secrets for AwsSecrets {
    async fn get(&self, reference: &SecretRef, _: Recipient<'_>) -> Result<Option<Secret>> {
        let SecretRef::Named(name) = reference else {
            return Err(Error::Invalid(format!("{reference} is not for flows: in the cloud, name a secret")));
        };
        let plain = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        if name.len() > 256
            || !name.strip_prefix('/').unwrap_or(name).split('/').all(|part| plain(part) && part != "..")
        {
            return Err(Error::Invalid(format!("{reference} has no name that a secret could have")));
        }
        if let Some(known) = self.remembered(name) {
            return Ok(known);
        }
        let found = match name.strip_prefix('/') {
            Some(name) => self.parameter(&format!("/{}/{name}", self.prefix)).await?,
            None => self.secret(&format!("{}/{name}", self.prefix)).await?,
        };
        let mut known = self.known.lock();
        known.retain(|_, (at, _)| at.elapsed() < GOOD_FOR);
        known.insert(name.clone(), (Instant::now(), found.clone()));
        Ok(found)
    }
}

fn clean(text: &str) -> Option<Secret> {
    Some(text.trim()).filter(|text| !text.is_empty()).map(Secret::new)
}
