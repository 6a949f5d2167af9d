//! The declaration of a calendar elsewhere: a file in the folder `calendars` of a home, `/users/<id>/calendars/NAME.yaml`.

use domain::{Error, FilePath};
use organizer::Scope;
use serde::Deserialize;
use workspace::{CALENDAR_ENDING, CALENDARS};

/// The longest declaration, in bytes.
pub(crate) const MAX_TEXT: u64 = 16 * 1024;
/// The ending of the state beside a declaration.
const STATE: &str = ".sync.json";

/// `[calendars]`: calendars elsewhere that people connect.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CalendarsConfig {
    /// Whether their servers may be in private networks and on this machine.
    pub allow_private: bool,
}

/// A connected calendar.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Connection {
    /// A server that speaks CalDAV.
    Caldav {
        /// The address of the calendar, or of the server that has it.
        url: String,
        /// The name of the user.
        user: String,
        /// The password, as a secret by reference: `${secret:NAME}`.
        password: String,
        /// The name of the calendar, where the address is not its own and there are several.
        #[serde(default)]
        calendar: Option<String>,
        /// The project whose events they are; the person's own when none.
        #[serde(default)]
        project: Option<String>,
        /// Whether new events of the workspace go there.
        #[serde(default = "yes")]
        new_events: bool,
    },
    /// Google Calendar.
    Google {
        /// The calendar, by its id.
        #[serde(default = "primary")]
        calendar: String,
        /// The id of the OAuth client.
        client_id: String,
        /// The secret of the OAuth client, as a secret by reference, where it has one.
        #[serde(default)]
        client_secret: Option<String>,
        /// The refresh token, as a secret by reference.
        refresh_token: String,
        /// The address of the API.
        #[serde(default = "google")]
        url: String,
        /// The address that gives access tokens.
        #[serde(default = "google_token")]
        token_url: String,
        /// The project whose events they are; the person's own when none.
        #[serde(default)]
        project: Option<String>,
        /// Whether new events of the workspace go there.
        #[serde(default = "yes")]
        new_events: bool,
    },
}

fn yes() -> bool {
    true
}

fn primary() -> String {
    "primary".into()
}

/// The API of Google Calendar.
pub(crate) const GOOGLE: &str = "https://www.googleapis.com/calendar/v3";

fn google() -> String {
    GOOGLE.into()
}

fn google_token() -> String {
    "https://oauth2.googleapis.com/token".into()
}

impl Connection {
    /// Reads a declaration.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a text that is none.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let connection: Self = serde_saphyr::from_str(text).map_err(|error| {
            let why: String = error.without_snippet().to_string().chars().take(300).collect();
            Error::invalid("calendar", format!("the file declares no calendar: {why}")).hint(
                "it has kind: caldav with url, user and password, or kind: google with client_id and refresh_token",
            )
        })?;
        if connection.secrets().iter().any(|text| !text.contains("${")) {
            return Err(Error::invalid("calendar", "a password or a token stands in the file itself")
                .hint("keep it as a secret of the server, and write ${secret:NAME}"));
        }
        Ok(connection)
    }

    fn secrets(&self) -> Vec<&str> {
        match self {
            Self::Caldav { password, .. } => vec![password],
            Self::Google { refresh_token, client_secret, .. } => {
                [Some(refresh_token.as_str()), client_secret.as_deref()].into_iter().flatten().collect()
            }
        }
    }

    /// The project whose events they are, or the home of the person.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a text that is no project.
    pub fn scope(&self, home: Scope) -> Result<Scope, Error> {
        let (Self::Caldav { project, .. } | Self::Google { project, .. }) = self;
        project.as_deref().map_or(Ok(home), Scope::project)
    }

    /// Whether new events of the workspace go there.
    pub fn takes_new(&self) -> bool {
        let (Self::Caldav { new_events, .. } | Self::Google { new_events, .. }) = self;
        *new_events
    }

    /// The calendar and the folder that it is of, so that another one under the same name begins anew.
    pub fn identity(&self) -> String {
        match self {
            Self::Caldav { url, user, calendar, project, .. } => {
                let (calendar, project) =
                    (calendar.as_deref().unwrap_or_default(), project.as_deref().unwrap_or("home"));
                format!("caldav {url} {user} {calendar} {project}")
            }
            Self::Google { url, client_id, calendar, project, .. } => {
                format!("google {url} {client_id} {calendar} {}", project.as_deref().unwrap_or("home"))
            }
        }
    }
}

/// Whether this is the place of a declaration: directly in the folder of calendars of a home.
pub fn is_place(path: &FilePath) -> bool {
    let names: Vec<&str> = path.names().collect();
    matches!(names.as_slice(), ["users", _, CALENDARS, name] if name.ends_with(CALENDAR_ENDING))
}

/// The state of a declaration.
///
/// # Errors
/// None in practice: the path beside a path is valid.
pub fn state_of(path: &FilePath) -> Result<FilePath, Error> {
    let folder = path.parent().unwrap_or_else(FilePath::root);
    Ok(folder.join(&format!("{}{STATE}", path.name().trim_end_matches(CALENDAR_ENDING)))?)
}

/// Whether a file is the state of a declaration.
pub fn is_state(path: &FilePath) -> bool {
    path.name().ends_with(STATE)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use domain::Code;

    #[test]
    fn a_declaration_has_its_secrets_by_reference() {
        let good = "kind: caldav\nurl: https://dav.example.org/ada/\nuser: ada\npassword: ${secret:dav}\n";
        let connection = Connection::parse(good).unwrap();
        assert!(connection.takes_new() && connection.identity().starts_with("caldav https://dav.example.org/ada/ ada"));
        let google = Connection::parse("kind: google\nclient_id: a\nrefresh_token: ${secret:g}\n").unwrap();
        let Connection::Google { calendar, url, .. } = google else { panic!() };
        assert_eq!((calendar.as_str(), url.as_str()), ("primary", "https://www.googleapis.com/calendar/v3"));
        for wrong in
            ["", "kind: exchange", "kind: caldav\nurl: x\nuser: a\n", &good.replace("${secret:dav}", "hunter2")]
        {
            let error = Connection::parse(wrong).unwrap_err();
            assert_eq!(error.code, Code::InvalidArgument);
            assert!(!error.message.contains("hunter2"), "{}", error.message);
        }
    }

    #[test]
    fn declarations_are_in_homes_and_their_states_beside_them() {
        let path = |text: &str| FilePath::parse(text).unwrap();
        assert!(is_place(&path("/users/1/calendars/work.yaml")));
        for other in ["/users/1/calendars/work.sync.json", "/projects/a/calendars/work.yaml", "/users/1/work.yaml"] {
            assert!(!is_place(&path(other)), "{other}");
        }
        let state = state_of(&path("/users/1/calendars/work.yaml")).unwrap();
        assert_eq!(state, path("/users/1/calendars/work.sync.json"));
        assert!(is_state(&state));
    }
}
