//! The kinds of entities, and the places of their files.
//!
//! ```text
//!   /projects/atlas/README.md               the project atlas
//!   /projects/atlas/tasks/order-paper.md    a task of it
//!   /users/<id>/brain-dumps/monday.md       a brain dump of a person, in their home
//! ```

use domain::{Error, FilePath, UserId};

/// The folder of all projects.
const PROJECTS: &str = "/projects";
/// The file that a project is.
const PROJECT_FILE: &str = "README.md";
/// The longest name of a new file, in characters.
const MAX_SLUG: usize = 60;

/// The kinds of entities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntityKind {
    /// A project: the folder with all that belongs to it.
    Project,
    /// A piece of work.
    Task,
    /// A text that is kept.
    Note,
    /// Thoughts that are not sorted yet.
    BrainDump,
    /// An event of a calendar.
    Event,
    /// A document that the work is about.
    Document,
}

impl EntityKind {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Project, Self::Task, Self::Note, Self::BrainDump, Self::Event, Self::Document];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Task => "task",
            Self::Note => "note",
            Self::BrainDump => "brain_dump",
            Self::Event => "event",
            Self::Document => "document",
        }
    }

    /// Its name in sentences.
    pub fn words(self) -> &'static str {
        match self {
            Self::BrainDump => "brain dump",
            other => other.name(),
        }
    }

    /// The folder of such files in a project, or in a home; none for projects.
    pub fn folder(self) -> Option<&'static str> {
        match self {
            Self::Project => None,
            Self::Task => Some("tasks"),
            Self::Note => Some("notes"),
            Self::BrainDump => Some("brain-dumps"),
            Self::Event => Some("calendar"),
            Self::Document => Some("documents"),
        }
    }

    /// The field that has the name of an entity.
    pub fn title(self) -> &'static str {
        if self == Self::Project { "name" } else { "title" }
    }

    /// The kind of the file at a path; none for a path that is the place of no kind.
    pub fn of(path: &FilePath) -> Option<Self> {
        let names: Vec<&str> = path.names().collect();
        match names.as_slice() {
            ["projects", _, PROJECT_FILE] => Some(Self::Project),
            ["projects" | "users", _, folder, name] if name.ends_with(".md") => {
                Self::ALL.into_iter().find(|kind| kind.folder() == Some(folder))
            }
            _ => None,
        }
    }

    /// The path of a file of this kind, checked.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` about `path` for a text that is no path, or the place of another kind.
    pub fn at(self, path: &str) -> Result<FilePath, Error> {
        let parsed = FilePath::parse(path).map_err(|error| Error::from(error).detail("field", "path"))?;
        // The folder of a project means the project.
        let parsed = match (self, parsed.names().count()) {
            (Self::Project, 2) => parsed.join(PROJECT_FILE)?,
            _ => parsed,
        };
        if Self::of(&parsed) == Some(self) {
            return Ok(parsed);
        }
        let place = match self.folder() {
            None => format!("{PROJECTS}/NAME/{PROJECT_FILE}"),
            Some(folder) => format!("{PROJECTS}/NAME/{folder}/NAME.md"),
        };
        let message = format!("{parsed} is no {}: their files are such as {place}", self.words());
        Err(Error::invalid("path", message).hint("take the path from a list"))
    }
}

/// The folder that entities belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A project, by its folder.
    Project(FilePath),
    /// The home of a person.
    Home(UserId),
}

impl Scope {
    /// The project of this name, or of this folder.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` about `project` for a text that can be neither.
    pub fn project(text: &str) -> Result<Self, Error> {
        let invalid = |message: String| {
            Error::invalid("project", message).hint("the name of a folder below /projects, as search_projects tells it")
        };
        let name = text.trim().strip_prefix(PROJECTS).map_or(text.trim(), |rest| rest.trim_matches('/'));
        let folder = FilePath::parse(PROJECTS)?.join(name).map_err(|error| invalid(error.to_string()))?;
        match folder.names().count() {
            2 => Ok(Self::Project(folder)),
            _ => Err(invalid(format!("{text:?} is no project"))),
        }
    }

