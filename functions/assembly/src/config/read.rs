//! From a file and the environment to a configuration. A fault names its place: the file and the line, or the variable, and the key.

use super::{Ai, Config, bounds, observe::ENDPOINT};
use crate::{SetupError, log, secrets};
use ports::KnownSecrets;
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;
use std::{
    fmt,
    path::{Path, PathBuf},
};
use toml::{
    Table, Value,
    de::{DeTable, DeValue},
};

/// The prefix of environment variables that are configuration keys.
const PREFIX: &str = "BUILDSCALE__";
/// The variables that are no keys, but ours: of the hub, of the command line and of the development scripts.
const OTHERS: [&str; 13] = [
    "BUILDSCALE_URL",
    "BUILDSCALE_TOKEN",
    "BUILDSCALE_WORKSPACE",
    "BUILDSCALE_DATA_DIR",
    "BUILDSCALE_CALENDAR_CLIENT_SECRET",
    "BUILDSCALE_LOG",
    log::FORMAT,
    "BUILDSCALE_MODEL",
    "BUILDSCALE_WORLD",
    "BUILDSCALE_BIN_DIR",
    "BUILDSCALE_CACHE",
    "BUILDSCALE_FUNCTIONS",
    "BUILDSCALE_JOURNEY",
];

/// The sources of a configuration: the text of its file, and the environment on top of it.
#[derive(Debug)]
pub struct Sources {
    path: PathBuf,
    text: Option<String>,
    environment: Vec<(String, String)>,
}

/// The origin of a value of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of the file, from 1.
    File(PathBuf, usize),
    /// An environment variable.
    Variable(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, line) => write!(f, "{}, line {line}", path.display()),
            Self::Variable(name) => f.write_str(name),
        }
    }
}

/// A value that is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The key with the tables that it is in, such as `server.listen`.
    pub key: String,
    /// The value as TOML has it; secrets are hidden.
    pub value: String,
    /// Its origin; none when it is not known.
    pub origin: Option<Origin>,
}

