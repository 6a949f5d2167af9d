//! The bodies in a table that stand for bodies in blobs.

use crate::Damage;
use domain::Sha256;
use std::fmt;

/// The prefix of a reference. No JSON text begins with it; if another body does, it is spilled at any length, so that in the table this
/// mark always means a reference, and a body can never be mistaken for one.
pub(crate) const MARK: char = '\u{1}';
/// The ends of the body that an item of a page has instead of one that is lost.
const LOST: [(Damage, &str); 2] = [(Damage::Missing, "missing"), (Damage::Altered, "altered")];

/// A reference to a body in a blob: its digest and its length in bytes. In a page it may also say that the body is lost; no table keeps that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BodyReference {
    pub digest: Sha256,
    pub length: usize,
    pub lost: Option<Damage>,
}

impl BodyReference {
    /// The reference that a body is; none for any other body, a damaged reference among them.
    pub fn of(body: &str) -> Option<Self> {
        let (digest, rest) = body.strip_prefix(MARK)?.split_once('/')?;
        let (length, lost) = match rest.split_once('/') {
            None => (rest, None),
            Some((length, end)) => (length, Some(LOST.iter().find(|(_, name)| *name == end)?.0)),
        };
        Some(Self { digest: digest.parse().ok()?, length: length.parse().ok()?, lost })
    }
}

impl fmt::Display for BodyReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { digest, length, lost } = self;
        write!(f, "{MARK}{digest}/{length}")?;
        match LOST.iter().find(|(damage, _)| Some(*damage) == *lost) {
            Some((_, end)) => write!(f, "/{end}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_read_as_it_was_written_and_nothing_else_is_one() {
        let digest = Sha256::of(b"a body");
        for lost in [None, Some(Damage::Missing), Some(Damage::Altered)] {
            let reference = BodyReference { digest, length: 70_000, lost };
            assert_eq!(BodyReference::of(&reference.to_string()), Some(reference));
        }
        let whole = BodyReference { digest, length: 1, lost: None }.to_string();
        for other in ["", "{}", "\u{1}", &whole[1..], &format!("{whole}/"), &format!("{whole}/gone"), &whole[..9]] {
            assert_eq!(BodyReference::of(other), None, "{other:?}");
        }
    }
}
