//! The invariants of the tasks of a flow.

use super::{Held, Versioned, broken};
use actor::Entry;
use domain::{CallId, Status, TaskConfig, TaskEvent, TaskId, task::ToolUse};
use ports::{DeadLetter, Item, QueueMessage};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The logs of all tasks of a flow.
pub type Family = BTreeMap<TaskId, Vec<Entry<TaskEvent>>>;

fn events(log: &[Entry<TaskEvent>]) -> impl Iterator<Item = &TaskEvent> {
    log.iter().flat_map(|entry| &entry.events)
}

fn config(log: &[Entry<TaskEvent>]) -> Option<&TaskConfig> {
    events(log).find_map(|event| match event {
        TaskEvent::Created { config } => Some(&**config),
        _ => None,
    })
}

/// Every task has one terminal event, and nothing of it executes after that.
pub fn tasks_end_once(family: &Family) -> Held {
    const NAME: &str = "tasks_end_once";
    for (task, log) in family {
        let mut ends = 0;
        for event in events(log) {
            match event {
                TaskEvent::Finished { .. } => ends += 1,
                TaskEvent::NodeStarted { node, .. } if ends > 0 => {
                    return broken(NAME, format!("{task} executes {node} after its end"));
                }
                _ => {}
            }
        }
        if ends != 1 {
            return broken(NAME, format!("{task} ended {ends} times"));
        }
    }
    Ok(())
}

/// Each node that was started ends once, also where its task was stopped.
pub fn nodes_end_once(family: &Family) -> Held {
    for (task, log) in family {
        let mut nodes = BTreeMap::new();
        for event in events(log) {
            match event {
                TaskEvent::NodeStarted { node, .. } => _ = nodes.entry(node).or_insert(0),
                TaskEvent::NodeFinished { node, .. } => *nodes.entry(node).or_insert(0) += 1,
                _ => {}
            }
        }
        if let Some((node, ends)) = nodes.iter().find(|(_, ends)| **ends != 1) {
            return broken("nodes_end_once", format!("{node} of {task} ended {ends} times"));
        }
    }
    Ok(())
}

/// Every merge begins exactly once, and executes.
pub fn merges_begin_once(family: &Family) -> Held {
    const NAME: &str = "merges_begin_once";
    for (task, log) in family {
        let mut begun = BTreeSet::new();
        for event in events(log) {
            if let TaskEvent::Merged { node, .. } = event
                && !begun.insert(node)
            {
                return broken(NAME, format!("{node} of {task} began twice"));
            }
        }
        let started: BTreeSet<_> = events(log)
            .filter_map(|event| if let TaskEvent::NodeStarted { node, .. } = event { Some(node) } else { None })
            .collect();
        if let Some(merge) = begun.difference(&started).next() {
            return broken(NAME, format!("{merge} of {task} began and did not execute"));
        }
    }
    Ok(())
}

/// No child without its parent's `Forked`, under the name that follows from it.
pub fn children_were_forked(family: &Family) -> Held {
    const NAME: &str = "children_were_forked";
    for (task, log) in family {
        let Some(config) = config(log) else { return broken(NAME, format!("{task} was never made")) };
        let Some(origin) = &config.origin else { continue };
        let parent = family.get(&origin.parent).map(Vec::as_slice).unwrap_or_default();
        let forked = events(parent).any(|event| {
            matches!(event, TaskEvent::Forked { node, total, .. } if *node == origin.node && origin.index < *total)
        });
        if !forked || *task != origin.parent.child(&origin.name()) {
            return broken(NAME, format!("{task} is no child of {}", origin.parent));
        }
    }
    Ok(())
}

