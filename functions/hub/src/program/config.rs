//! `buildscale config` and `buildscale doctor`: the configuration of a hub on this machine, and whether it would start.

use super::failed;
use crate::{HubError, layout::STORE, preflight};
use assembly::{Config, Sources, process::environment};
use clap::{Args, Subcommand};
use cli::{CliError, Connection, Exit, Look, Output};
use serde_json::json;
use std::{
    fs::{DirBuilder, File},
    io::{ErrorKind, Read, Write},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// Every key with its description, none of them set; written from the sources.
const TEMPLATE: &str = include_str!("../../../../docs/reference/buildscale.toml");

/// The first bytes of a database of SQLite.
const HEAD: &[u8] = b"SQLite format 3\0";

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
    #[command(flatten)]
    pub(crate) place: ConfigPlace,
    /// Print JSON for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// The place of a hub's configuration.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConfigPlace {
    /// The data folder of the hub
    #[arg(long, global = true, value_name = "DIR", env = "BUILDSCALE_DATA_DIR", default_value = "data")]
    pub(crate) data_dir: PathBuf,
    /// The configuration file [default: buildscale.toml in the data folder]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show the configured values, each with its origin; secrets are hidden
    Show,
    /// List the faults, with file, line and key; exit code 1 when there are any
    Check,
    /// Write a configuration file to begin with, in which everything is a comment
    Init,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(flatten)]
    pub(crate) place: ConfigPlace,
}

/// `buildscale config`.
pub(crate) fn run(args: ConfigArgs, out: &mut Output) -> Result<(), CliError> {
    match args.command {
        ConfigCommand::Show => show(&args.place, out),
        ConfigCommand::Check => {
            let found = checked(&args.place)?;
            if out.is_json() {
                return out.json(&json!({ "ok": true, "file": found.file, "notes": found.notes }));
            }
            found.notes.iter().try_for_each(|note| out.words(format_args!("note: {note}")))?;
            out.notice(found.verdict())
        }
        ConfigCommand::Init => init(&args.place, out),
    }
}

fn sources(place: &ConfigPlace) -> Result<Sources, CliError> {
    Sources::find(place.config.as_deref(), &place.data_dir, &environment()).map_err(failed)
}

/// A configuration without faults, as a hub would take it.
struct CheckedConfig {
    config: Config,
    /// The file that was read; none where none is named and the data folder has none.
    file: Option<String>,
    notes: Vec<String>,
}

impl CheckedConfig {
    /// The result for people. It names the file, since a check of another file than the hub's tells nothing about the hub.
    fn verdict(&self) -> String {
        match &self.file {
            Some(file) => format!("{file}: nothing is wrong"),
            None => "there is no file; nothing is wrong with the variables and the defaults".to_owned(),
        }
    }
}

/// The checked configuration; else all faults, each on a line of its own.
fn checked(place: &ConfigPlace) -> Result<CheckedConfig, CliError> {
    let environment = environment();
    let sources = sources(place)?;
    let (config, wrong) = sources.examine();
    let mut faults: Vec<HubError> = wrong.into_iter().map(HubError::from).collect();
    let mut notes = assembly::unknown_variables(&environment);
    // These checks look at several values together, so none of them may be missing.
    if faults.is_empty() {
        faults.extend(preflight::begins(&sources, &config));
        let (others, warnings) = preflight::examined(&sources, &config, &environment);
        faults.extend(others);
        notes.extend(warnings);
    }
    if faults.len() < 2 {
        let file = sources.file().map(|file| file.display().to_string());
        return faults.pop().map_or(Ok(CheckedConfig { config, file, notes }), |fault| Err(failed(fault)));
    }
    let mut told: Vec<String> = Vec::new();
    for fault in faults {
        let words = match fault {
            HubError::Config(words) => words,
            fault => fault.to_string(),
        };
        // Two checks may look at the same part.
        if !told.contains(&words) {
            told.push(words);
        }
    }
    Err(failed(HubError::Config(told.join("\n"))))
}

