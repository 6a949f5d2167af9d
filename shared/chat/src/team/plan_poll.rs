//! A team reads its plan: claims of agents that work no more are freed, and the personas of a new team are read.

use crate::{
    machine::{PlanPoll, PlanPollResult, Report},
    perform::{ChatEffects, access_of, agent_of},
    retries::with_retries,
    scenario,
};
use domain::Error;
use workspace::Access;

impl ChatEffects {
    /// Looks at a plan. A store that stumbles for a moment, or a plan that others change all the time, stops no team at work.
    pub(crate) async fn poll_plan(&self, poll: PlanPoll) -> Report {
        let turn = poll.turn;
        let result = with_retries(turn, "the plan of a team is read again", || self.read_plan(&poll)).await;
        Report::PlanPolled { turn, result: Box::new(result) }
    }

    async fn read_plan(&self, poll: &PlanPoll) -> Result<PlanPollResult, Error> {
        let PlanPoll { config, turn: _, plan, free, personas } = poll;
        let by = agent_of(config);
        // A claim is of the platform: it is freed also where the persona of the chat may not write.
        let files = self.workspaces.open(config.workspace, Access::platform("frees claims in a plan")).await?;
        let plan = tools::free_steps(&files, *plan, free, &by.into()).await?;
        let files = self.workspaces.open(config.workspace, access_of(config)).await?;
        let mut read = Vec::with_capacity(personas.len());
        for role in personas {
            read.push(scenario::read(&files, role.clone()).await?);
        }
        Ok(PlanPollResult { plan, personas: read })
    }
}
