//! Means of the machine that some tests need, and that not every machine has.

use std::{
    fmt,
    io::{self, Write},
};

/// The variable with the means that the machine has to give, with blanks between. `scripts/test` sets it to those that it finds by itself.
const MUST_RUN: &str = "BUILDSCALE_TESTS_MUST_RUN";

/// A means that a test needs. A test without it is skipped, unless `BUILDSCALE_TESTS_MUST_RUN` names the means: then the test fails, so that no test
/// passes for want of something that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// The privilege to mount a file system, `mounts`: that of root, also in a user namespace.
    Mounts,
    /// The kernel's confinement of files for one process, `landlock`.
    Landlock,
}

impl Means {
    /// What the test looked for. None, said on standard error, where the machine has no such means.
    ///
    /// # Panics
    /// When `BUILDSCALE_TESTS_MUST_RUN` names the means: with the means, and with the error.
    pub fn needed<T>(self, found: Result<T, impl fmt::Display>) -> Option<T> {
        let error = match found {
            Ok(found) => return Some(found),
            Err(error) => error,
        };
        let told = format!("this test takes {self}, which this process has not: {error}");
        assert!(!self.is_in(&std::env::var(MUST_RUN).unwrap_or_default()), "{told}; {MUST_RUN} asks for it");
        // A standard error that is closed is no fault of the test.
        drop(writeln!(io::stderr(), "SKIPPED: {told}"));
        None
    }

    /// Whether a value of the variable names it.
    fn is_in(self, must_run: &str) -> bool {
        must_run.split_whitespace().any(|name| name == self.name())
    }

    fn name(self) -> &'static str {
        match self {
            Self::Mounts => "mounts",
            Self::Landlock => "landlock",
        }
    }
}

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mounts => "the privilege to mount a file system",
            Self::Landlock => "Landlock",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_must_run_where_the_variable_names_its_means() {
        let must_run = |value: &str| [Means::Mounts, Means::Landlock].map(|means| means.is_in(value));
        assert_eq!(must_run(""), [false, false]);
        assert_eq!(must_run("landlock"), [false, true]);
        assert_eq!(must_run(" mounts  landlock "), [true, true]);
        assert_eq!(must_run("mounts-of-others"), [false, false]);
    }

    #[test]
    fn a_means_that_is_there_is_given() {
        assert_eq!(Means::Mounts.needed(Ok::<_, String>(7)), Some(7));
    }
}
