//! The requests to ECS.

use super::{record::Record, unavailable_reason};
use crate::{
    config::Sandbox,
    fault::{AwsFault, Class},
};
use aws_sdk_ecs::{
    Client,
    operation::run_task::RunTaskError,
    types::{
        AssignPublicIp, AwsVpcConfiguration, CapacityProviderStrategyItem, ContainerOverride, DesiredStatus,
        KeyValuePair, LaunchType, NetworkConfiguration, PropagateTags, Tag, Task, TaskOverride,
    },
};
use domain::WorkspaceId;
use std::collections::HashMap;

/// As the task definition calls it.
const CONTAINER: &str = "sandbox";
const WORKSPACE: &str = "BUILDSCALE__SANDBOX__WORKSPACE";
const TOKEN_SHA256: &str = "BUILDSCALE__SANDBOX__TOKEN_SHA256";

pub(super) type Result<T> = std::result::Result<T, AwsFault>;

/// The tasks of one cluster that are sandboxes.
///
/// # Errors
/// Every request fails with a [`AwsFault`]: ECS throttled or refused it, or its outcome is unknown.
pub(super) struct Tasks {
    client: Client,
    deployed: Sandbox,
}

/// The outcome of a request for a task.
pub(super) enum Run {
    /// There is one, with this ARN.
    Task(String),
    /// ECS says no, for this reason.
    Refused(String),
}

/// How a task is.
#[derive(Debug)]
pub(super) struct Seen {
    pub status: Status,
    /// Its `startedBy`.
    pub started_by: String,
}

#[derive(Debug)]
pub(super) enum Status {
    /// It does not run yet: the thing that it waits for.
    Coming(&'static str),
    /// It runs, at this address of its own.
    Runs(Option<String>),
    /// It has ended, or is about to, for this reason.
    Over {
        reason: String,
        /// By itself, without anything wrong.
        in_order: bool,
    },
}

impl Tasks {
    pub fn new(client: Client, deployed: Sandbox) -> Self {
        Self { client, deployed }
    }

    /// The URL of a task at this address.
    pub fn url(&self, address: &str) -> String {
        format!("http://{address}:{}", self.deployed.port)
    }

    pub fn port(&self) -> u16 {
        self.deployed.port
    }

    /// Makes sure that there is a task for a record: ECS starts one and gives the same one whenever it is asked again.
    ///
    /// # Errors
    /// Those of [`Tasks`], but for a refusal, which is [`Run::Refused`].
    pub async fn run(&self, workspace: WorkspaceId, record: &Record) -> Result<Run> {
        let deployed = &self.deployed;
        let variable = |name: &str, value: String| KeyValuePair::builder().name(name).value(value).build();
        let container = ContainerOverride::builder()
            .name(CONTAINER)
            .environment(variable(WORKSPACE, workspace.to_string()))
            .environment(variable(TOKEN_SHA256, record.token_sha256().to_string()))
            .build();
        let network = AwsVpcConfiguration::builder()
            .set_subnets(Some(deployed.subnets.clone()))
            .set_security_groups(Some(deployed.security_groups.clone()))
            .assign_public_ip(AssignPublicIp::Disabled);
        let network = network.build().map_err(|error| AwsFault::unknown(error.to_string()))?;
        let tag = |key: &str, value: String| Tag::builder().key(key).value(value).build();
        let request = self
            .client
            .run_task()
            .cluster(&deployed.cluster)
            .task_definition(&deployed.task_definition)
            .count(1)
            .client_token(&record.attempt)
            .started_by(Record::started_by(workspace, &record.attempt))
            .network_configuration(NetworkConfiguration::builder().awsvpc_configuration(network).build())
            .overrides(TaskOverride::builder().container_overrides(container).build())
            .propagate_tags(PropagateTags::TaskDefinition)
            // So that a bill shows the workspace.
            .tags(tag("buildscale:workspace", workspace.to_string()));
        let request = match &deployed.capacity_provider {
            Some(provider) => {
                let strategy = CapacityProviderStrategyItem::builder().capacity_provider(provider).weight(1);
                let strategy = strategy.build().map_err(|error| AwsFault::unknown(error.to_string()))?;
                request.capacity_provider_strategy(strategy)
            }
            None => request.launch_type(LaunchType::Fargate),
        };
        match request.send().await {
            Ok(answer) => Ok(match (answer.tasks().first().and_then(Task::task_arn), answer.failures().first()) {
                (Some(task), _) => Run::Task(task.to_owned()),
                (None, failure) => Run::Refused(unavailable_reason::not_placed(
                    failure.and_then(|failure| failure.reason()).unwrap_or_default(),
                )),
            }),
            Err(error) => {
                // It was asked for by a worker of another version, in other words: its task is as good.
                if let Some(RunTaskError::ConflictException(conflict)) = error.as_service_error()
                    && let Some(task) = conflict.resource_ids().first()
                {
                    return Ok(Run::Task(task.clone()));
                }
                match AwsFault::of(&error) {
                    fault if fault.class == Class::Refused => Ok(Run::Refused(format!("ECS refuses: {fault}"))),
                    fault => Err(fault),
                }
            }
        }
    }

