//! Scenarios (spec 000 §4): a new chat is set up by one word. A scenario chooses among what chats have anyway: the persona that begins, the mode,
//! the persona or the team that carries a plan out. It adds no rule of its own to a turn.

use crate::{
    NewChat,
    prompt::{self, Persona, SystemText},
    request_checks::check_limits,
};
use domain::{Code, Error, FilePath, Mode, NextPersona, Scenario, ScenarioSetup};
use workspace::Workspace;

/// The persona that plans where nobody brought a plan.
const PLANNER: &str = "planner";
/// The persona that carries an approved plan out.
const EXECUTOR: &str = "builder";
/// The persona that plans a campaign.
const STRATEGIST: &str = "content-strategist";
/// The agents of a team that names none.
const PARALLEL: [&str; 3] = ["builder", "researcher", "reviewer"];
const CAMPAIGN: [&str; 3] = [STRATEGIST, "researcher", "seo-specialist"];
/// The most agents of a team.
const MAX_AGENTS: usize = 8;
/// The longest name of the folder of a campaign, in characters.
const MAX_SLUG: usize = 48;
/// How many campaigns have the same topic, at most.
const MAX_SAME: u32 = 100;

/// Sets a new chat up for a scenario. `mode` and `agents` are those that the request names.
///
/// # Errors
/// `INVALID_ARGUMENT` about `mode`, `agents`, `role`, `plan_id` or `agent` where the scenario leaves no choice, and about `limits` that leave nothing to
/// do.
pub fn set_up(
    new: &mut NewChat,
    scenario: Scenario,
    mode: Option<Mode>,
    agents: Option<Vec<String>>,
) -> Result<(), Error> {
    check_limits(new.limits)?;
    let setup = ScenarioSetup { name: scenario, ..ScenarioSetup::default() };
    if scenario != Scenario::ChatMode && new.thread.is_some() {
        return Err(Error::invalid("agent", "a coding agent performs the turns of chat_mode alone")
            .hint("leave scenario out, or agent and cwd"));
    }
    if agents.is_some() && !matches!(scenario, Scenario::ParallelAgents | Scenario::CoWork) {
        return Err(Error::invalid("agents", "only parallel_agents and co_work have a team"));
    }
    match scenario {
        Scenario::ChatMode => {
            new.mode = mode.unwrap_or_default();
            return Ok(());
        }
        Scenario::Autonomous => {
            new.mode = mode.unwrap_or_default();
            new.scenario = Some(setup);
            return Ok(());
        }
        Scenario::PlanThenExecute | Scenario::ParallelAgents | Scenario::CoWork => {}
    }
    if mode.is_some() {
        return Err(Error::invalid("mode", "this scenario has its own modes").hint("leave mode or scenario out"));
    }
    let agents = |usual: &[&str]| team(agents, usual);
    // A plan without an approval is carried out like any message: commands need a person's yes.
    let carried_out = if new.plan_v.is_some() { Mode::Build } else { Mode::Chat };
    new.mode = if new.plan.is_some() { carried_out } else { Mode::Plan };
    new.scenario = Some(match scenario {
        Scenario::ChatMode | Scenario::Autonomous => setup,
        Scenario::PlanThenExecute => {
            let executor = new.role.take().unwrap_or_else(|| EXECUTOR.to_owned());
            new.role = Some(if new.plan.is_some() { executor.clone() } else { PLANNER.to_owned() });
            ScenarioSetup { executor: Some(executor), ..setup }
        }
        Scenario::ParallelAgents => {
            if new.role.is_some() {
                return Err(Error::invalid("role", "agents names the personas of this scenario"));
            }
            let agents = agents(&PARALLEL)?;
            new.role = Some(PLANNER.to_owned());
            new.briefing = format!(
                "Agents with these personas will carry your plan out side by side: {}. Each takes a free step at a time. Cut the work into \
                 steps that share no file, and say in each which persona it suits.",
                agents.join(", ")
            );
            ScenarioSetup { agents, ..setup }
        }
        Scenario::CoWork => {
            if new.plan.is_some() {
                return Err(Error::invalid("plan_id", "co_work plans the campaign itself")
                    .hint("carry a plan out with the scenario parallel_agents"));
            }
            new.mode = Mode::Chat;
            new.role.get_or_insert_with(|| STRATEGIST.to_owned());
            let plan_path = Some(FilePath::parse(&format!("/content/{}/plan.md", slug(&new.goal)))?);
            ScenarioSetup { agents: agents(&CAMPAIGN)?, plan_path, ..setup }
        }
    });
    Ok(())
}

fn team(named: Option<Vec<String>>, usual: &[&str]) -> Result<Vec<String>, Error> {
    let agents = named.unwrap_or_else(|| usual.iter().map(|&name| name.to_owned()).collect());
    match agents.len() {
        1..=MAX_AGENTS => Ok(agents),
        _ => Err(Error::invalid("agents", format!("a team has 1 to {MAX_AGENTS} agents"))),
    }
}

/// The name of a campaign's folder: the letters and digits of the topic.
fn slug(topic: &str) -> String {
    let first = topic.trim().lines().next().unwrap_or_default();
    match tools::organizer::words_of(first, MAX_SLUG).as_str() {
        "" => "campaign".to_owned(),
        slug => slug.to_owned(),
    }
}

