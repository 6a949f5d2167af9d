//! The look of a team at its plan: claims of agents that work no more are freed, and the personas of a new team are read.

use crate::{
    machine::{PlanPoll, PlanPollResult, Report},
    perform::{ChatEffects, access_of, agent_of},
    scenario,
};
use domain::Error;
use workspace::Access;

impl ChatEffects {
    pub(crate) async fn look(&self, look: PlanPoll) -> Report {
        let turn = look.turn;
        Report::PlanLooked { turn, looked: Box::new(self.looked(look).await) }
    }

    async fn looked(
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
