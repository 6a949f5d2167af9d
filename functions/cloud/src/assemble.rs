//! Puts a function together: the one place that knows which adapter stands behind which port.

use crate::{Failure, readonly::NoQueue, stream::Elsewhere};
use api::Streams;
use assembly::{Base, Config, Observing, Parts, Voices, Within, secrets};
use aws::{Cloud, SqsQueue};
use flow::{Evaluations, observe::Observers};
use ports::{Blobs, Clock, Noted, Queue, Secrets, Spilling, SystemClock, Table};
use std::{path::PathBuf, sync::Arc};
use tracing_subscriber::{EnvFilter, util::SubscriberInitExt};
use worker::Worker;

/// Variables of what was deployed; [`aws::Config`] reads them.
const DEPLOYED: &str = "BUILDSCALE__AWS__";
/// Where the container of streams is reached from outside, such as `https://streams.example.com`.
const STREAM_URL: &str = "BUILDSCALE__AWS__STREAM_URL";
/// What the names of secrets begin with that flows may refer to.
const SECRETS_OF_FLOWS: &str = "buildscale/flows";
/// Lost with the instance, and behind whenever another one has written: contents are compared with the index when they are read.
const SCRATCH: &str = "/tmp";

/// One account, with what was deployed in it.
pub struct Account {
    cloud: Cloud,
    pub(crate) config: Config,
    environment: Vec<(String, String)>,
    clock: Arc<dyn Clock>,
}

/// What the worker drives with.
pub struct Working {
    /// Drives the actors of every kind.
    pub worker: Worker,
    /// Where their commands come from.
    pub queue: Arc<SqsQueue>,
    /// Who is told what tasks do.
    pub observers: Arc<Observers>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

/// What the timer wakes with.
pub struct Waking {
    /// Where what is due goes.
    pub queue: Arc<SqsQueue>,
    /// Those that were left behind go on.
    pub evaluations: Evaluations,
}

impl Account {
    /// By the variables of this process. From here on it logs JSON lines to standard output, where Lambda and ECS collect them,
    /// without secrets; `BUILDSCALE_LOG` says how much, as in `info,actor=debug`.
    ///
    /// # Errors
    /// When a variable makes no sense. What is missing is said when it is needed.
    pub async fn from_env() -> Result<Self, Failure> {
        // With two providers linked rustls would not know which one is meant, and with none nothing has TLS.
        drop(rustls::crypto::ring::default_provider().install_default());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let environment: Vec<(String, String)> = std::env::vars_os().filter_map(text).collect();
        let config = Config::of_environment(&environment, |name| name.starts_with(DEPLOYED))?;
        secrets::learn_environment(&environment, &config.secrets);
        let filter = EnvFilter::try_from_env("BUILDSCALE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
        let clean = secrets::Clean(config.secrets.clone(), std::io::stdout);
        // A test may have set one up already.
        drop(tracing_subscriber::fmt().json().with_env_filter(filter).with_writer(clean).finish().try_init());
        let cloud = Cloud::connect(aws::Config::from_env()?, clock.clone()).await;
        Ok(Self { cloud, config, environment, clock })
    }

    /// For `buildscale-worker`.
    ///
    /// # Errors
    /// When a variable is missing.
    pub fn working(&self) -> Result<Working, Failure> {
        let queue = Arc::new(self.cloud.queue()?);
        let (parts, keys) = self.parts(queue.clone())?;
        let scratch = PathBuf::from(SCRATCH);
        let observing =
            Observing::new(&scratch, &self.config, &self.environment, &parts.cache, keys, self.clock.clone())?;
        let options = worker::Options { visibility: crate::worker::LEASE, ..worker::Options::default() };
        let worker = Worker::new(parts.kinds(Arc::new(observing.followers())), queue.clone(), options);
        Ok(Working { worker, queue, observers: observing.observers, clock: self.clock.clone() })
    }

    /// For `buildscale-timer`.
    ///
    /// # Errors
    /// When a variable is missing.
    pub fn waking(&self) -> Result<Waking, Failure> {
        let queue = Arc::new(self.cloud.queue()?);
        let (parts, _) = self.parts(queue.clone())?;
        Ok(Waking { queue, evaluations: parts.evaluations })
    }

    /// For `buildscale-api`.
    ///
    /// # Errors
    /// When a variable is missing.
    pub fn answering(&self) -> Result<axum::Router, Failure> {
        let (parts, _) = self.parts(Arc::new(self.cloud.queue()?))?;
        let url = self.environment.iter().find(|(name, _)| name == STREAM_URL).map(|(_, value)| value.trim());
        let streams = Arc::new(Elsewhere { url: url.unwrap_or_default().trim_end_matches('/').to_owned() });
        Ok(api::router(self.context(parts, streams)?))
    }

    /// For `buildscale-stream`: what may be watched, and what it is read from.
    pub(crate) fn watching(&self, streams: impl FnOnce(&Base) -> Arc<dyn Streams>) -> Result<axum::Router, Failure> {
        let (parts, _) = self.parts(Arc::new(NoQueue))?;
        let streams = streams(&parts.base);
        Ok(api::streams(self.context(parts, streams)?))
    }

    fn parts(&self, queue: Arc<dyn Queue>) -> Result<(Parts, Arc<dyn Secrets>), Failure> {
        let blobs: Arc<dyn Blobs> = Arc::new(self.cloud.blobs()?);
        let table: Arc<dyn Table> = Arc::new(Spilling::new(Arc::new(self.cloud.table()?), blobs.clone()));
        let (bus, clock, files) = (self.cloud.bus()?, self.clock.clone(), PathBuf::from(SCRATCH).join("workspaces"));
        let base = Base { table, queue, bus, blobs, clock, files, keeps_mirrors: false };
        let known = self.config.secrets.clone();
        let keys: Arc<dyn Secrets> =
            Arc::new(Noted::new(Arc::new(self.cloud.secrets(SECRETS_OF_FLOWS)), known.clone()));
        let router = models::Router::new(self.config.ai.models(&self.environment)?);
        let models = Arc::new(router.map_err(assembly::Failure::from)?);
        let within = Arc::new(Within { allow_private: self.config.providers.allow_private });
        let adapters = Arc::new(models::Adapters::new(models.clone(), within));
        let voices = Voices { model: models, adapters, secrets: keys.clone(), known };
        Ok((Parts::new(base, voices, self.config.agents()), keys))
    }

    fn context(&self, parts: Parts, streams: Arc<dyn Streams>) -> Result<Arc<api::Context>, Failure> {
        Ok(Arc::new(api::Context {
            chats: parts.chats,
            tasks: parts.tasks,
            evaluations: parts.evaluations,
            workspaces: parts.workspaces,
            tools: parts.tools,
            model: parts.model,
            streams,
            table: parts.base.table,
            clock: self.clock.clone(),
            auth: self.config.auth.guarded_door(self.clock.clone())?,
            origins: self.config.server.cors_origins.clone(),
            ready: Vec::new(),
            metrics: Vec::new(),
        }))
    }
}
