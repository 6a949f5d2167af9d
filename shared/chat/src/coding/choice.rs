//! The option of a coding agent that a decision stands for. A decision whose parts disagree chooses none.

use domain::{AgentOption, Error, event::PermissionOutcome};

/// The option that a decision chooses; none cancels the request, which is a no.
///
/// # Errors
/// `INVALID_ARGUMENT` about `option_id` for an option that the agent does not offer or that says the opposite of the outcome, and for a yes
/// that the agent offers for good alone: that has to be chosen by name.
pub(crate) fn chosen(
    options: &[AgentOption],
    outcome: PermissionOutcome,
    named: Option<&str>,
) -> Result<Option<String>, Error> {
    let hint = || {
        let ids: Vec<&str> = options.iter().map(|option| option.id.as_str()).collect();
        format!("the agent offers: {}", ids.join(", "))
    };
    if let Some(named) = named {
        let Some(option) = options.iter().find(|option| option.id == named) else {
            return Err(Error::invalid("option_id", format!("the agent offers no option {named:?}")).hint(hint()));
        };
        let agrees = match outcome {
            PermissionOutcome::Approved => option.allows(),
            PermissionOutcome::Declined | PermissionOutcome::Cancelled => option.rejects(),
        };
        if !agrees {
            let message = format!("the option {named:?} does not agree with the outcome");
            return Err(Error::invalid("option_id", message).hint("leave one of both out, or have them agree"));
        }
        return Ok(Some(named.to_owned()));
    }
    match outcome {
        PermissionOutcome::Approved => match options.iter().find(|option| option.kind == "allow_once") {
            Some(option) => Ok(Some(option.id.clone())),
            None => Err(Error::invalid("option_id", "the agent offers no yes for this once").hint(hint())),
        },
        PermissionOutcome::Declined | PermissionOutcome::Cancelled => Ok(no(options)),
    }
}

/// The agent's no for this once; none where it offers none.
pub(crate) fn no(options: &[AgentOption]) -> Option<String> {
    options.iter().find(|option| option.kind == "reject_once").map(|option| option.id.clone())
}