fn show(place: &ConfigPlace, out: &mut Output) -> Result<(), CliError> {
    let sources = sources(place)?;
    let settings = sources.settings().map_err(failed)?;
    if out.is_json() {
        let rows = settings.iter().map(
            |one| json!({ "key": one.key, "value": one.value, "origin": one.origin.as_ref().map(ToString::to_string) }),
        );
        let file = sources.file().map(|file| file.display().to_string());
        return out.json(&json!({ "file": file, "settings": rows.collect::<Vec<_>>() }));
    }
    for setting in &settings {
        let origin = setting.origin.as_ref().map(ToString::to_string).unwrap_or_default();
        let origin = out.style().paint(Look::Dim, format_args!("# {origin}"));
        out.line(format_args!("{} = {}  {origin}", setting.key, setting.value))?;
    }
    match sources.file() {
        Some(file) => out.notice(format_args!("{}; other keys have their defaults", file.display())),
        None => out.notice("there is no file; all keys have their defaults"),
    }
}

fn init(place: &ConfigPlace, out: &mut Output) -> Result<(), CliError> {
    let path = place.config.clone().unwrap_or_else(|| place.data_dir.join("buildscale.toml"));
    let wrong = |source| CliError::Local { path: path.display().to_string(), source };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        // A data folder that the hub would make.
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(wrong)?;
    }
    let mut file = File::create_new(&path).map_err(|source| match source.kind() {
        // A file that is there is somebody's.
        ErrorKind::AlreadyExists => CliError::Hub {
            error: format!("{} is there already, and stays as it is", path.display()).into(),
            code: "IO",
            hint: Some("name another file with --config, or move that one away".into()),
        },
        _ => wrong(source),
    })?;
    file.write_all(TEMPLATE.as_bytes()).map_err(wrong)?;
    // Keys go into it.
    file.set_permissions(std::fs::Permissions::from_mode(0o600)).map_err(wrong)?;
    out.line(path.display())
}

/// `buildscale doctor`: exit code 1 when something would not work.
pub(crate) async fn doctor(args: DoctorArgs, out: &mut Output) -> Result<Exit, CliError> {
    let mut found = Vec::new();
    let told = |failure: &CliError| match failure.hint() {
        Some(hint) => format!("{failure}; {hint}"),
        None => failure.to_string(),
    };
    let config = match checked(&args.place) {
        Ok(checked) => {
            match checked.notes.is_empty() {
                true => found.push(("configuration", "ok", checked.verdict())),
                false => found.extend(checked.notes.into_iter().map(|note| ("configuration", "note", note))),
            }
            checked.config
        }
        Err(failure) => {
            found.push(("configuration", "wrong", told(&failure)));
            Config::default()
        }
    };
    found.push(data(&args.place.data_dir));
    let (state, why) = commands(&config, sandbox::probe_namespaces());
    found.push(("commands", state, why));
    match cli::reach(&args.connection).await {
        Ok(cli::ConnectedHub { model, note, degraded }) => {
            found.push(("hub", "ok", format!("{} answers, model {model}", args.connection.url)));
            found.extend(note.map(|note| ("model", "note", note)));
            found.extend(degraded.into_iter().map(|(part, why)| ("hub", "note", format!("{part}: {why}"))));
        }
        Err(failure) => found.push(("hub", "wrong", told(&failure))),
    }
    let is_well = found.iter().all(|(_, state, _)| *state != "wrong");
    if out.is_json() {
        let checks = found.iter().map(|(what, state, why)| json!({ "what": what, "state": state, "why": why }));
        out.json(&json!({ "ok": is_well, "checks": checks.collect::<Vec<_>>() }))?;
    } else {
        for (what, state, why) in &found {
            let look = match *state {
                "ok" => Look::Good,
                "note" => Look::Ask,
                _ => Look::Bad,
            };
            out.words(format_args!("{}  {what}: {why}", out.style().paint(look, format_args!("{state:5}"))))?;
        }
    }
    Ok(if is_well { Exit::Done } else { Exit::Failed })
}

