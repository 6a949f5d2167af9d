//! The deployed resources, by name, from the environment that the template sets.

use std::collections::HashSet;

/// The address of the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusAddress {
    /// Redis or Valkey: `redis://host:port`, or `rediss://…` with TLS.
    Redis(String),
    /// Momento Topics: `momento:<cache>`.
    Momento {
        /// The cache that the topics are in.
        cache: String,
    },
}

/// How sandboxes are started on ECS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// The cluster.
    pub cluster: String,
    /// The task definition.
    pub task_definition: String,
    /// The subnets of the tasks.
    pub subnets: Vec<String>,
    /// Their security groups.
    pub security_groups: Vec<String>,
    /// The capacity provider; Fargate where there is none.
    pub capacity_provider: Option<String>,
    /// The port that they answer on.
    pub port: u16,
    /// The coding agents that their image has, by id.
    pub agents: Vec<String>,
}

/// A variable that is missing or says nothing sensible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {variable} {problem}")]
pub struct ConfigError {
    /// The name of the variable.
    pub variable: &'static str,
    /// The fault, and the expected form.
    pub problem: String,
}

#[cfg(any(feature = "momento", feature = "redis"))]
impl ConfigError {
    pub(crate) fn of_bus(problem: impl Into<String>) -> Self {
        Self { variable: BUS, problem: problem.into() }
    }
}

/// The deployed resources. Each function sets those that it uses, so nothing is missing before it is asked for.
///
/// # Errors
/// Every method that gives a resource fails with [`ConfigError`], which names the variable, when that is not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    table: Option<String>,
    queue_url: Option<String>,
    delay_queue_url: Option<String>,
    delay_queue_arn: Option<String>,
    scheduler_group: Option<String>,
    scheduler_role_arn: Option<String>,
    bucket: Option<String>,
    bus: Option<BusAddress>,
    momento_secret: Option<String>,
    flow_secrets: Option<String>,
    sandbox: Option<Sandbox>,
}

const TABLE: &str = "BUILDSCALE__AWS__TABLE";
const QUEUE_URL: &str = "BUILDSCALE__AWS__QUEUE_URL";
const DELAY_QUEUE_URL: &str = "BUILDSCALE__AWS__DELAY_QUEUE_URL";
const DELAY_QUEUE_ARN: &str = "BUILDSCALE__AWS__DELAY_QUEUE_ARN";
const SCHEDULER_GROUP: &str = "BUILDSCALE__AWS__SCHEDULER_GROUP";
const SCHEDULER_ROLE_ARN: &str = "BUILDSCALE__AWS__SCHEDULER_ROLE_ARN";
const BUCKET: &str = "BUILDSCALE__AWS__BUCKET";
const BUS: &str = "BUILDSCALE__AWS__BUS";
const MOMENTO_SECRET: &str = "BUILDSCALE__AWS__MOMENTO_SECRET";
const FLOW_SECRETS: &str = "BUILDSCALE__AWS__FLOW_SECRETS";
const CLUSTER: &str = "BUILDSCALE__AWS__SANDBOX_CLUSTER";
const TASK_DEFINITION: &str = "BUILDSCALE__AWS__SANDBOX_TASK_DEFINITION";
const SUBNETS: &str = "BUILDSCALE__AWS__SANDBOX_SUBNETS";
const SECURITY_GROUPS: &str = "BUILDSCALE__AWS__SANDBOX_SECURITY_GROUPS";
const CAPACITY_PROVIDER: &str = "BUILDSCALE__AWS__SANDBOX_CAPACITY_PROVIDER";
const PORT: &str = "BUILDSCALE__AWS__SANDBOX_PORT";
const AGENTS: &str = "BUILDSCALE__AWS__SANDBOX_AGENTS";

