//! The semaphore as a machine of the actor runtime.

use crate::state::SlotsState;
use actor::{ActorId, Decision, EffectContext, Input, Letter, Machine, Perform, View};
use async_trait::async_trait;
use domain::{Stamp, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{convert::Infallible, fmt};

/// What a grant is sent with: its holder goes before what its tenant has not begun yet, since a slot waits for it.
const GRANT_PRIORITY: i8 = 100;

/// The semaphores.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlotsMachine;

/// The semaphore of this name; one a tenant, in whose workspace the names of its slots mean something.
pub fn semaphore(name: impl fmt::Display) -> ActorId {
    ActorId::new(SlotsMachine::KIND, format_args!("{name}/semaphore"))
}

/// What a semaphore can be told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum SlotsCommand {
    /// Somebody wants slots. The same again changes nothing; one that was granted is told again.
    Ask {
        /// What is wanted.
        ask: Box<Ask>,
    },
    /// Somebody wants its slots no more, whether it has them or waits for them. Again is harmless.
    Give {
        /// Who.
        holder: String,
    },
}

/// A request: one slot of each of some names, all or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// What the slots are for: unlike any other, such as a task with its node and attempt.
    pub holder: String,
    /// The names, and how many slots there are of each (at least 1).
    pub wants: Vec<(String, u32)>,
    /// Whose it is: parties that want the same slots take turns.
    pub party: String,
    /// Of the requests of a party, one with more goes first; -100 to 100.
    pub priority: i8,
    /// Whom to tell when the slots are its own.
    pub to: ActorId,
    /// The command that tells it.
    pub grant: Value,
}

impl Ask {
    /// What those have in common who want the same.
    pub(crate) fn line(&self) -> String {
        self.wants.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join("\n")
    }
}

/// What happens to a semaphore.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SlotsEvent {
    /// Somebody waits for slots.
    Asked {
        /// For which.
        ask: Box<Ask>,
        /// Since when.
        at: Timestamp,
    },
    /// Somebody has them.
    Granted {
        /// Who.
        holder: String,
    },
    /// Somebody gave them back, or waits no more.
    Given {
        /// Who.
        holder: String,
    },
}

impl Machine for SlotsMachine {
    const KIND: &'static str = "slots";
    type State = SlotsState;
    type Command = SlotsCommand;
    type Event = SlotsEvent;
    type Effect = Infallible;
    type Report = Infallible;

    fn apply(state: &mut SlotsState, _number: u64, event: &SlotsEvent) {
        state.apply(event);
    }

    fn handle(&self, state: &SlotsState, input: Input<Self>, stamp: &Stamp) -> Decision<Self> {
        let mut decision = Decision::default();
        match input {
            Input::Command { command: SlotsCommand::Ask { ask }, .. } => {
                if state.holds(&ask.holder) {
                    decision.send.push(grant(&ask));
                } else if !state.waits(&ask.holder) {
                    let granted = state.can_grant(&ask).then(|| (grant(&ask), ask.holder.clone()));
                    decision.events.push(SlotsEvent::Asked { ask, at: stamp.at });
                    if let Some((letter, holder)) = granted {
                        decision.send.push(letter);
                        decision.events.push(SlotsEvent::Granted { holder });
                    }
                }
            }
            Input::Command { command: SlotsCommand::Give { holder }, .. } => {
                if state.holds(&holder) || state.waits(&holder) {
                    let granted = state.granted_after(&holder);
                    decision.events.push(SlotsEvent::Given { holder });
                    for waiting in granted {
                        decision.send.push(grant(&waiting.ask));
                        decision.events.push(SlotsEvent::Granted { holder: waiting.ask.holder.clone() });
                    }
                }
            }
            Input::Report(never) => match never {},
            Input::Resume | Input::Stop(_) | Input::Halt(_) | Input::Park { .. } | Input::Unpark { .. } => {}
        }
        decision
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

fn grant(ask: &Ask) -> Letter {
    Letter { to: ask.to.clone(), command: ask.grant.clone(), deliver_at: None, priority: GRANT_PRIORITY }
}

/// Runs the effects of semaphores, of which there are none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEffects;

#[async_trait]
impl Perform<SlotsMachine> for NoEffects {
    async fn perform(&self, effect: Infallible, _: EffectContext<SlotsMachine>) -> Infallible {
        match effect {}
    }
}
