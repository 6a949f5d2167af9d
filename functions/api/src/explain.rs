//! Why somebody may or may not do something at a path: the decision, and the policy that made it.

use crate::{
    Context,
    access::{Access, Read, as_policies_know, demand},
    error::Answer,
    extract::Query,
    schema::{AccessDecision, AccessExplanation},
    workspaces::InWorkspace,
};
use axum::{Json, extract::State};
use domain::{Error, FilePath, UserId, WorkspaceId};
use identity::Action as Right;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;
use workspace::{Action, Role, Subject};

/// The longest name of a persona that is asked about, in characters.
const LONGEST: usize = 200;

/// The subject of the question.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct AccessQuery {
    /// The path; nothing needs to be there.
    #[param(value_type = String, min_length = 1, max_length = 4096, example = "/projects/summary.md")]
    path: FilePath,
    /// `me`, `user:<id>`, `agent:<persona>`, `task`, or one of these two for another person: `agent:<persona>:<id>`, `task:<id>`. Admins ask about
    /// others. `service:sandbox` fills the mirrors that commands see, `service:handoff` looks at files that start flows.
    #[param(default = "me", max_length = 300, example = "agent:assistant")]
    principal: Option<String>,
    /// The action; all when none.
    #[param(example = "write")]
    action: Option<String>,
}

/// The person of the question.
enum Who {
    Me,
    Person(UserId),
    Agent(String, Option<UserId>),
    Task(Option<UserId>),
    Service(&'static str),
}

/// The parts of BuildScale that serve several people at once.
const SERVICES: [&str; 2] = ["sandbox", "handoff"];

impl Who {
    fn parse(text: Option<&str>) -> Result<Self, Error> {
        let refusal = || {
            Error::invalid("principal", "this is no principal").hint(
                "me, user:<id>, agent:<persona>, agent:<persona>:<id of a person>, task, task:<id of a person>, service:sandbox, or service:handoff",
            )
        };
        let id = |text: &str| text.parse::<UserId>().map_err(|_| refusal());
        let parts: Vec<&str> = text.unwrap_or("me").split(':').collect();
        let is_name =
            |name: &str| !name.is_empty() && name.chars().count() <= LONGEST && !name.chars().any(char::is_control);
        match parts.as_slice() {
            ["me"] => Ok(Self::Me),
            ["user", of] => Ok(Self::Person(id(of)?)),
            ["agent", persona] if is_name(persona) => Ok(Self::Agent((*persona).to_owned(), None)),
            ["agent", persona, of] if is_name(persona) => Ok(Self::Agent((*persona).to_owned(), Some(id(of)?))),
            ["task"] => Ok(Self::Task(None)),
            ["task", of] => Ok(Self::Task(Some(id(of)?))),
            ["service", name] => SERVICES.into_iter().find(|one| one == name).map(Self::Service).ok_or_else(refusal),
            _ => Err(refusal()),
        }
    }

    /// Another person whom the answer is about.
    fn other(&self, me: UserId) -> Option<UserId> {
        match self {
            Self::Me | Self::Service(_) => None,
            Self::Person(of) | Self::Agent(_, Some(of)) | Self::Task(Some(of)) => Some(*of).filter(|of| *of != me),
            Self::Agent(_, None) | Self::Task(None) => None,
        }
    }
}

/// The decisions of the policies on a path, each with the policy that decided. It does not tell whether something is there.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/access", tag = "access", params(InWorkspace, AccessQuery),
    responses((status = 200, description = "The decision on each action.", body = AccessExplanation)))]
pub(crate) async fn explain_access(
    State(context): State<Arc<Context>>,
    Access { at, by, caller, role, files, .. }: Access<Read, InWorkspace>,
    Query(asked): Query<AccessQuery>,
) -> Answer<Json<AccessExplanation>> {
    let who = Who::parse(asked.principal.as_deref())?;
    let actions = match asked.action.as_deref() {
        None => Action::ALL.to_vec(),
        Some(action) => {
            let unknown =
                |error: String| Error::invalid("action", error).hint("name one of them, or leave action out for all");
            vec![action.parse().map_err(unknown)?]
        }
    };
    if who.other(by.user()).is_some() {
        demand(&caller, role, Right::Administer)?;
    }
    let mine = as_policies_know(role);
    let subject = match who {
        Who::Me => Subject::of(&by, Some(mine)),
        Who::Person(id) if id == by.user() => Subject::of(&by, Some(mine)),
        Who::Person(id) => Subject::Person { id, role: role_of(&context, at.workspace_id, id).await? },
        Who::Agent(persona, of) => Subject::Agent { persona, person: of.unwrap_or_else(|| by.user()), has_home: true },
        Who::Task(of) => Subject::Task { person: of.unwrap_or_else(|| by.user()), has_home: true },
        Who::Service(name) => Subject::Service { name },
    };
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let decisions = actions.into_iter().map(|action| {
        let decision = workspace.explain(&subject, action, &asked.path);
        let (decision, policy, why) = (decision.effect.as_str(), decision.policy, decision.why);
        AccessDecision { action: action.as_str(), decision, policy: policy.to_string(), why: why.to_string() }
    });
    let decisions = decisions.collect();
    Ok(Json(AccessExplanation { path: asked.path.to_string(), principal: subject.to_string(), decisions }))
}

async fn role_of(context: &Context, workspace: WorkspaceId, user: UserId) -> Result<Option<Role>, Error> {
    let member = context.base.members().get(workspace, user).await?;
    Ok(Some(as_policies_know(member.role)))
}