impl Config {
    /// From the environment of this process.
    ///
    /// # Errors
    /// Those of [`Config::from_variables`].
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// From variables that `look_up` finds; an empty one is none.
    ///
    /// # Errors
    /// When `BUILDSCALE__AWS__QUEUE_URL` does not end in `.fifo`, `BUILDSCALE__AWS__BUS` has another form than [`BusAddress`], or
    /// `BUILDSCALE__AWS__SANDBOX_CLUSTER` is set and another variable of [`Sandbox`] is missing (but the capacity provider and the agents) or malformed. A
    /// missing resource is no error here.
    pub fn from_variables(look_up: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let text = |name| look_up(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        Ok(Self {
            table: text(TABLE),
            queue_url: text(QUEUE_URL).map(fifo).transpose()?,
            delay_queue_url: text(DELAY_QUEUE_URL),
            delay_queue_arn: text(DELAY_QUEUE_ARN),
            scheduler_group: text(SCHEDULER_GROUP),
            scheduler_role_arn: text(SCHEDULER_ROLE_ARN),
            bucket: text(BUCKET),
            bus: text(BUS).map(bus).transpose()?,
            momento_secret: text(MOMENTO_SECRET),
            flow_secrets: text(FLOW_SECRETS),
            sandbox: text(CLUSTER).map(|cluster| sandbox(cluster, text)).transpose()?,
        })
    }

    /// The DynamoDB table: keys `pk` and `sk`, index `by_index` on `ipk` and `isk`, time to live in `expires`.
    ///
    /// # Errors
    /// When `BUILDSCALE__AWS__TABLE` is not set.
    pub fn table(&self) -> Result<&str, ConfigError> {
        need(self.table.as_deref(), TABLE)
    }
    /// The URL of the FIFO queue of commands.
    ///
    /// # Errors
    /// When `BUILDSCALE__AWS__QUEUE_URL` is not set.
    pub fn queue_url(&self) -> Result<&str, ConfigError> {
        need(self.queue_url.as_deref(), QUEUE_URL)
    }
    /// The URL of the standard queue for delays.
    ///
    /// # Errors
    /// When `BUILDSCALE__AWS__DELAY_QUEUE_URL` is not set.
    pub fn delay_queue_url(&self) -> Result<&str, ConfigError> {
        need(self.delay_queue_url.as_deref(), DELAY_QUEUE_URL)
    }
    /// The ARN of the same queue, which schedules name as their target.
    ///
    /// # Errors
    /// When `BUILDSCALE__AWS__DELAY_QUEUE_ARN` is not set.
    pub fn delay_queue_arn(&self) -> Result<&str, ConfigError> {
        need(self.delay_queue_arn.as_deref(), DELAY_QUEUE_ARN)
    }
    /// The group that schedules are made in.
    ///
    /// # Errors
    /// When `BUILDSCALE__AWS__SCHEDULER_GROUP` is not set.
    pub fn scheduler_group(&self) -> Result<&str, ConfigError> {
        need(self.scheduler_group.as_deref(), SCHEDULER_GROUP)
    }
    /// The role in which schedules send.
    ///
    /// # Errors
    /// When `BUILDSCALE__AWS__SCHEDULER_ROLE_ARN` is not set.
    pub fn scheduler_role_arn(&self) -> Result<&str, ConfigError> {
        need(self.scheduler_role_arn.as_deref(), SCHEDULER_ROLE_ARN)
    }
    /// The bucket of contents.
    ///
    /// # Errors
    /// When `BUILDSCALE__AWS__BUCKET` is not set.
    pub fn bucket(&self) -> Result<&str, ConfigError> {
        need(self.bucket.as_deref(), BUCKET)
    }
    /// The address of the bus.
    ///
    /// # Errors
    /// When `BUILDSCALE__AWS__BUS` is not set.
    pub fn bus(&self) -> Result<&BusAddress, ConfigError> {
        need(self.bus.as_ref(), BUS)
    }
    /// The name of the parameter of SSM that holds Momento's key.
    ///
    /// # Errors
    /// When `BUILDSCALE__AWS__MOMENTO_SECRET` is not set.
    pub fn momento_secret(&self) -> Result<&str, ConfigError> {
        need(self.momento_secret.as_deref(), MOMENTO_SECRET)
    }
    /// The prefix of the names of secrets that flows may refer to: this deployment's own if it is set, else one for all.
    pub fn flow_secrets(&self) -> &str {
        self.flow_secrets.as_deref().unwrap_or("buildscale/flows")
    }
    /// How sandboxes are started; none where tools work on the archive alone.
    pub fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref()
    }
}

fn need<'a, T: ?Sized>(value: Option<&'a T>, variable: &'static str) -> Result<&'a T, ConfigError> {
    value.ok_or_else(|| ConfigError { variable, problem: "is not set, and this function needs it".into() })
}

fn fifo(url: String) -> Result<String, ConfigError> {
    match url.ends_with(".fifo") {
        true => Ok(url),
        false => Err(ConfigError {
            variable: QUEUE_URL,
            problem: format!("must be the URL of a FIFO queue, which ends in `.fifo`, not {url:?}"),
        }),
    }
}