/// The scenario of a new chat, with a place for its plan that nobody has; and the words about it for the persona that begins. `check` refuses a persona of
/// its agents.
///
/// # Errors
/// Those of `check`; `NOT_FOUND` for an agent without a persona, `UNPROCESSABLE` for one whose tools are unknown; `CONFLICT` when the topic has too many campaigns.
pub(crate) async fn placed(
    files: &Workspace,
    setup: Option<ScenarioSetup>,
    context: &mut String,
    check: &(dyn Fn(&Persona) -> Result<(), Error> + Sync),
) -> Result<Option<Box<ScenarioSetup>>, Error> {
    let Some(mut setup) = setup else { return Ok(None) };
    for role in setup.agents.iter().chain(&setup.executor) {
        check(&prompt::persona(files, role).await?)?;
    }
    if let Some(wanted) = setup.plan_path.take() {
        let path = free_place(files, &wanted).await?;
        context.push_str(&format!(
            "This is a campaign of several agents. Write its plan with plan_write, without a path: it is {path}. Each step is one piece of work \
             for one agent, with the path of its file in the folder of the plan. Then end your turn: agents with these personas carry the steps \
             out, each a free one at a time: {}. People watch the plan.",
            setup.agents.join(", ")
        ));
        setup.plan_path = Some(path);
    }
    Ok(Some(Box::new(setup)))
}

async fn free_place(files: &Workspace, wanted: &FilePath) -> Result<FilePath, Error> {
    let folder = wanted.as_str().trim_end_matches("/plan.md");
    for number in 1..=MAX_SAME {
        let path = match number {
            1 => wanted.clone(),
            number => FilePath::parse(&format!("{folder}-{number}/plan.md"))?,
        };
        match files.stat(&path).await {
            Err(error) if error.code == Code::NotFound => return Ok(path),
            Err(error) => return Err(error),
            Ok(_) => {}
        }
    }
    Err(Error::new(Code::Conflict, format!("{folder} and {MAX_SAME} more campaigns have this topic")))
}

/// A persona with its system text.
pub(crate) async fn read(files: &Workspace, role: String) -> Result<NextPersona, Error> {
    let persona = prompt::persona(files, &role).await?;
    let SystemText { text: system, cut } = prompt::system_text(files, &persona).await?;
    let Persona { role, tools, model, model_settings, .. } = persona;
    Ok(NextPersona { role, system, cut, tools, model, model_settings })
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::FileId;
    use uuid::Uuid;

    fn of(new: &NewChat, scenario: Scenario, agents: Option<&[&str]>) -> Result<NewChat, String> {
        let mut new = new.clone();
        let agents = agents.map(|agents| agents.iter().map(|&agent| agent.to_owned()).collect());
        set_up(&mut new, scenario, None, agents).map_err(|error| error.message)?;
        Ok(new)
    }

    #[test]
    fn a_scenario_chooses_the_persona_the_mode_and_the_team() {
        let new = NewChat { goal: "Grüner Tee: a pause!".into(), ..NewChat::default() };
        let with_plan = NewChat { plan: Some(FileId(Uuid::nil())), ..new.clone() };
        let approved = NewChat { plan_v: Some(3), ..with_plan.clone() };
        let told = |new: Result<NewChat, String>| {
            let new = new.unwrap_or_else(|error| panic!("{error}"));
            let setup = new.scenario.clone().unwrap_or_default();
            (new.role.unwrap_or_default(), new.mode, setup.executor.unwrap_or_default(), setup.agents.len())
        };
        let (planner, builder) = ("planner".to_owned(), "builder".to_owned());
        let plain = of(&new, Scenario::ChatMode, None).unwrap_or_default();
        assert_eq!((plain.role, plain.mode, plain.scenario), (None, Mode::Chat, None));
        assert_eq!(told(of(&new, Scenario::PlanThenExecute, None)), (planner.clone(), Mode::Plan, builder.clone(), 0));
        assert_eq!(
            told(of(&with_plan, Scenario::PlanThenExecute, None)),
            (builder.clone(), Mode::Chat, builder.clone(), 0)
        );
        assert_eq!(told(of(&approved, Scenario::PlanThenExecute, None)), (builder.clone(), Mode::Build, builder, 0));
        assert_eq!(told(of(&new, Scenario::ParallelAgents, None)), (planner.clone(), Mode::Plan, String::new(), 3));
        assert_eq!(
            told(of(&approved, Scenario::ParallelAgents, Some(&["assistant", "reviewer"]))),
            (planner, Mode::Build, String::new(), 2)
        );
        let campaign = of(&new, Scenario::CoWork, None).unwrap_or_default().scenario.unwrap_or_default();
        let path = campaign.plan_path.map(|path| path.to_string());
        assert_eq!(path.as_deref(), Some("/content/grüner-tee-a-pause/plan.md"));
        assert_eq!(campaign.agents, CAMPAIGN);
    }

    #[test]
    fn a_request_that_leaves_no_sense_is_refused() {
        let new = NewChat { goal: "!".into(), ..NewChat::default() };
        assert_eq!(slug(&new.goal), "campaign");
        assert!(of(&new, Scenario::Autonomous, Some(&["builder"])).is_err());
        assert!(of(&new, Scenario::ParallelAgents, Some(&[])).is_err());
        assert!(of(&new, Scenario::ParallelAgents, Some(&["assistant"; 9])).is_err());
        let planned = NewChat { plan: Some(FileId(Uuid::nil())), ..new.clone() };
        assert!(of(&planned, Scenario::CoWork, None).is_err());
        assert!(set_up(&mut new.clone(), Scenario::PlanThenExecute, Some(Mode::Build), None).is_err());
        let role = NewChat { role: Some("builder".into()), ..new };
        assert!(of(&role, Scenario::ParallelAgents, None).is_err());
    }
}
