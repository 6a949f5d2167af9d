//! The semaphore as a machine of the actor runtime.

use crate::state::SlotsState;
use actor::{ActorId, EffectContext, EffectRunner, Input, Machine, OutboxMessage, Step, View};
use async_trait::async_trait;
use domain::{Stamp, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{convert::Infallible, fmt};

/// The priority of a grant: its holder goes before work of its tenant that has not begun, since a slot waits for it.
const GRANT_PRIORITY: i8 = 100;

/// The semaphores.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlotsMachine;

/// The semaphore of this name: of one tenant, whose workspace gives the slots their names, or of a machine that several tenants share.
pub fn semaphore(name: impl fmt::Display) -> ActorId {
    ActorId::new(SlotsMachine::KIND, format_args!("{name}/semaphore"))
}

/// The commands of a semaphore.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum SlotsCommand {
    /// Somebody wants slots. The same again changes nothing, but for a priority that is another one: the request keeps since when it
    /// waits. One that was granted is told again.
    Ask {
        /// The request.
        ask: Box<Ask>,
    },
    /// Somebody wants its slots no more, whether it has them or waits for them. Again is harmless.
    Give {
        /// The holder.
        holder: String,
    },
}

/// A request: one slot of each of some names, all or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The purpose of the slots, unique per request: for example a task with its node and attempt.
    pub holder: String,
    /// The names, and how many slots there are of each (at least 1).
    pub wants: Vec<(String, u32)>,
    /// The party of the request: parties that want the same slots take turns.
    pub party: String,
    /// How many slots of a name its party holds at most for each that is free, so that a party which takes all it can leaves some
    /// to the next one (the dynamic threshold of Choudhury and Hahne); all of them when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<u32>,
    /// Of the requests of a party, one with more goes first; -100 to 100.
    pub priority: i8,
    /// The actor to tell when the slots are granted.
    pub to: ActorId,
    /// The command that tells it.
    pub grant: Value,
    /// How many requests of its party may wait before this one is refused; as many as come when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
}

/// A limit on waiting requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// How many requests of a party may wait.
    pub waiting: u32,
    /// The command that refuses one more.
    pub refusal: Value,
}

impl Ask {
    /// The key that requests for the same slots share.
    pub(crate) fn line(&self) -> String {
        self.wants.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join("\n")
    }
}

/// The events of a semaphore.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SlotsEvent {
    /// A request waits for slots, or has got another priority.
    Asked {
        /// The request.
        ask: Box<Ask>,
        /// When it came.
        at: Timestamp,
    },
    /// A holder has its slots.
    Granted {
        /// The holder.
        holder: String,
    },
    /// A holder gave its slots back, or waits no more.
    Given {
        /// The holder.
        holder: String,
    },
}

impl Machine for SlotsMachine {
    const KIND: &'static str = "slots";
    const VERSION: u32 = 2;
    type State = SlotsState;
    type Command = SlotsCommand;
    type Event = SlotsEvent;
    type Effect = Infallible;
    type Report = Infallible;

    fn apply(state: &mut SlotsState, _number: u64, event: &SlotsEvent) {
        state.apply(event);
    }

    fn handle(&self, step: &mut Step<Self>, input: Input<Self>, stamp: &Stamp) {
        match input {
            Input::Command { command: SlotsCommand::Ask { ask }, .. } => asked(step, ask, stamp.at),
            Input::Command { command: SlotsCommand::Give { holder }, .. } => given(step, holder),
            Input::Report(never) => match never {},
            Input::Resume
            | Input::Stop(_)
            | Input::Halt(_)
            | Input::Hold(_)
            | Input::Park { .. }
            | Input::Unpark { .. } => {}
        }
    }

    fn in_flight(_state: &SlotsState) -> bool {
        false
    }

    fn is_transient(_event: &SlotsEvent) -> bool {
        false
    }

    fn view(_state: &SlotsState) -> Option<View> {
        None
    }
}

fn asked(step: &mut Step<SlotsMachine>, ask: Box<Ask>, at: Timestamp) {
    let state = step.state();
    let can_go = state.can_grant(&ask);
    if state.holds(&ask.holder) {
        step.send(grant(&ask));
    } else if let Some(since) = state.waits_since(&ask.holder) {
        if state.has_other_priority(&ask) {
            step.push(SlotsEvent::Asked { ask, at: since });
        }
    } else if let Some(refusal) = refusal(state, &ask).filter(|_| !can_go) {
        step.send(refusal);
    } else {
        let granted = can_go.then(|| (grant(&ask), ask.holder.clone()));
        step.push(SlotsEvent::Asked { ask, at });
        if let Some((message, holder)) = granted {
            step.send(message);
            step.push(SlotsEvent::Granted { holder });
        }
    }
}

fn given(step: &mut Step<SlotsMachine>, holder: String) {
    let state = step.state();
    if !state.holds(&holder) && !state.waits(&holder) {
        return;
    }
    let granted = state.granted_after(&holder).into_iter();
    let granted: Vec<(OutboxMessage, String)> =
        granted.map(|next| (grant(&next.ask), next.ask.holder.clone())).collect();
    step.push(SlotsEvent::Given { holder });
    for (message, holder) in granted {
        step.send(message);
        step.push(SlotsEvent::Granted { holder });
    }
}

fn grant(ask: &Ask) -> OutboxMessage {
    OutboxMessage { to: ask.to.clone(), command: ask.grant.clone(), deliver_at: None, priority: GRANT_PRIORITY }
}

/// The message that no more requests of the asker's party may wait, if so many wait already.
fn refusal(state: &SlotsState, ask: &Ask) -> Option<OutboxMessage> {
    let bound = ask.bound.as_ref()?;
    let is_full = state.waiting_of(&ask.party) >= bound.waiting as usize;
    let command = bound.refusal.clone();
    is_full.then(|| OutboxMessage { to: ask.to.clone(), command, deliver_at: None, priority: GRANT_PRIORITY })
}

/// Runs the effects of semaphores, of which there are none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEffects;

#[async_trait]
impl EffectRunner<SlotsMachine> for NoEffects {
    async fn perform(&self, effect: Infallible, _: EffectContext<SlotsMachine>) -> Infallible {
        match effect {}
    }
}