fn bus(address: String) -> Result<BusAddress, ConfigError> {
    match address.split_once(':') {
        Some(("redis" | "rediss", _)) => Ok(BusAddress::Redis(address)),
        Some(("momento", cache)) if !cache.is_empty() => Ok(BusAddress::Momento { cache: cache.to_owned() }),
        // Not shown: an address of Redis may hold a password.
        _ => Err(ConfigError {
            variable: BUS,
            problem: "must be `redis://host:port`, `rediss://host:port` or `momento:<cache>`".into(),
        }),
    }
}

fn sandbox(cluster: String, text: impl Fn(&'static str) -> Option<String>) -> Result<Sandbox, ConfigError> {
    let needed = |variable| {
        let problem = || format!("is not set, and {CLUSTER} is");
        text(variable).ok_or_else(|| ConfigError { variable, problem: problem() })
    };
    let list = |variable, listed: String| {
        let parts: Vec<String> = listed.split(',').map(|part| part.trim().to_owned()).collect();
        let distinct: HashSet<&String> = parts.iter().collect();
        match distinct.len() == parts.len() && parts.iter().all(|part| !part.is_empty()) {
            true => Ok(parts),
            false => {
                Err(ConfigError { variable, problem: format!("must list ids, separated by commas, not {listed:?}") })
            }
        }
    };
    Ok(Sandbox {
        task_definition: needed(TASK_DEFINITION)?,
        subnets: list(SUBNETS, needed(SUBNETS)?)?,
        security_groups: list(SECURITY_GROUPS, needed(SECURITY_GROUPS)?)?,
        agents: text(AGENTS).map_or(Ok(Vec::new()), |listed| list(AGENTS, listed))?,
        capacity_provider: text(CAPACITY_PROVIDER),
        port: match needed(PORT)?.parse() {
            Ok(port) if port > 0 => port,
            _ => return Err(ConfigError { variable: PORT, problem: "must be a port".into() }),
        },
        cluster,
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Config::from_variables(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn a_missing_variable_is_reported_when_it_is_needed() {
        let config = read(&[(TABLE, " items "), (BUCKET, "")]).unwrap();
        assert_eq!(config.table(), Ok("items"));
        let error = config.bucket().unwrap_err().to_string();
        assert_eq!(error, "the environment variable BUILDSCALE__AWS__BUCKET is not set, and this function needs it");
        assert_eq!(config.sandbox(), None);
    }

    #[test]
    fn a_malformed_variable_is_reported_at_once() {
        assert!(read(&[(QUEUE_URL, "https://sqs/1/commands")]).unwrap_err().to_string().contains(".fifo"));
        assert!(read(&[(QUEUE_URL, "https://sqs/1/commands.fifo")]).is_ok());
        for (address, expected) in [
            ("redis://cache:6379", Some(BusAddress::Redis("redis://cache:6379".into()))),
            ("rediss://u:secret@cache:6379", Some(BusAddress::Redis("rediss://u:secret@cache:6379".into()))),
            ("momento:events", Some(BusAddress::Momento { cache: "events".into() })),
            ("momento:", None),
            ("http://u:secret@cache", None),
        ] {
            match read(&[(BUS, address)]) {
                Ok(config) => assert_eq!(config.bus().ok().cloned(), expected),
                Err(error) => {
                    assert_eq!(expected, None, "{error}");
                    assert!(!error.to_string().contains("secret"), "{error}");
                }
            }
        }
    }

    #[test]
    fn a_sandbox_is_described_as_a_whole() {
        let mut variables = vec![(CLUSTER, "c"), (TASK_DEFINITION, "t:3"), (SUBNETS, "subnet-1, subnet-2")];
        assert_eq!(read(&variables).unwrap_err().variable, SECURITY_GROUPS);
        variables.push((SECURITY_GROUPS, "sg-1,,"));
        assert!(read(&variables).unwrap_err().to_string().contains("separated by commas"));
        variables.pop();
        variables.push((SECURITY_GROUPS, "sg-1"));
        variables.push((PORT, "http"));
        assert!(read(&variables).unwrap_err().to_string().contains("must be a port"));
        variables.pop();
        variables.push((PORT, "8080"));
        let config = read(&variables).unwrap();
        let sandbox = config.sandbox().unwrap();
        assert_eq!((sandbox.subnets.len(), sandbox.capacity_provider.as_deref()), (2, None));
    }
}
