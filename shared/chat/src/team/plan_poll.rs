//! A team reads its plan: claims of agents that work no more are freed, and the personas of a new team are read.

use crate::{
    machine::{PlanPoll, PlanPollResult, Report},
    perform::{ChatEffects, access_of, agent_of},
    scenario,
};
use domain::Error;
use workspace::Access;

impl ChatEffects {
    pub(crate) async fn poll_plan(&self, poll: PlanPoll) -> Report {
        let turn = poll.turn;
        Report::PlanPolled { turn, result: Box::new(self.read_plan(poll).await) }
    }

    async fn read_plan(
        &self,
        PlanPoll { config, turn: _, plan, free, personas }: PlanPoll,
    ) -> Result<PlanPollResult, Error> {
        let by = agent_of(&config);
        // A claim is of the platform: it is freed also where the persona of the chat may not write.
        let files = self.workspaces.open(config.workspace, Access::platform("frees claims in a plan")).await?;
        let plan = tools::free_steps(&files, plan, &free, &by.clone().into()).await?;
        let files = self.workspaces.open(config.workspace, access_of(&config)).await?;
        let mut read = Vec::with_capacity(personas.len());
        for role in personas {
            read.push(scenario::read(&files, role).await?);
        }
        Ok(PlanPollResult { plan, personas: read })
    }
}