    /// How tasks are, by ARN; those that ECS does not know are missing. At most 100.
    ///
    /// # Errors
    /// Those of [`Tasks`]; also for over 100 tasks, which ECS refuses.
    pub async fn describe(&self, tasks: &[String]) -> Result<HashMap<String, Seen>> {
        if tasks.is_empty() {
            return Ok(HashMap::new());
        }
        let request = self.client.describe_tasks().cluster(&self.deployed.cluster);
        let answer = request.set_tasks(Some(tasks.to_vec())).send().await.map_err(|error| AwsFault::of(&error))?;
        Ok(answer.tasks().iter().filter_map(|task| Some((task.task_arn()?.to_owned(), seen(task)))).collect())
    }

    /// Ends a task; one that has ended, or that ECS has forgotten, is fine.
    ///
    /// # Errors
    /// Those of [`Tasks`]. A task whose outcome is unknown may have ended; it can be ended again.
    pub async fn stop(&self, task: &str, reason: &str) -> Result<()> {
        // ECS keeps 1,024 characters.
        let reason: String = reason.chars().take(250).collect();
        let request = self.client.stop_task().cluster(&self.deployed.cluster).task(task).reason(reason);
        match request.send().await.map_err(|error| AwsFault::of(&error)) {
            Ok(_) => Ok(()),
            Err(fault) if fault.message.contains("not found") && fault.class == Class::Refused => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// A page of the ARNs of all that run or are to run, and where the next one begins.
    ///
    /// # Errors
    /// Those of [`Tasks`].
    pub async fn list(&self, from: Option<String>) -> Result<(Vec<String>, Option<String>)> {
        let request = self.client.list_tasks().cluster(&self.deployed.cluster).family(self.family());
        let request = request.desired_status(DesiredStatus::Running).set_next_token(from);
        let answer = request.send().await.map_err(|error| AwsFault::of(&error))?;
        Ok((answer.task_arns.unwrap_or_default(), answer.next_token.filter(|token| !token.is_empty())))
    }

    /// Of `family`, `family:3` or an ARN of either. Tasks of every revision are ours.
    fn family(&self) -> &str {
        let name = self.deployed.task_definition.rsplit('/').next().unwrap_or_default();
        name.split(':').next().unwrap_or_default()
    }
}

fn seen(task: &Task) -> Seen {
    let (last, desired) = (task.last_status().unwrap_or_default(), task.desired_status().unwrap_or_default());
    let status = match last {
        "DEACTIVATING" | "STOPPING" | "DEPROVISIONING" | "STOPPED" | "DELETED" => over(task),
        _ if desired == "STOPPED" => over(task),
        "RUNNING" => Status::Runs(address(task)),
        // Also one that we do not know.
        _ => Status::Coming(unavailable_reason::coming(last, task.container_instance_arn().is_some())),
    };
    Seen { status, started_by: task.started_by().unwrap_or_default().to_owned() }
}

fn over(task: &Task) -> Status {
    let (reason, in_order) = unavailable_reason::over(task);
    Status::Over { reason, in_order }
}

/// Of the task's own network interface.
fn address(task: &Task) -> Option<String> {
    let details = task.attachments().iter().flat_map(|attachment| attachment.details());
    let attached =
        details.filter(|detail| detail.name() == Some("privateIPv4Address")).find_map(|detail| detail.value());
    let interfaces = task.containers().iter().flat_map(|container| container.network_interfaces());
    attached.or_else(|| interfaces.filter_map(|interface| interface.private_ipv4_address()).next()).map(str::to_owned)
}
