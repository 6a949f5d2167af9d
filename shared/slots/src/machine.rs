//! The semaphore as a machine of the actor runtime.

use crate::{
    fair_queue::Waiting,
    request::{Ask, SlotsCommand, SlotsEvent},
    state::SlotsState,
};
use actor::{ActorId, EffectContext, EffectRunner, Input, Machine, OutboxMessage, Step, View};
use async_trait::async_trait;
use domain::{Stamp, Timestamp};
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

impl Machine for SlotsMachine {
    const KIND: &'static str = "slots";
    // A snapshot without the askers of its slots, the newest limits and the clock of waiting counts as well: a log that was never truncated takes too long to be
    // folded anew for them alone.
    const VERSION: u32 = 2;
    const TRUNCATES: bool = true;
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
            Input::Command { command: SlotsCommand::Release { party }, .. } => released(step, &party),
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

    fn is_as_new(state: &SlotsState) -> bool {
        *state == SlotsState::default()
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
    } else if state.adds_slots(&ask) {
        step.push(SlotsEvent::Asked { ask, at });
        let granted = messages(step.state().granted_now());
        grant_all(step, granted);
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
    let granted = messages(state.granted_after(&holder));
    step.push(SlotsEvent::Given { holder });
    grant_all(step, granted);
}

/// Gives back all that the actors of this party asked for.
fn released(step: &mut Step<SlotsMachine>, party: &str) {
    let holders = step.state().holders(|of, _| of == party);
    // Those that wait leave first: none of them is granted a slot that another one gives back.
    for holder in holders.into_iter().rev() {
        given(step, holder);
    }
}

/// The message of each grant, with the holder.
fn messages(granted: Vec<&Waiting>) -> Vec<(OutboxMessage, String)> {
    granted.into_iter().map(|next| (grant(&next.ask), next.ask.holder.clone())).collect()
}

fn grant_all(step: &mut Step<SlotsMachine>, granted: Vec<(OutboxMessage, String)>) {
    for (message, holder) in granted {
        step.send(message);
        step.push(SlotsEvent::Granted { holder });
    }
}

fn grant(ask: &Ask) -> OutboxMessage {
    OutboxMessage::now(ask.to.clone(), ask.grant.clone(), GRANT_PRIORITY)
}

/// The message that no more requests of the asker's party may wait, if so many wait already.
fn refusal(state: &SlotsState, ask: &Ask) -> Option<OutboxMessage> {
    let bound = ask.bound.as_ref()?;
    let is_full = state.waiting_of(&ask.party) >= bound.waiting as usize;
    is_full.then(|| OutboxMessage::now(ask.to.clone(), bound.refusal.clone(), GRANT_PRIORITY))
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