impl Sources {
    /// The file that is `named`, which has to be there; else `buildscale.toml` in the data folder, if it is there.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn find(named: Option<&Path>, data: &Path, environment: &[(String, String)]) -> Result<Self, SetupError> {
        let path = named.map_or_else(|| data.join("buildscale.toml"), Path::to_owned);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => None,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(SetupError::Config(format!("{}: there is no such file", path.display())));
            }
            Err(error) => return Err(SetupError::Config(format!("{}: {error}", path.display()))),
        };
        Ok(Self { path, text, environment: set_variables(environment).cloned().collect() })
    }

    /// The environment alone; `theirs` says which of its keys are somebody else's.
    pub fn of_environment(environment: &[(String, String)], theirs: impl Fn(&str) -> bool) -> Self {
        let environment = set_variables(environment).filter(|(name, _)| !theirs(name)).cloned().collect();
        Self { path: PathBuf::new(), text: None, environment }
    }

    /// The file, if there is one.
    pub fn file(&self) -> Option<&Path> {
        self.text.as_ref().map(|_| self.path.as_path())
    }

    /// The configuration.
    ///
    /// # Errors
    /// The first fault, with its place and, where a name is nearly one that there is, the one that may be meant.
    pub fn read(&self) -> Result<Config, SetupError> {
        match self.examine() {
            (config, faults) if faults.is_empty() => Ok(config),
            (_, mut faults) => Err(faults.swap_remove(0)),
        }
    }

    /// The configuration without the values that are wrong, and the fault of each of them, with its place. Of a list the first fault is told, and of
    /// a file that is no TOML the place where it ceases to be.
    pub fn examine(&self) -> (Config, Vec<SetupError>) {
        let mut faults = Vec::new();
        let mut table = self.table(&mut faults);
        let secrets = KnownSecrets::default();
        secrets::learn_configuration(&table, &secrets);
        let config = self.config(&mut table, &mut faults);
        faults.extend(self.log_format_fault());
        for fault in &mut faults {
            // The message about a fault may quote the value.
            if let SetupError::Config(words) = fault {
                *words = secrets.redactor().text(words).into_owned();
            }
        }
        let file = (!self.path.as_os_str().is_empty()).then(|| self.path.clone());
        (Config { secrets, file, ..config }, faults)
    }

    /// The fault of a format of the log that is none.
    fn log_format_fault(&self) -> Option<SetupError> {
        let (name, format) = self.environment.iter().find(|(name, _)| name == log::FORMAT)?;
        let is_known = log::Format::named(format).is_some();
        (!is_known)
            .then(|| SetupError::Config(format!("{name}: {format:?} is no format of the log; it is json or text")))
    }

    /// Whether a variable has a value.
    pub(super) fn is_set(&self, variable: &str) -> bool {
        self.environment.iter().any(|(name, _)| name == variable)
    }

    /// A fault of the value at `key`, which was found after it was read, with its place.
    pub fn refused(&self, key: &str, words: &str) -> SetupError {
        let path: Vec<String> = key.split('.').map(str::to_owned).collect();
        self.fault(&path, words)
    }

    /// The configured values, by key.
    ///
    /// # Errors
    /// When the file is no TOML, or a variable no key.
    pub fn settings(&self) -> Result<Vec<Setting>, SetupError> {
        let mut faults = Vec::new();
        let table = self.table(&mut faults);
        if !faults.is_empty() {
            return Err(faults.swap_remove(0));
        }
        let known = KnownSecrets::default();
        secrets::learn_configuration(&table, &known);
        secrets::learn_environment(&self.environment, &known);
        let mut settings = Vec::new();
        self.collect(&table, &mut Vec::new(), &mut settings);
        self.collect_usual(&mut settings);
        for setting in &mut settings {
            let last = setting.key.rsplit('.').next().unwrap_or_default();
            setting.value = match secrets::is_secret(last) {
                true => "(hidden)".into(),
                false => known.redactor().text(&setting.value).into_owned(),
            };
        }
        Ok(settings)
    }

    fn collect(&self, table: &Table, above: &mut Vec<String>, settings: &mut Vec<Setting>) {
        for (key, value) in table {
            above.push(key.clone());
            match value {
                Value::Table(table) => self.collect(table, above, settings),
                value => settings.push(Setting {
                    key: above.join("."),
                    value: serde_json::to_string(value).unwrap_or_default(),
                    origin: self.origin(above),
                }),
            }
            above.pop();
        }
    }

    /// Puts the values of variables with names of their own over those of their keys.
    fn collect_usual(&self, settings: &mut Vec<Setting>) {
        let of_models = models::usual_variables().map(|(name, key)| (name, format!("ai.{key}"), true));
        let of_traces = [(ENDPOINT, "telemetry.otlp_endpoint".to_owned(), false)];
        for (name, key, gives_way) in of_models.chain(of_traces) {
            let Some((_, value)) = self.environment.iter().find(|(known, _)| known == name) else { continue };
            let own = settings.iter().position(|one| one.key == key);
            let is_ours =
                own.and_then(|at| settings.get(at)).is_some_and(|one| matches!(one.origin, Some(Origin::Variable(_))));
            if is_ours && gives_way {
                continue;
            }
            own.into_iter().for_each(|at| drop(settings.remove(at)));
            let value = serde_json::Value::from(value.trim()).to_string();
            settings.push(Setting { key, value, origin: Some(Origin::Variable(name.to_owned())) });
        }
    }

    /// The file with the environment on top. Nothing where the file is no TOML: the faults of the rest would be those of what it lacks.
    fn table(&self, faults: &mut Vec<SetupError>) -> Table {
        let text = self.text.as_deref().unwrap_or_default();
        let mut table = match text.parse::<Table>() {
            Ok(table) => table,
            Err(error) => {
                // The place and the reason, without the line itself: it may hold a key.
                let line = error.span().map_or(1, |span| line_at(text, span.start));
                let words = format!("{}, line {line}: {}", self.path.display(), error.message());
                faults.push(SetupError::Config(words));
                return Table::new();
            }
        };
        for (name, value) in &self.environment {
            if let Some(keys) = keys_of(name)
                && let Err(reason) = set(&mut table, &keys, value)
            {
                faults.push(SetupError::Config(format!("{name}: {reason}")));
            }
        }
        table
    }

    fn config(&self, table: &mut Table, faults: &mut Vec<SetupError>) -> Config {
        let mut config: Config = self.without_faults(table, &[], faults);
        let models: models::Config = self.without_faults(&mut config.ai.models, &["ai"], faults);
        faults.extend(bounds::faults(&config, &models).into_iter().map(|(key, words)| self.refused(&key, &words)));
        if let Some((key, words)) = config.planner.fault() {
            faults.push(self.fault(&["planner", key].map(str::to_owned), &words));
        }
        for (place, grant) in config.grants.iter().enumerate() {
            if let Some((key, item, words)) = grant.fault() {
                let path = ["grants", &place.to_string(), key, &item.to_string()].map(str::to_owned);
                faults.push(self.fault(&path, &words));
            }
        }
        for (place, origin) in config.server.cors_origins.iter().enumerate() {
            if !is_origin_of_a_page(origin) {
                let path = ["server", "cors_origins", &place.to_string()].map(str::to_owned);
                let words = format!(
                    "{origin:?} is no origin of a web page; write its scheme, host and port, such as http://localhost:5173"
                );
                faults.push(self.fault(&path, &words));
            }
        }
        config
    }

    /// The value of a table whose own keys are `above`, without what is wrong in it.
    fn without_faults<T: DeserializeOwned + Default>(
        &self,
        table: &mut Table,
        above: &[&str],
        faults: &mut Vec<SetupError>,
    ) -> T {
        loop {
            let (path, words) = match parse_table(table) {
                Ok(value) => return value,
                Err(fault) => fault,
            };
            let whole: Vec<String> = above.iter().map(|key| (*key).to_owned()).chain(path.iter().cloned()).collect();
            if self.read_again(table, &whole, &path, &words) {
                continue;
            }
            faults.push(self.fault(&whole, &words));
            if !remove(table, &path) {
                return T::default();
            }
        }
    }

    /// Reads the value that a variable has at `path` of this table, which is `whole` of the configuration, as the type that is wanted: `a,b` as a list, since a
    /// variable has no brackets, and what looks like a number as a text, such as the id of a project. False when it is neither.
    fn read_again(&self, table: &mut Table, whole: &[String], path: &[String], words: &str) -> bool {
        let Some(Origin::Variable(name)) = self.origin(whole) else { return false };
        let Some((last, folders)) = path.split_last() else { return false };
        let inside = folders.iter().try_fold(table, |table, key| table.get_mut(key)?.as_table_mut());
        let Some(value) = inside.and_then(|table| table.get_mut(last)) else { return false };
        let wanted = match &*value {
            Value::String(text) if words.ends_with("expected a sequence") => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                Value::Array(items.map(|item| Value::String(item.to_owned())).collect())
            }
            Value::Integer(_) | Value::Float(_) | Value::Boolean(_) if words.ends_with("expected a string") => {
                // As it is written: a number may begin with zeros. A variable for the table above has no text of this key alone.
                let text = self.environment.iter().rev().find(|(known, _)| *known == name);
                let Some((_, text)) = text.filter(|_| keys_of(&name).as_deref() == Some(whole)) else { return false };
                Value::String(text.trim().to_owned())
            }
            _ => return false,
        };
        *value = wanted;
        true
    }

    /// A fault at a key, in our words.
    fn fault(&self, path: &[String], words: &str) -> SetupError {
        let place = self.origin(path).map(|origin| format!("{origin}: ")).unwrap_or_default();
        SetupError::Config(format!("{place}{}: {}", path.join("."), in_our_words(path, words)))
    }

    /// The origin of the value at `path`: the variable that sets it, else the line of the nearest key that the file has.
    fn origin(&self, path: &[String]) -> Option<Origin> {
        let sets = |(name, _): &&(String, String)| {
            keys_of(name).is_some_and(|keys| path.starts_with(&keys) || keys.starts_with(path))
        };
        if let Some((name, _)) = self.environment.iter().rev().find(sets) {
            return Some(Origin::Variable(name.clone()));
        }
        let text = self.text.as_deref()?;
        Some(Origin::File(self.path.clone(), line_of(text, path)?))
    }
}

