//! The checks of a configuration that open neither the data folder nor a connection: a hub makes them before it begins, and
//! `buildscale config check` makes them alone.

use crate::{HubError, host};
use assembly::{Config, SetupError, Sources};
use models::Router;
use ports::{ModelInfo, SystemClock};
use std::{net::IpAddr, sync::Arc};

/// The way out for an address that is none.
pub(crate) const ADDRESS_HINT: &str = "an address is a host and a port, such as 127.0.0.1:8686";

/// The warnings about a configuration that do not keep a hub from working.
///
/// # Errors
/// When a hub does not start with it: a model of no provider, a folder that is not there, a weak secret, an address that is none.
pub fn checked(sources: &Sources, config: &Config, environment: &[(String, String)]) -> Result<Vec<String>, HubError> {
    match examined(sources, config, environment) {
        (faults, notes) if faults.is_empty() => Ok(notes),
        (mut faults, _) => Err(faults.swap_remove(0)),
    }
}

/// Everything that keeps a hub from starting with a configuration, in the order in which a start finds it, and the warnings that do not.
pub fn examined(sources: &Sources, config: &Config, environment: &[(String, String)]) -> (Vec<HubError>, Vec<String>) {
    let missing = config.sandbox.readable.iter().find(|folder| !folder.exists()).map(|missing| {
        let words = format!("{}: there is no such folder", missing.display());
        HubError::from(sources.refused("sandbox.readable", &words))
    });
    let (models_fault, default_model) = match config.ai.models(environment) {
        Ok(models) => {
            (Router::new(models.clone()).err().map(SetupError::Models), model_without_key(sources, &models.catalog()))
        }
        Err(failure) => (Some(failure), Ok(None)),
    };
    let parts = [
        config.door(Arc::new(SystemClock)).err(),
        config.auth.console_origins().err(),
        config.webhooks(None).err(),
        config.collector(environment).err(),
        config.embedder(environment).err(),
        config.describer(environment).err(),
        config.web.check().map_err(SetupError::Config).err(),
        models_fault,
    ];
    let of_parts = parts.into_iter().flatten().map(|failure| placed(sources, failure));
    let mut faults: Vec<HubError> = missing.into_iter().chain(of_parts).collect();
    for (name, server) in &config.mcp {
        if let Err(why) = server.check(name) {
            faults.push(sources.refused(&format!("mcp.{name}"), &why).into());
        }
    }
    faults.extend(host::folders(config).err().map(|failure| placed(sources, failure)));
    let mut notes = sources.without_effect(config);
    match default_model {
        Ok(note) => notes.extend(note),
        Err(failure) => faults.push(failure),
    }
    (faults, notes)
}

/// Checks the part that a start finds out by itself: the address to listen on, as far as it shows without a look-up of its name.
pub fn begins(sources: &Sources, config: &Config) -> Option<HubError> {
    address_fault(config).map(|words| sources.refused("server.listen", &words).into())
}

fn address_fault(config: &Config) -> Option<String> {
    let address = config.server.listen.as_deref()?;
    let Some((host, _)) = address.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()) else {
        return Some(format!("{address:?} cannot be listened on: {ADDRESS_HINT}"));
    };
    let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_public = literal.is_ok_and(|address| !address.is_loopback());
    (is_public && !may_be_public(config)).then(|| not_public(address))
}

/// Whether a hub may listen where other machines reach it: somebody asked for that, and every caller needs a credential.
pub(crate) fn may_be_public(config: &Config) -> bool {
    config.server.allow_public && config.is_guarded()
}

/// The refusal of an address that other machines reach.
pub(crate) fn not_public(address: &str) -> String {
    format!(
        "{address} can be reached from other machines: that needs --allow-public (server.allow_public), and beside it a token that is not \
         empty (server.auth_token) or accounts ([auth])"
    )
}

/// A fault that begins with its key is told with the place of the key.
fn placed(sources: &Sources, failure: SetupError) -> HubError {
    match failure {
        SetupError::Config(words) => match words.split_once(": ") {
            Some((key, reason)) if is_key(key) => sources.refused(key, reason).into(),
            _ => HubError::Config(words),
        },
        SetupError::Models(failure) => sources.refused(&failure.key(), &failure.to_string()).into(),
    }
}

fn is_key(word: &str) -> bool {
    word.contains('.') && word.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '_' | '.'))
}

/// The missing key of the default model, if it is missing. A model of an unknown provider is refused: it could never answer.
fn model_without_key(sources: &Sources, all: &[ModelInfo]) -> Result<Option<String>, HubError> {
    let Some(model) = all.iter().find(|model| model.default) else { return Ok(None) };
    match (model.provider.is_empty(), model.available, model.note.as_deref()) {
        (true, _, note) => {
            let providers: Vec<&str> =
                all.iter().map(|model| model.provider.as_str()).filter(|name| !name.is_empty()).collect();
            let near = model.id.split_once('/').and_then(|(provider, name)| {
                Some(format!("; did you mean {}/{name}?", assembly::nearest(provider, &providers)?))
            });
            let words = format!("{}{}", note.unwrap_or_default(), near.unwrap_or_default());
            Err(sources.refused("ai.model", &words).into())
        }
        (false, false, note) => {
            let how = note.unwrap_or("its provider has no key");
            Ok(Some(format!("ai.model: {} cannot be asked yet: {how}", model.id)))
        }
        (false, true, _) => Ok(None),
    }
}
