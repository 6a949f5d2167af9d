//! `buildscale calendar login`: a person agrees in a browser that this hub may read and write their calendars of Google (RFC 8252, with PKCE). The
//! refresh token becomes a secret of the hub.

use crate::secrets;
use assembly::HostEgress;
use calendars::{
    Egress as _,
    google::oauth::{self, AUTHORIZE, OauthClient},
};
use clap::{Args, Subcommand};
use cli::{CliError, Output};
use serde_json::json;
use std::{fs, io, path::PathBuf, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

/// How long the person may take, and the request that brings the answer.
const PATIENCE: Duration = Duration::from_secs(600);
const READING: Duration = Duration::from_secs(10);
/// The longest request, in bytes.
const LONGEST: usize = 16 * 1024;

#[derive(Debug, Args)]
pub(crate) struct CalendarArgs {
    #[command(subcommand)]
    pub(crate) command: CalendarCommand,
    /// Print JSON for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CalendarCommand {
    /// Ask for the right to read and write events, and keep the token as a secret of the hub; prints a page to open in a browser
    Login {
        /// The name of the secret, for ${secret:NAME} in the declaration of the calendar
        secret: String,
        /// The id of your OAuth client of the type "desktop app"
        #[arg(long, value_name = "ID")]
        client_id: String,
        /// The secret of the client, where it has one
        #[arg(long, value_name = "SECRET", env = "BUILDSCALE_CALENDAR_CLIENT_SECRET", hide_env_values = true)]
        client_secret: Option<String>,
        /// The page on which people agree
        #[arg(long, value_name = "URL", default_value = AUTHORIZE)]
        authorize_url: String,
        /// The address that gives tokens
        #[arg(long, value_name = "URL", default_value = "https://oauth2.googleapis.com/token")]
        token_url: String,
        /// The data folder of the hub
        #[arg(long, value_name = "DIR", env = "BUILDSCALE_DATA_DIR", default_value = "data")]
        data_dir: PathBuf,
    },
}

/// `buildscale calendar`.
pub(crate) async fn run(args: CalendarArgs, out: &mut Output) -> Result<(), CliError> {
    let CalendarCommand::Login { secret, client_id, client_secret, authorize_url, token_url, data_dir } = args.command;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if secret.is_empty() || secret.starts_with('.') || !secret.chars().all(fits) {
        return Err(CliError::Usage(format!("{secret:?} is no name of a secret: letters, digits, -, _ and .")));
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(super::failed)?;
    let redirect = format!("http://{}/callback", listener.local_addr().map_err(super::failed)?);
    let fresh = (identity::fresh_secret(), identity::fresh_secret());
    let asked =
        oauth::request(&authorize_url, &client_id, &redirect, fresh).map_err(|error| CliError::Usage(error.message))?;
    match out.is_json() {
        true => out.json(&json!({ "authorize": asked.url }))?,
        false => out.notice(format_args!("open this page in a browser of this machine, and agree:\n{}", asked.url))?,
    }
    out.flush()?;
    let code = timeout(PATIENCE, code(&listener, &asked.state)).await;
    let code = code.map_err(|_| refused("nobody agreed in time"))?.map_err(super::failed)?;
    let code = code.ok_or_else(|| refused("the person did not agree"))?;
    let http = HostEgress { allow_private: true }.client(&token_url, true).map_err(refused)?;
    let client = OauthClient { id: &client_id, secret: client_secret.as_deref(), token_url: &token_url };
    let token = oauth::redeem(&http, client, (&code, &asked.verifier, &redirect)).await;
    let token = token.map_err(|error| refused(error.message))?;
    let folder = data_dir.join("secrets");
    let path = folder.join(&secret);
    let kept = fs::create_dir_all(&folder).and_then(|()| secrets::keep(&path, &token));
    kept.map_err(|source| CliError::Local { path: path.display().to_string(), source })?;
    match out.is_json() {
        true => out.json(&json!({ "secret": secret })),
        false => {
            out.line(format_args!("the token is kept: write refresh_token: ${{secret:{secret}}} into the declaration"))
        }
    }
}

fn refused(reason: impl Into<String>) -> CliError {
    CliError::Login { reason: reason.into(), hint: Some("try again") }
}

/// The code that the browser brings; none where the person did not agree. Requests without the right word are answered, and say nothing.
async fn code(listener: &TcpListener, state: &str) -> io::Result<Option<String>> {
    loop {
        let (mut stream, _) = listener.accept().await?;
        let Ok(Ok(target)) = timeout(READING, target(&mut stream)).await else { continue };
        let url = format!("http://127.0.0.1{target}");
        let said = |name: &str| oauth::said(&url, name);
        let is_ours = target.starts_with("/callback?") && said("state").as_deref() == Some(state);
        let (status, words) = match is_ours {
            true => ("200 OK", "You can close this page and go back to the terminal."),
            false => ("404 Not Found", "There is nothing here."),
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{words}",
            words.len()
        );
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
        if is_ours {
            return Ok(said("code"));
        }
    }
}

/// The target of a request: `/callback?code=…`.
async fn target(stream: &mut TcpStream) -> io::Result<String> {
    let (mut read, mut part) = (Vec::new(), [0_u8; 2048]);
    while !read.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut part).await? {
            0 => break,
            length => read.extend_from_slice(part.get(..length).unwrap_or_default()),
        }
        if read.len() > LONGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the request is too long"));
        }
    }
    let text = String::from_utf8_lossy(&read).into_owned();
    let first = text.lines().next().unwrap_or_default();
    Ok(first.strip_prefix("GET ").and_then(|rest| rest.split(' ').next()).unwrap_or_default().to_owned())
}