/// The variables with our prefix that are no keys, each with a suggestion.
pub fn unknown_variables(environment: &[(String, String)]) -> Vec<String> {
    let ours = environment.iter().map(|(name, _)| name.as_str()).filter(|name| name.starts_with("BUILDSCALE_"));
    let unknown = ours.filter(|name| !name.starts_with(PREFIX) && !OTHERS.contains(name));
    let told = unknown.map(|name| {
        let rest = name.trim_start_matches("BUILDSCALE_").to_lowercase();
        let table = [
            "server",
            "auth",
            "store",
            "ai",
            "files",
            "observe",
            "telemetry",
            "tasks",
            "providers",
            "sandbox",
            "hub",
            "mcp",
            "web",
            "webhooks",
            "planner",
            "search",
            "documents",
            "calendars",
        ]
        .into_iter()
        .find(|table| rest.strip_prefix(table).is_some_and(|rest| rest.starts_with('_')));
        let hint = match (table, similar::get_close_matches(name, &OTHERS, 1, 0.8).first()) {
            (Some(table), _) => {
                let key = rest.strip_prefix(table).unwrap_or_default().trim_start_matches('_');
                format!("did you mean {PREFIX}{}__{}?", table.to_uppercase(), key.to_uppercase())
            }
            (None, Some(near)) => format!("did you mean {near}?"),
            (None, None) => format!("a configuration key is {PREFIX}TABLE__KEY"),
        };
        format!("{name} means nothing; {hint}")
    });
    told.collect()
}

