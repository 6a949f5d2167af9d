//! Why a task is not there, in words that a person understands.

use aws_sdk_ecs::types::{Task, TaskStopCode};

/// Why a task has ended, and whether it did so by itself and in order.
pub(super) fn over(task: &Task) -> (String, bool) {
    let container = task.containers().first();
    let code = container.and_then(|container| container.exit_code());
    let said = [task.stopped_reason(), container.and_then(|container| container.reason())];
    let said: Vec<&str> = said.into_iter().flatten().map(str::trim).filter(|said| !said.is_empty()).collect();
    let quoted = if said.is_empty() { "ECS does not say why".to_owned() } else { said.join("; ") };
    let mentions = |words: &[&str]| said.iter().any(|said| words.iter().any(|word| said.contains(word)));
    let what = if mentions(&["CannotPull", "ImageNotFound", "manifest for"]) {
        "its image cannot be pulled"
    } else if mentions(&["OutOfMemory", "OOM"]) {
        "it used more memory than it may have"
    } else if task.stop_code() == Some(&TaskStopCode::EssentialContainerExited) {
        return match code {
            Some(0) => ("it was unused for a while, so it ended itself".into(), true),
            // 128 and a signal's number.
            Some(137) => (format!("it was killed (SIGKILL): {quoted}"), false),
            Some(143) => (format!("it was told to end: {quoted}"), false),
            Some(code) => (format!("it ended with exit code {code}: {quoted}"), false),
            None => (format!("it ended: {quoted}"), false),
        };
    } else if mentions(&["RESOURCE:", "capacity", "Capacity", "No Container Instances", "Timeout waiting for EC2"]) {
        "no machine could be had for it"
    } else if mentions(&["Host EC2", "instance"])
        || matches!(task.stop_code(), Some(TaskStopCode::TerminationNotice | TaskStopCode::SpotInterruption))
    {
        "its machine was taken away"
    } else {
        match task.stop_code() {
            Some(TaskStopCode::TaskFailedToStart) => "its container could not be started",
            Some(TaskStopCode::UserInitiated) => "it was stopped",
            _ => "it ended",
        }
    };
    (format!("{what}: {quoted}"), false)
}

/// The reason of `RunTask` for starting none, in words.
pub(super) fn not_placed(reason: &str) -> String {
    match reason.split(':').next().unwrap_or_default() {
        "RESOURCE" => format!("no machine has room for it ({reason})"),
        "AGENT" => format!("the agent of its machine does not answer ({reason})"),
        "" => "ECS started none, and does not say why".into(),
        _ => format!("ECS started none ({reason})"),
    }
}

/// The thing that a task that does not run yet waits for.
pub(super) fn coming(status: &str, has_machine: bool) -> &'static str {
    match status {
        "PROVISIONING" if !has_machine => {
            "it waits for a machine; one that has to be started takes two to three minutes"
        }
        "PROVISIONING" | "ACTIVATING" => "it gets its address",
        _ => "its machine pulls the image and starts the container",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_ecs::types::Container;

    #[test]
    fn a_person_is_told_why() {
        let ended = TaskStopCode::EssentialContainerExited;
        let exited = "Essential container in task exited";
        for (code, stopped, exit, reason, expected, in_order) in [
            (ended.clone(), exited, Some(0), None, "it was unused for a while, so it ended itself", true),
            (
                ended.clone(),
                exited,
                Some(1),
                None,
                "it ended with exit code 1: Essential container in task exited",
                false,
            ),
            (
                ended.clone(),
                exited,
                Some(137),
                None,
                "it was killed (SIGKILL): Essential container in task exited",
                false,
            ),
            (
                ended,
                exited,
                Some(137),
                Some("OutOfMemoryError: Container killed due to memory usage"),
                "it used more memory than it may have: Essential container in task exited; OutOfMemoryError: Container killed due to memory usage",
                false,
            ),
            (
                TaskStopCode::TaskFailedToStart,
                "CannotPullContainerError: pull image manifest has been retried 5 time(s)",
                None,
                None,
                "its image cannot be pulled: CannotPullContainerError: pull image manifest has been retried 5 time(s)",
                false,
            ),
            (
                TaskStopCode::TaskFailedToStart,
                "Timeout waiting for EC2 instances to become available",
                None,
                None,
                "no machine could be had for it: Timeout waiting for EC2 instances to become available",
                false,
            ),
            (TaskStopCode::UserInitiated, "released", None, None, "it was stopped: released", false),
            (
                TaskStopCode::TerminationNotice,
                "Host EC2 (instance i-1) terminated.",
                None,
                None,
                "its machine was taken away: Host EC2 (instance i-1) terminated.",
                false,
            ),
        ] {
            let container = Container::builder().set_exit_code(exit).set_reason(reason.map(str::to_owned)).build();
            let task = Task::builder().stop_code(code).stopped_reason(stopped).containers(container).build();
            assert_eq!(over(&task), (expected.to_owned(), in_order));
        }
        assert_eq!(over(&Task::builder().build()).0, "it ended: ECS does not say why");
        assert_eq!(not_placed("RESOURCE:ENI"), "no machine has room for it (RESOURCE:ENI)");
    }
}
