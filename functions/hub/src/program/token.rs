//! `buildscale token`: secrets and tokens, where the hub signs them itself. It needs the hub's configuration, and no running hub.

use assembly::{Sources, process::environment};
use clap::{Args, Subcommand};
use cli::{CliError, Output};
use domain::Code;
use identity::Subject;
use ports::{Clock, SystemClock};
use serde_json::json;
use std::{path::PathBuf, time::Duration};

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
    /// Print JSON for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Print a new secret of 256 bits, for auth.secret, auth.ticket_secret or server.auth_token
    Secret,
    /// Sign a token with the hub's own secret (auth.secret); needs its configuration, and no running hub
    Make {
        /// For whom: a name, such as an e-mail address, or a user id
        subject: String,
        /// How long it is valid: a number with s, m, h or d
        #[arg(long, default_value = "30d", value_parser = cli::duration, value_name = "TIME")]
        life: Duration,
        /// The data folder of the hub
        #[arg(long, value_name = "DIR", env = "BUILDSCALE_DATA_DIR", default_value = "data")]
        data_dir: PathBuf,
        /// The hub's configuration file [default: buildscale.toml in the data folder]
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

/// `buildscale token`.
pub(crate) fn run(args: TokenArgs, out: &mut Output) -> Result<(), CliError> {
    match args.command {
        TokenCommand::Secret => {
            let secret = identity::fresh_secret();
            if out.is_json() { out.json(&json!({ "secret": secret })) } else { out.line(secret) }
        }
        TokenCommand::Make { subject, life, data_dir, config } => make(
            &subject,
            life,
            Sources::find(config.as_deref(), &data_dir, &environment()).map_err(super::failed)?,
            out,
        ),
    }
}

fn make(subject: &str, life: Duration, sources: Sources, out: &mut Output) -> Result<(), CliError> {
    let config = sources.read().map_err(super::failed)?;
    let Some(secret) = &config.auth.secret else {
        let file = sources.file().map(|file| format!("{} or ", file.display())).unwrap_or_default();
        return Err(CliError::Usage(format!(
            "there is no auth.secret in {file}BUILDSCALE__AUTH__SECRET to sign with; `buildscale token secret` makes one"
        )));
    };
    let (trust, now) = (config.auth.trust(), SystemClock.now());
    let signed = identity::mint(secret, &trust, subject, now, life);
    let signed = signed.map_err(|error| match error.code {
        Code::InvalidArgument => CliError::Usage(error.to_string()),
        _ => super::failed(std::io::Error::other(error)),
    })?;
    if !out.is_json() {
        return out.line(signed);
    }
    let user = Subject::of(&trust.issuer, subject).map(|subject| subject.user.to_string());
    out.json(&json!({ "token": signed, "subject": subject, "user_id": user, "expires_at": now + life }))
}
