//! The cost of starting a function: from the process to its first poll, and the most memory it has had by then.

use crate::{Failure, Settings, instance::Instance};
use std::{path::Path, time::Duration};

/// One start.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// From the start of the process to its first poll of the Runtime API.
    pub took: Duration,
    /// The most that was resident, in bytes.
    pub held: u64,
}

/// Starts a binary as Lambda would, with the variables of a deployment without servers: until it polls it may send no request.
pub async fn start(binary: &Path) -> Result<Start, Failure> {
    let settings = Settings {
        name: binary.to_string_lossy().into_owned(),
        binary: binary.into(),
        environment: NOWHERE.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        timeout: Duration::from_secs(60),
        concurrency: 1,
        log: None,
    };
    let instance = Instance::start(&settings).await?;
    Ok(Start { took: instance.init, held: peak(instance.pid()) })
}

/// A request to a service would fail: nothing listens on this port.
const NOWHERE: [(&str, &str); 17] = [
    ("AWS_REGION", "eu-central-1"),
    ("AWS_ACCESS_KEY_ID", "nobody"),
    ("AWS_SECRET_ACCESS_KEY", "nobody"),
    ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
    ("BUILDSCALE__AWS__TABLE", "buildscale"),
    ("BUILDSCALE__AWS__QUEUE_URL", "http://127.0.0.1:1/000000000000/commands.fifo"),
    ("BUILDSCALE__AWS__DELAY_QUEUE_URL", "http://127.0.0.1:1/000000000000/delays"),
    ("BUILDSCALE__AWS__DELAY_QUEUE_ARN", "arn:aws:sqs:eu-central-1:000000000000:delays"),
    ("BUILDSCALE__AWS__SCHEDULER_GROUP", "buildscale"),
    ("BUILDSCALE__AWS__SCHEDULER_ROLE_ARN", "arn:aws:iam::000000000000:role/scheduler"),
    ("BUILDSCALE__AWS__BUCKET", "buildscale"),
    ("BUILDSCALE__AWS__BUS", "rediss://127.0.0.1:1"),
    ("BUILDSCALE__AUTH__ISSUER", "https://issuer.invalid/"),
    ("BUILDSCALE__AUTH__AUDIENCE", "buildscale"),
    ("BUILDSCALE__AUTH__JWKS_URL", "https://127.0.0.1:1/jwks.json"),
    ("BUILDSCALE__AUTH__TICKET_SECRET", "a secret that signs the tickets of nobody"),
    ("ANTHROPIC_API_KEY", "a-key-of-nobody"),
];

/// By the kernel's account; none where there is none.
fn peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}