    /// Its folder.
    ///
    /// # Errors
    /// None in practice: the path of an id is valid.
    pub fn folder(&self) -> Result<FilePath, Error> {
        match self {
            Self::Project(folder) => Ok(folder.clone()),
            Self::Home(user) => Ok(FilePath::parse(&format!("/users/{user}"))?),
        }
    }

    /// The folder of entities of a kind in it.
    ///
    /// # Errors
    /// As [`Scope::folder`].
    pub fn folder_of(&self, kind: EntityKind) -> Result<FilePath, Error> {
        let folder = self.folder()?;
        Ok(match kind.folder() {
            None => folder,
            Some(name) => folder.join(name)?,
        })
    }

    /// The path of a new file for an entity with this title.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` about the title when it has no letter and no digit.
    pub fn place(&self, kind: EntityKind, title: &str) -> Result<FilePath, Error> {
        if kind == EntityKind::Project {
            return Ok(self.folder()?.join(PROJECT_FILE)?);
        }
        Ok(self.folder_of(kind)?.join(&format!("{}.md", slug(kind.title(), title)?))?)
    }
}

/// The path of the project of this name, which is a new one.
///
/// # Errors
/// `INVALID_ARGUMENT` about the name when it has no letter and no digit.
pub fn new_project(name: &str) -> Result<Scope, Error> {
    Ok(Scope::Project(FilePath::parse(PROJECTS)?.join(&slug("name", name)?)?))
}

/// A title as the name of a file: its letters and digits in lower case, with `-` between words.
///
/// # Errors
/// `INVALID_ARGUMENT` about `field` when there is neither a letter nor a digit.
pub fn slug(field: &str, title: &str) -> Result<String, Error> {
    match words_of(title, MAX_SLUG).as_str() {
        "" => Err(Error::invalid(field, format!("{title:?} has neither a letter nor a digit"))
            .hint("give it a letter or a digit: its file is named after it")),
        slug => Ok(slug.to_owned()),
    }
}

/// The first `most` characters of a text as a name: its letters and digits in lower case, with `-` between words. Empty where there are none.
pub fn words_of(title: &str, most: usize) -> String {
    let mut slug = String::new();
    for character in title.chars().flat_map(char::to_lowercase) {
        if character.is_alphanumeric() {
            slug.push(character);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if slug.chars().count() >= most {
            break;
        }
    }
    slug.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn path(text: &str) -> FilePath {
        FilePath::parse(text).unwrap()
    }

    #[test]
    fn the_place_of_a_file_tells_its_kind_and_a_new_file_has_the_place_of_its_kind() {
        let atlas = Scope::project("atlas").unwrap();
        assert_eq!(Scope::project("/projects/atlas").unwrap(), atlas);
        for kind in EntityKind::ALL {
            let place = atlas.place(kind, "Order paper, A4!").unwrap();
            assert_eq!(EntityKind::of(&place), Some(kind), "{place}");
            assert_eq!(kind.at(place.as_str()).unwrap(), place);
        }
        assert_eq!(
            atlas.place(EntityKind::Task, "Order paper, A4!").unwrap(),
            path("/projects/atlas/tasks/order-paper-a4.md")
        );
        assert_eq!(EntityKind::Project.at("/projects/atlas").unwrap(), path("/projects/atlas/README.md"));
        for other in
            ["/projects/atlas/src/tasks/a.md", "/projects/atlas/tasks/a.txt", "/data/tasks/a.md", "/tasks/a.md"]
        {
            assert_eq!(EntityKind::of(&path(other)), None, "{other}");
            assert!(EntityKind::Task.at(other).is_err(), "{other}");
        }
    }

    #[test]
    fn titles_in_every_script_are_names_and_titles_without_a_letter_are_none() {
        assert_eq!(slug("title", "  Überblick / 買い物  ").unwrap(), "überblick-買い物");
        assert_eq!(slug("title", &"ab ".repeat(100)).unwrap().chars().count(), 59);
        assert!(slug("title", "…!").is_err());
        for wrong in ["", "/", "../x", "a/b", "/data/x", "/projects"] {
            assert!(Scope::project(wrong).is_err(), "{wrong:?}");
        }
    }
}