/// The variables without empty ones: files for containers pass an empty text for a value that was left out. `[]` and `""` are values.
fn set_variables(environment: &[(String, String)]) -> impl Iterator<Item = &(String, String)> {
    environment.iter().filter(|(_, value)| !value.trim().is_empty())
}

/// The configuration keys that a variable means. A variable of a program keeps its name, as in `BUILDSCALE__MCP__LIBRARY__ENV__API_KEY`.
fn keys_of(variable: &str) -> Option<Vec<String>> {
    let parts: Vec<&str> = variable.strip_prefix(PREFIX)?.split("__").collect();
    let own = match parts.as_slice() {
        [table, _, env, _, ..] if has_programs(table) && env.eq_ignore_ascii_case("env") => 3,
        _ => parts.len(),
    };
    let (own, name) = parts.split_at(own);
    let name = (!name.is_empty()).then(|| name.join("__"));
    Some(own.iter().map(|part| part.to_lowercase()).chain(name).collect())
}

/// Whether the entries of a table are programs, which have variables of their own.
fn has_programs(table: &str) -> bool {
    ["agents", "mcp"].iter().any(|known| table.eq_ignore_ascii_case(known))
}

/// The value of a table; else the keys that lead to the fault, and serde's words about it.
fn parse_table<T: DeserializeOwned>(table: &Table) -> Result<T, (Vec<String>, String)> {
    serde_path_to_error::deserialize(Value::Table(table.clone())).map_err(|error| {
        let keys = error.path().iter().filter_map(|segment| match segment {
            Segment::Map { key } => Some(key.clone()),
            Segment::Seq { index } => Some(index.to_string()),
            Segment::Enum { .. } | Segment::Unknown => None,
        });
        (keys.collect(), error.inner().message().to_owned())
    })
}

/// The name that is nearly `word`, if there is one.
pub fn nearest<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    similar::get_close_matches(word, names, 1, 0.6).first().copied()
}