/// How commands of agents would run on this machine.
fn commands(config: &Config, namespaces: Result<sandbox::Isolation, String>) -> (&'static str, String) {
    match (config.sandbox.commands(), namespaces) {
        (None, _) => ("note", "sandbox.commands refuses all of them".to_owned()),
        (Some(_), Ok(_)) => ("ok", "each runs in namespaces of its own, behind Landlock and seccomp".to_owned()),
        (Some(_), Err(missing)) if config.auth.has_accounts() => {
            ("wrong", format!("they are refused where there are accounts: {missing}"))
        }
        (Some(_), Err(missing)) => {
            ("note", format!("they run behind Landlock and seccomp alone, without a network: {missing}"))
        }
    }
}

fn data(folder: &Path) -> (&'static str, &'static str, String) {
    let shown = folder.display();
    match std::fs::metadata(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            ("data", "note", format!("{shown} is not there; the hub makes it"))
        }
        Err(error) => ("data", "wrong", format!("{shown}: {error}")),
        Ok(metadata) if !metadata.is_dir() => ("data", "wrong", format!("{shown} is no folder")),
        Ok(_) if is_another_file(&folder.join(STORE)) => {
            ("data", "wrong", format!("{shown}/{STORE} is no database: restore a backup, or move it away"))
        }
        Ok(metadata) if metadata.permissions().mode() & 0o077 != 0 => {
            ("data", "note", format!("other users of this machine can look into {shown}: chmod 700 {shown}"))
        }
        Ok(_) => ("data", "ok", format!("{shown} is yours alone")),
    }
}

/// Whether a file is there that SQLite did not write. One without a content is a new one.
fn is_another_file(store: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(store).and_then(|file| file.take(HEAD.len() as u64).read_to_end(&mut head));
    read.is_ok() && !head.is_empty() && head != HEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doctor_tells_how_commands_run() {
        let alone = Config::default();
        let mut accounts = Config::default();
        accounts.auth.jwks_url = Some("https://issuer.example/keys".into());
        let mut none = Config::default();
        none.sandbox.commands = false;
        let missing = || Err("this kernel gives no user namespace".to_owned());
        assert_eq!(commands(&alone, Ok(sandbox::Isolation::Container)).0, "ok");
        assert_eq!(commands(&none, missing()).0, "note");
        for (config, state) in [(&alone, "note"), (&accounts, "wrong")] {
            let (found, why) = commands(config, missing());
            assert!(found == state && why.ends_with(": this kernel gives no user namespace"), "{why}");
        }
    }

    #[test]
    fn the_file_to_begin_with_sets_nothing() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("buildscale.toml"), TEMPLATE)?;
        let sources = Sources::find(None, folder.path(), &[])?;
        sources.read()?;
        assert_eq!(sources.settings()?, []);
        assert!(TEMPLATE.contains("# listen = "));
        Ok(())
    }

    /// A person removes the mark in front of a line. A value that has to be filled in is `…`.
    #[test]
    fn each_line_to_begin_with_has_a_known_key_and_a_value_of_its_type() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let (mut section, mut keys, mut faults) = ("", 0, Vec::new());
        for line in TEMPLATE.lines() {
            let text = line.trim_start_matches("# ");
            if text.starts_with('[') && text.ends_with(']') {
                section = text;
            }
            let key = text.split_once(" = ").map(|(key, _)| key).filter(|_| line.starts_with("# "));
            let Some(key) = key.filter(|key| key.chars().all(|c| c.is_ascii_lowercase() || c == '_')) else { continue };
            keys += 1;
            std::fs::write(folder.path().join("buildscale.toml"), format!("{section}\n{text}\n"))?;
            let sources = Sources::find(None, folder.path(), &[])?;
            let fault = match sources.settings() {
                Ok(_) => sources.read().err().map(|fault| fault.to_string()),
                Err(syntax) => Err(format!("{section} {key}: {syntax}"))?,
            };
            // A value may be refused for others that are missing beside it, and `…` for what it is.
            let is_ours = |fault: &String| fault.contains("invalid type") || fault.contains("no such key");
            faults.extend(fault.filter(is_ours).map(|fault| format!("{section} {key}: {fault}")));
        }
        assert!(keys > 100, "{keys} keys were found");
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        Ok(())
    }
}
