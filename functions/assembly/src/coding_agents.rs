//! Coding agents that are configured, as they are started.

use crate::config::Agent;
use agents::{Confined, KnownAgent};
use std::collections::BTreeMap;

/// The agents of a configuration, by their ids. Where one has the id of an agent of the box, that one says all that the configuration does not.
pub fn known(agents: &BTreeMap<String, Agent>) -> Vec<KnownAgent> {
    let known = |(id, agent): (&String, &Agent)| {
        let base = agents::built_in_agents().into_iter().find(|known| known.id == *id);
        let base = base.unwrap_or_else(|| KnownAgent { id: id.clone(), name: id.clone(), ..KnownAgent::default() });
        let agent = agent.clone();
        KnownAgent {
            name: agent.name.unwrap_or(base.name),
            // Another program is installed in another way.
            install: base.install.filter(|_| agent.command.is_none()),
            command: agent.command.unwrap_or(base.command),
            args: agent.args.unwrap_or(base.args),
            env: agent.env,
            auth: agent.auth.or(base.auth),
            confined: match agent.confined {
                Some(true) => Confined::Required,
                Some(false) => Confined::No,
                None => base.confined,
            },
            readable: agent.readable,
            writable: base.writable.into_iter().chain(agent.writable).collect(),
            id: base.id,
        }
    };
    agents.iter().map(known).collect()
}

/// The agents of a sandbox: a JSON object with the fields of `[agents.NAME]` by name. Each is confined, also one whose field asks for the contrary,
/// because commands of others run on the same machine.
///
/// # Errors
/// When the text is no such object.
pub fn of_sandbox(json: &str) -> Result<Vec<KnownAgent>, serde_json::Error> {
    let agents = known(&serde_json::from_str(json)?);
    Ok(agents.into_iter().map(|agent| KnownAgent { confined: Confined::Required, ..agent }).collect())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn an_agent_of_the_box_is_completed_and_one_in_a_sandbox_is_always_confined() {
        let agents =
            of_sandbox(r#"{"gemini": {"env": {"KEY": "k"}}, "own": {"command": "own", "confined": false}}"#).unwrap();
        let [gemini, own] = agents.as_slice() else { panic!("{agents:?}") };
        assert_eq!(
            (gemini.name.as_str(), gemini.command.as_str(), gemini.env["KEY"].as_str()),
            ("Gemini CLI", "gemini", "k")
        );
        assert_eq!((own.id.as_str(), own.command.as_str(), own.confined), ("own", "own", Confined::Required));
        assert_eq!(gemini.confined, Confined::Required);
        assert!(of_sandbox(r#"{"gemini": {"comand": "x"}}"#).unwrap_err().to_string().contains("comand"));
        assert!(of_sandbox("gemini").is_err());
    }

    #[test]
    fn each_key_of_an_agent_reaches_its_process() {
        let text = r#"{"own": {
            "name": "Own", "command": "/usr/bin/own", "args": ["--acp"], "env": {"KEY": "k"}, "auth": "own-key",
            "confined": true, "readable": ["a"], "writable": ["b"]
        }}"#;
        let own = KnownAgent {
            id: "own".into(),
            name: "Own".into(),
            command: "/usr/bin/own".into(),
            args: vec!["--acp".into()],
            env: BTreeMap::from([("KEY".to_owned(), "k".to_owned())]),
            auth: Some("own-key".into()),
            install: None,
            confined: Confined::Required,
            readable: vec!["a".into()],
            writable: vec!["b".into()],
        };
        assert_eq!(known(&serde_json::from_str(text).unwrap()), [own]);
        let free = serde_json::from_str(r#"{"gemini": {"confined": false}}"#).unwrap();
        assert!(known(&free).iter().all(|agent| agent.confined == Confined::No));
    }
}
