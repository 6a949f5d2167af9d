//! Adapters for AWS: the ports on DynamoDB, SQS with EventBridge Scheduler, S3, Redis or Valkey, Secrets Manager and SSM, ECS.
//!
//! They keep the promises of [`ports`] and no more; the conformance suites of `testkit` hold them to it, on emulators of the real protocols
//! (`tests/emulators`). Beyond that they bound the price: one request for one write, for one page, for ten messages; no scan anywhere;
//! retries only by the SDK's standard mode, except for failures that the SDK does not retry.
//!
//! * [`Config`] names the deployed resources, from the environment; [`Cloud`] makes each client once, when it is first asked for.
//! * [`DynamoTable`] keeps every item of the system in one table with one index.
//! * [`SqsQueue`] delivers by a FIFO queue, and delays by a standard queue and by one-time schedules.
//! * [`S3Blobs`] keeps contents under their SHA-256.
//! * [`RedisBus`] and [`MomentoBus`] carry hints; which one, the configuration says.
//! * [`AwsSecrets`] reads keys.
//! * [`EcsSandboxes`] starts machines for commands, and ends them.
//!
//! A function links the adapters that it uses: each is behind a feature of this crate. [`AwsFault`] says why a service did not fulfil a
//! request, as the source of [`ports::Error::Unavailable`].

#[cfg_attr(
    not(all(
        feature = "dynamodb",
        feature = "ecs",
        feature = "momento",
        feature = "redis",
        feature = "s3",
        feature = "secrets",
        feature = "sqs"
    )),
    allow(dead_code, unused_imports, reason = "a function links the adapters that it uses")
)]
mod cloud;
mod config;
#[cfg(any(feature = "momento", feature = "redis"))]
mod cooldown;
#[cfg(feature = "dynamodb")]
mod dynamo;
#[cfg(feature = "ecs")]
mod ecs;
#[cfg(any(feature = "momento", feature = "redis"))]
mod fanout;
#[cfg_attr(
    not(any(feature = "dynamodb", feature = "s3", feature = "secrets", feature = "sqs")),
    allow(dead_code, unused_imports, reason = "a function links the adapters that it uses")
)]
mod fault;
mod https;
#[cfg(feature = "momento")]
mod momento;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "s3")]
mod s3;
mod sdk;
#[cfg(feature = "secrets")]
mod secrets;
#[cfg(feature = "sqs")]
mod sqs;

pub use cloud::Cloud;
pub use config::{BusAddress, Config, ConfigError, Sandbox};
#[cfg(feature = "dynamodb")]
pub use dynamo::DynamoTable;
#[cfg(feature = "ecs")]
pub use ecs::{Connect, EcsSandboxes, Swept};
pub use fault::{AwsFault, Class};
#[cfg(feature = "momento")]
pub use momento::{Keys, MomentoBus, wire as momento_wire};
#[cfg(feature = "redis")]
pub use redis::RedisBus;
#[cfg(feature = "s3")]
pub use s3::S3Blobs;
#[cfg(feature = "secrets")]
pub use secrets::AwsSecrets;
#[cfg(feature = "sqs")]
pub use sqs::{Due, QueueNames, SqsQueue, delivery, due, outgoing};
