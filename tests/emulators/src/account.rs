//! The resources of a deployment, made in emulators: the same keys, index, queues and policies as `template.yaml`.

use aws::QueueNames;
use aws_config::{BehaviorVersion, Region, SdkConfig, retry::RetryConfig};
use aws_sdk_dynamodb::{
    config::{Credentials, SharedCredentialsProvider},
    types::{
        AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
        ScalarAttributeType,
    },
};
use aws_sdk_sqs::types::QueueAttributeName;
use std::{
    error::Error,
    hash::{BuildHasher as _, Hasher as _, RandomState},
    sync::LazyLock,
};

/// The account of what has no other, such as the tasks of [`crate::ecs`].
pub const ACCOUNT: &str = "000000000000";
/// The secret of every access key.
pub const SECRET: &str = "test";
/// The region that everything is in.
pub const REGION: &str = "us-east-1";

/// The account of this process, and the id of its access key: twelve digits, by which LocalStack keeps the queues, schedules, secrets and parameters of
/// accounts apart. Names of buckets are of all accounts.
pub fn id() -> &'static str {
    static ID: LazyLock<String> = LazyLock::new(|| {
        let chance = RandomState::new().build_hasher().finish() % 900_000_000_000;
        (100_000_000_000 + chance).to_string()
    });
    &ID
}

/// Any error; tests show it.
pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// An SDK whose clients talk to `endpoint`.
pub fn sdk(endpoint: &str) -> SdkConfig {
    let http = aws_smithy_http_client::Builder::new().build_http();
    let credentials = Credentials::new(id(), SECRET, None, None, "emulator");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .region(Region::from_static(REGION))
        .endpoint_url(endpoint)
        .http_client(http)
        .retry_config(RetryConfig::standard())
        .build()
}

/// A table called `name`.
pub async fn table(sdk: &SdkConfig, name: &str) -> Result<()> {
    let attribute =
        |name: &str| AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::S).build();
    let schema = |name: &str, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build();
    let everything = Projection::builder().projection_type(ProjectionType::All).build();
    let index = GlobalSecondaryIndex::builder()
        .index_name("by_index")
        .key_schema(schema("ipk", KeyType::Hash)?)
        .key_schema(schema("isk", KeyType::Range)?)
        .projection(everything)
        .build()?;
    aws_sdk_dynamodb::Client::new(sdk)
        .create_table()
        .table_name(name)
        .attribute_definitions(attribute("pk")?)
        .attribute_definitions(attribute("sk")?)
        .attribute_definitions(attribute("ipk")?)
        .attribute_definitions(attribute("isk")?)
        .key_schema(schema("pk", KeyType::Hash)?)
        .key_schema(schema("sk", KeyType::Range)?)
        .global_secondary_indexes(index)
        .billing_mode(BillingMode::PayPerRequest)
        .send()
        .await?;
    Ok(())
}

/// The FIFO queue `name`.fifo, its dead-letter queue after `max_attempts` deliveries, and its queue for delays.
pub async fn queues(sdk: &SdkConfig, name: &str, max_attempts: u32) -> Result<QueueNames> {
    let client = aws_sdk_sqs::Client::new(sdk);
    let fifo = |name: String| client.create_queue().queue_name(name).attributes(QueueAttributeName::FifoQueue, "true");
    fifo(format!("{name}-dead.fifo")).send().await?;
    let account = id();
    let policy = format!(
        r#"{{"deadLetterTargetArn":"arn:aws:sqs:{REGION}:{account}:{name}-dead.fifo","maxReceiveCount":"{max_attempts}"}}"#
    );
    let queue = fifo(format!("{name}.fifo")).attributes(QueueAttributeName::RedrivePolicy, policy).send().await?;
    let delays = client.create_queue().queue_name(format!("{name}-delays")).send().await?;
    Ok(QueueNames {
        queue_url: queue.queue_url.ok_or("a queue has an address")?,
        delay_queue_url: delays.queue_url.ok_or("a queue has an address")?,
        delay_queue_arn: format!("arn:aws:sqs:{REGION}:{account}:{name}-delays"),
        scheduler_group: "default".into(),
        scheduler_role_arn: format!("arn:aws:iam::{account}:role/scheduler"),
    })
}

/// A bucket called `name`.
pub async fn bucket(sdk: &SdkConfig, name: &str) -> Result<()> {
    aws_sdk_s3::Client::new(sdk).create_bucket().bucket(name).send().await?;
    Ok(())
}