/// Takes the value at `path` out of a table, or the list that it is in, or the nearest table above it; whether there was one.
fn remove(table: &mut Table, path: &[String]) -> bool {
    let Some((first, rest)) = path.split_first() else { return false };
    if let Some(Value::Table(inside)) = table.get_mut(first)
        && remove(inside, rest)
    {
        return true;
    }
    table.remove(first).is_some()
}

/// Serde's words about a type are Rust's, and those about a key that is not known name the known ones.
fn in_our_words(path: &[String], words: &str) -> String {
    if !words.starts_with("unknown field") {
        let Some((fault, wanted)) = words.rsplit_once("expected ") else { return words.to_owned() };
        let is_number = fault.starts_with("invalid value: integer");
        let wanted = match wanted {
            "a sequence" => "a list",
            "a map" => "a table",
            "u32" if is_number => "a whole number from 0 to 4294967295",
            "u64" | "usize" if is_number => "a whole number that is not below 0",
            "u8" | "u16" | "u32" | "u64" | "usize" | "i64" => "a whole number",
            "f32" | "f64" => "a number",
            name if name.starts_with("struct ") => "a table",
            others => others,
        };
        return format!("{fault}expected {wanted}");
    }
    let mut names: Vec<&str> = words.split('`').skip(1).step_by(2).collect();
    let unknown = if names.is_empty() { "" } else { names.remove(0) };
    if matches!(path, [table, _] if table == "ai") {
        names.extend(Ai::OWN);
    }
    match nearest(unknown, &names) {
        Some(near) => format!("there is no such key; did you mean {near}?"),
        None => format!("there is no such key; there are: {}", names.join(", ")),
    }
}

fn line_at(text: &str, byte: usize) -> usize {
    text.get(..byte).unwrap_or_default().matches('\n').count() + 1
}

/// The line where the key at `path` is written, or the last key above it that is.
fn line_of(text: &str, path: &[String]) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let mut found = None;
    let mut table = document.get_ref();
    let mut keys = path.iter();
    while let Some(name) = keys.next() {
        let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == name.as_str()) else { break };
        found = Some(line_at(text, key.span().start));
        table = match value.get_ref() {
            DeValue::Table(inside) => inside,
            DeValue::Array(items) => {
                let item = keys.next().and_then(|place| items.get(place.parse::<usize>().ok()?));
                let Some(item) = item else { break };
                found = Some(line_at(text, item.span().start));
                let DeValue::Table(inside) = item.get_ref() else { break };
                inside
            }
            _ => break,
        };
    }
    found
}

fn set(table: &mut Table, keys: &[String], value: &str) -> Result<(), String> {
    let Some((last, folders)) = keys.split_last() else { return Err("it names no key".into()) };
    let mut table = table;
    for folder in folders {
        let entry = table.entry(folder.clone()).or_insert_with(|| Value::Table(Table::new()));
        table = entry.as_table_mut().ok_or_else(|| format!("{folder} is a value and has no keys"))?;
    }
    // Secrets are texts, also those that look like numbers.
    let small = last.to_lowercase();
    let is_secret = ["token", "key", "secret"].iter().any(|ending| small.ends_with(ending));
    if is_secret {
        table.insert(last.clone(), Value::String(value.to_owned()));
        return Ok(());
    }
    // Numbers, booleans and lists as TOML has them; anything else is a text.
    let parsed = format!("value = {value}").parse::<Table>().ok().and_then(|mut parsed| parsed.remove("value"));
    table.insert(last.clone(), parsed.unwrap_or_else(|| Value::String(value.to_owned())));
    Ok(())
}

/// Whether this is one origin (RFC 6454 §6.2). `*` would open a hub on loopback to every page that its person looks at, and `null`
/// is the origin of sandboxed frames of any site.
fn is_origin_of_a_page(origin: &str) -> bool {
    let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")).unwrap_or_default();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:[]".contains(&byte);
    !rest.is_empty() && rest.bytes().all(fits)
}

#[cfg(test)]
mod tests;
