//! The fields that a request must have, and those that it must not.

use super::{CLUSTER, Deployed, FAMILY, REVISION, Refusal};
use crate::account::{ACCOUNT, REGION};
use serde_json::Value;

const RUN: &[&str] = &[
    "capacityProviderStrategy",
    "clientToken",
    "cluster",
    "count",
    "launchType",
    "networkConfiguration",
    "overrides",
    "propagateTags",
    "startedBy",
    "tags",
    "taskDefinition",
];

fn invalid(message: impl Into<String>) -> Refusal {
    ("InvalidParameterException", message.into())
}

/// The rules of every operation.
pub(super) fn request(operation: &str, body: &Value) -> Result<(), Refusal> {
    let known: &[&str] = match operation {
        "RunTask" => RUN,
        "DescribeTasks" => &["cluster", "include", "tasks"],
        "StopTask" => &["cluster", "reason", "task"],
        "ListTasks" => &["cluster", "desiredStatus", "family", "maxResults", "nextToken"],
        _ => return Err(("UnknownOperationException", format!("{operation} is not for sandboxes"))),
    };
    let object = body.as_object().ok_or_else(|| invalid("the body is no object"))?;
    if let Some(unknown) = object.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(invalid(format!("{unknown} is nothing that {operation} is to say here")));
    }
    if body["cluster"] != CLUSTER {
        return Err(("ClusterNotFoundException", "Cluster not found.".into()));
    }
    match operation {
        "DescribeTasks" => match body["tasks"].as_array().map(Vec::len) {
            Some(1..=100) => Ok(()),
            Some(0) | None => Err(invalid("Tasks cannot be empty.")),
            Some(_) => Err(invalid("Tasks may not be more than 100.")),
        },
        "StopTask" if body["reason"].as_str().is_some_and(|reason| reason.len() > 1024) => {
            Err(invalid("The reason is too long."))
        }
        _ => Ok(()),
    }
}

/// The rules of `RunTask`.
pub(super) fn run(deployed: &Deployed, body: &Value) -> Result<(), Refusal> {
    let name = format!("{FAMILY}:{REVISION}");
    let definition = body["taskDefinition"].as_str().unwrap_or_default();
    let arn = format!("arn:aws:ecs:{REGION}:{ACCOUNT}:task-definition/{name}");
    if ![FAMILY, &name, &arn].contains(&definition) {
        return Err(("ClientException", "Unable to describe task definition.".into()));
    }
    if body["count"].as_u64().unwrap_or(1) != 1 {
        return Err(invalid("a workspace has one sandbox"));
    }
    let text = |name: &str, most: usize, fits: fn(u8) -> bool| match body[name].as_str() {
        Some(text) if (1..=most).contains(&text.len()) && text.bytes().all(fits) => Ok(()),
        _ => Err(invalid(format!("{name} is missing, or too long, or has characters that it must not have"))),
    };
    text("clientToken", 64, |byte| (33..=126).contains(&byte))?;
    text("startedBy", 128, |byte| byte.is_ascii_alphanumeric() || b"-/_".contains(&byte))?;
    let network = &body["networkConfiguration"]["awsvpcConfiguration"];
    let listed = |name: &str, most: usize, prefix: &str| {
        let list = network[name].as_array().map(Vec::as_slice).unwrap_or_default();
        match (1..=most).contains(&list.len())
            && list.iter().all(|id| id.as_str().is_some_and(|id| id.starts_with(prefix)))
        {
            true => Ok(()),
            false => {
                Err(invalid(format!("{name} of awsvpcConfiguration must be 1 to {most} ids that begin with {prefix}")))
            }
        }
    };
    listed("subnets", 16, "subnet-")?;
    listed("securityGroups", 5, "sg-")?;
    // Machines of our own give no task a public address.
    if network["assignPublicIp"].as_str() != Some("DISABLED") {
        return Err(invalid("assignPublicIp must be DISABLED"));
    }
    match &deployed.capacity_provider {
        Some(provider) => {
            let strategy = body["capacityProviderStrategy"].as_array().map(Vec::as_slice).unwrap_or_default();
            let is_ours = |item: &Value| item["capacityProvider"] == provider.as_str();
            if strategy.len() != 1 || !strategy.iter().all(is_ours) {
                return Err(invalid("The specified capacity provider was not found."));
            }
            if body.get("launchType").is_some() {
                return Err(invalid("Specifying both a launch type and capacity provider strategy is not supported."));
            }
        }
        None if body["launchType"] != "FARGATE" => {
            return Err(invalid("No Container Instances were found in your cluster."));
        }
        None => {}
    }
    let overrides = body["overrides"]["containerOverrides"].as_array().map(Vec::as_slice).unwrap_or_default();
    if overrides.len() != 1 || overrides.iter().any(|each| each["name"] != "sandbox") {
        return Err(invalid("Override for container named other than sandbox: there is none in the task definition."));
    }
    let tags = body["tags"].as_array().map(Vec::as_slice).unwrap_or_default();
    match tags.len() <= 50 && tags.iter().all(|tag| tag["key"].as_str().is_some_and(|key| !key.starts_with("aws:"))) {
        true => Ok(()),
        false => Err(invalid("Tags are at most 50, and none begins with aws:.")),
    }
}
