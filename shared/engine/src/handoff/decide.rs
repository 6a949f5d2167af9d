//! The decision on a version that matches a flow. Pure.

use domain::{
    Code, Error, FileId, Principal, TaskId, WorkspaceId,
    task::{Handoff, HandoffLink},
};
use serde_json::{Map, Value, json};
use workspace::PendingHandoff;

/// The limits of handoffs in a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandoffLimits {
    /// How many tasks may follow each other, each started by a file that the one before it wrote.
    pub depth: usize,
    /// How many tasks files may start in a minute; more wait.
    pub per_minute: usize,
}

impl Default for HandoffLimits {
    fn default() -> Self {
        Self { depth: 16, per_minute: 60 }
    }
}

/// The id of the task that a version starts of a flow: the same whenever it is computed.
pub fn task_of(workspace: WorkspaceId, flow: &str, file: FileId, v: u64) -> TaskId {
    TaskId::root(TaskId::from_key(&format!("{workspace}/{file}/{v}"), flow).0)
}

/// The reason for which a version that matches starts nothing; none when it may start a task of the flow.
pub(super) fn refusal(
    pending: &PendingHandoff,
    flow: &str,
    chain: &[HandoffLink],
    limits: &HandoffLimits,
) -> Option<Error> {
    let path = &pending.change.path;
    if !pending.may_run {
        let message = format!("{path} matches, but the credential that wrote it may not run flows");
        return Some(
            Error::new(Code::Forbidden, message)
                .hint("write it with a credential that has the scope run, or run the flow yourself"),
        );
    }
    if chain.len() < limits.depth {
        return None;
    }
    let names = || chain.iter().map(|link| link.flow.as_str()).chain([flow]);
    let cycle: Vec<&str> = match chain.iter().rposition(|link| link.flow == flow) {
        Some(begin) => names().skip(begin).collect(),
        None => names().collect(),
    };
    let is_cycle = cycle.first() == cycle.last() && cycle.len() > 1;
    let way = cycle.join(" -> ");
    let message = match is_cycle {
        true => format!("flows start each other in a loop: {way}; {} tasks followed each other", chain.len()),
        false => format!("{} tasks followed each other, each started by a file of the one before: {way}", chain.len()),
    };
    let key = if is_cycle { "cycle" } else { "chain" };
    Some(
        Error::new(Code::LimitReached, message)
            .hint("have one of the flows write a status that starts none of the others, then write the file again")
            .detail(key, json!(cycle))
            .detail("depth", chain.len()),
    )
}

/// The record of a start, for the task.
pub(super) fn handoff(pending: &PendingHandoff, chain: Vec<HandoffLink>) -> Handoff {
    let change = &pending.change;
    Handoff { file_id: change.file_id, path: change.path.clone(), v: change.v, chain }
}

/// The input of a task that a version starts.
pub(super) fn input(pending: &PendingHandoff, front_matter: &Map<String, Value>) -> Value {
    let change = &pending.change;
    let folder = change.path.parent().map(|folder| folder.to_string()).unwrap_or_default();
    let event = if change.v == 1 { "created" } else { "updated" };
    json!({
        "file_id": change.file_id, "path": change.path, "v": change.v, "event": event, "folder": folder,
        "author": change.author, "status": front_matter.get("status"), "front_matter": front_matter,
    })
}

/// The person that a task works for that a version starts.
pub(super) fn person(by: &Principal) -> Principal {
    Principal::User { id: by.user() }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use domain::{FilePath, Timestamp};
    use uuid::Uuid;
    use workspace::{Change, FileKind, Op};

    fn pending(may_run: bool) -> PendingHandoff {
        let change = Change {
            op: Op::Written,
            path: FilePath::parse("/projects/app/plan.md").unwrap(),
            from: None,
            file_id: FileId(Uuid::from_u128(1)),
            kind: FileKind::File,
            v: 3,
            sha256: None,
            mark: None,
            rewind: None,
            size: 1,
            author: "user:1".into(),
            at: Timestamp::default(),
            conversion: None,
        };
        PendingHandoff { change, by: Principal::local(), may_run }
    }

    fn chain(flows: &[&str]) -> Vec<HandoffLink> {
        let link = |(place, flow): (usize, &&str)| HandoffLink {
            flow: (*flow).to_owned(),
            task: TaskId(Uuid::from_u128(place as u128)),
        };
        flows.iter().enumerate().map(link).collect()
    }

    #[test]
    fn a_chain_ends_at_its_depth_and_a_loop_is_named() {
        let limits = HandoffLimits { depth: 4, ..HandoffLimits::default() };
        let decide = |flow: &str, flows: &[&str]| refusal(&pending(true), flow, &chain(flows), &limits);
        assert_eq!(decide("a", &["a", "b", "a"]), None);
        let error = decide("a", &["x", "a", "b", "c"]).unwrap();
        assert_eq!(error.code, Code::LimitReached);
        assert!(error.message.contains("a -> b -> c -> a"), "{error}");
        assert_eq!(error.details["cycle"], json!(["a", "b", "c", "a"]));
        let error = decide("e", &["a", "b", "c", "d"]).unwrap();
        assert!(error.message.contains("a -> b -> c -> d -> e") && !error.message.contains("loop"), "{error}");
        let own = decide("a", &["a", "a", "a", "a"]).unwrap();
        assert_eq!(own.details["cycle"], json!(["a", "a"]));
    }

    #[test]
    fn an_author_who_may_not_run_flows_starts_nothing() {
        let error = refusal(&pending(false), "a", &[], &HandoffLimits::default()).unwrap();
        assert_eq!(error.code, Code::Forbidden);
    }

    #[test]
    fn a_version_has_one_task_per_flow() {
        let (workspace, file) = (WorkspaceId(Uuid::from_u128(7)), FileId(Uuid::from_u128(1)));
        let one = task_of(workspace, "a", file, 3);
        assert_eq!(one, task_of(workspace, "a", file, 3));
        for other in [task_of(workspace, "b", file, 3), task_of(workspace, "a", file, 4)] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn the_input_has_the_file_and_its_version() {
        let front_matter = serde_json::from_value(json!({ "status": "ready", "n": 1 })).unwrap();
        assert_eq!(
            input(&pending(true), &front_matter),
            json!({
                "file_id": FileId(Uuid::from_u128(1)), "path": "/projects/app/plan.md", "v": 3, "event": "updated",
                "folder": "/projects/app", "author": "user:1", "status": "ready",
                "front_matter": { "status": "ready", "n": 1 },
            })
        );
    }
}