/// An arrival at a merge is in its owner's set once, and everything that went there came, unless its owner went on before.
pub fn arrivals_are_taken_in_once(family: &Family) -> Held {
    const NAME: &str = "arrivals_are_taken_in_once";
    for (task, log) in family {
        let mut came = BTreeSet::new();
        for event in events(log) {
            if let TaskEvent::ChildArrived { arrival } = event
                && !came.insert((&arrival.merge, &arrival.child, &arrival.from))
            {
                return broken(NAME, format!("{} came twice to {} of {task}", arrival.child, arrival.merge));
            }
        }
        for event in events(log) {
            let TaskEvent::WentUp { merge, owner } = event else { continue };
            let above = family.get(owner).map(Vec::as_slice).unwrap_or_default();
            let line = config(log).and_then(|config| config.origin.as_ref()).map(|origin| &origin.line);
            let name = line.and_then(|line| line.last()).map(ToString::to_string).unwrap_or_default();
            let taken = events(above).any(|event| {
                matches!(event, TaskEvent::ChildArrived { arrival } if arrival.merge == *merge && arrival.child.ends_with(&name))
            });
            let went_on = events(above).any(|event| match event {
                TaskEvent::Merged { node, taken, .. } => node == merge && !taken.is_empty(),
                TaskEvent::Finished { status, .. } => *status == Status::Failure,
                _ => false,
            });
            if !taken && !went_on {
                return broken(NAME, format!("{name} of {task} went up to {merge} and never came"));
            }
        }
    }
    Ok(())
}

/// The attempts of a node count up by one.
pub fn node_attempts_count_up(family: &Family) -> Held {
    for (task, log) in family {
        let mut attempts = BTreeMap::new();
        for event in events(log) {
            if let TaskEvent::NodeStarted { node, attempt, .. } = event {
                let last: &mut u32 = attempts.entry(node).or_default();
                if *attempt != *last + 1 {
                    return broken("node_attempts_count_up", format!("{node} of {task}: {attempt} after {last}"));
                }
                *last = *attempt;
            }
        }
    }
    Ok(())
}

/// Every tool that succeeded for a node took effect exactly once: one version carries its call, and its record is there, by
/// which the same call after a crash is known.
pub fn tools_took_effect_once(family: &Family, versions: &[Versioned], records: &[CallId]) -> Held {
    const NAME: &str = "tools_took_effect_once";
    for (task, log) in family {
        let mut retries = BTreeMap::new();
        for event in events(log) {
            match event {
                TaskEvent::NodeStarted { node, retry: Some(retry), .. } => drop(retries.insert(node, retry.number)),
                TaskEvent::ToolUsed { node, used } => {
                    let ToolUse { tool, status, .. } = &**used;
                    let retry = retries.get(node).copied().unwrap_or_default();
                    let call = CallId::from_key(&task.to_string(), &format!("{node}/{retry}"));
                    let count = versions.iter().filter(|(.., by)| *by == Some(call)).count();
                    if *status == Status::Success && !records.contains(&call) {
                        return broken(NAME, format!("{tool} of {node} of {task} left no record"));
                    }
                    if *status == Status::Success && count != 1 {
                        return broken(NAME, format!("{tool} of {node} of {task} took effect {count} times"));
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// When all has ended, no task holds a place in its flow, and none is kept to be begun once more.
pub fn places_are_given_back(items: &[Item]) -> Held {
    let left = items.iter().find(|item| item.key.pk.contains("/admitted/") && item.key.sk != "gate");
    match left {
        Some(item) => broken("places_are_given_back", format!("{} is still there", item.key.sk)),
        None => Ok(()),
    }
}

/// Nothing is left in the queue, and nothing was put aside.
pub fn the_queue_is_empty(messages: &[QueueMessage], dead: &[DeadLetter]) -> Held {
    match (messages.first(), dead.first()) {
        (None, None) => Ok(()),
        (Some(message), _) => broken("the_queue_is_empty", format!("{} waits for {}", message.body, message.group)),
        (None, Some(message)) => broken("the_queue_is_empty", format!("{:?} was put aside", message.message)),
    }
}

/// The root ended as it does when nothing goes wrong.
pub fn the_root_ends_as_undisturbed(ended: &Option<(Status, Value)>, undisturbed: &Option<(Status, Value)>) -> Held {
    if ended == undisturbed {
        return Ok(());
    }
    broken("the_root_ends_as_undisturbed", format!("{ended:?} instead of {undisturbed:?}"))
}
