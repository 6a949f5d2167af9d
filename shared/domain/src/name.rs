//! Names that people read, such as those of workspaces, keys, webhooks, schedules and chats.

use crate::{Error, FilePath, path::is_invisible};

/// The emoji that end with tags: the flags of England, Scotland and Wales (Unicode emoji data, `RGI_Emoji_Tag_Sequence`). Other tags are text that
/// nobody sees.
const FLAGS: [&str; 3] = [
    "\u{1F3F4}\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
    "\u{1F3F4}\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
    "\u{1F3F4}\u{E0067}\u{E0062}\u{E0077}\u{E006C}\u{E0073}\u{E007F}",
];

/// A name that a person gives, without the white space around it: 1 to `longest` characters, each of which is shown and leaves the
/// display order of the others as it is. So no name looks like another one by characters that nobody sees.
///
/// # Errors
/// `INVALID_ARGUMENT` about `field`.
pub fn checked_name(field: &str, name: &str, longest: usize) -> Result<String, Error> {
    let name = name.trim();
    if !(1..=longest).contains(&name.chars().count()) {
        return Err(Error::invalid(field, format!("a {field} has 1 to {longest} characters on one line"))
            .hint("choose one within that length"));
    }
    check_shown(field, name)?;
    Ok(name.to_owned())
}

/// Refuses a text with control characters, or with characters that are not shown or that change the display order of others: the rule for
/// new names of files ([`crate::check_new_name`]), without that of the normalization form. The emoji of three flags end with tags and are shown.
///
/// # Errors
/// `INVALID_ARGUMENT` about `field`, with the character.
pub fn check_shown(field: &str, text: &str) -> Result<(), Error> {
    let odd = symbols(text).find(|symbol| sanitize(symbol) != Some(*symbol));
    let Some(c) = odd.and_then(|symbol| symbol.chars().next()) else { return Ok(()) };
    let why = if c.is_control() { "which is a control character" } else { "which is not shown or turns others around" };
    let message = format!("the {field} has the character U+{:04X} in it, {why}", u32::from(c));
    Err(Error::invalid(field, message).hint("leave that character out"))
}

/// The text nearest to `text` that [`check_shown`] takes: white space that is a control character becomes a space, and other characters that
/// are refused are left out.
pub fn nearest_name(text: &str) -> String {
    symbols(text).filter_map(sanitize).collect()
}

/// The characters of a text one by one, and each emoji of [`FLAGS`] as a whole.
fn symbols(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let flag = FLAGS.into_iter().find(|flag| rest.starts_with(flag));
        let (symbol, after) = rest.split_at_checked(flag.map_or(first.len_utf8(), str::len))?;
        rest = after;
        Some(symbol)
    })
}

/// The same symbol as a name can have it; none for one that a name cannot have.
fn sanitize(symbol: &str) -> Option<&str> {
    match symbol.chars().next()? {
        _ if FLAGS.contains(&symbol) => Some(symbol),
        c if c.is_control() => c.is_whitespace().then_some(" "),
        c if is_invisible(c) => None,
        _ => Some(symbol),
    }
}

/// Whether a text can be the name of a flow: that of a folder that is no hidden one.
pub fn is_flow_name(name: &str) -> bool {
    is_folder_name(name) && !name.starts_with('.') && !name.trim().is_empty()
}

/// Whether a text can be the name of one folder, as personas are named.
pub fn is_folder_name(name: &str) -> bool {
    !name.contains('/') && FilePath::parse(&format!("/{name}")).is_ok_and(|path| !path.is_root())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_people_see_have_no_character_that_is_not_shown() {
        assert_eq!(checked_name("name", " Übersicht 報告 می‌خواهم 👩‍🚀 ", 40).as_deref(), Ok("Übersicht 報告 می‌خواهم 👩‍🚀"));
        assert_eq!(checked_name("name", "u\u{308}ber", 40).as_deref(), Ok("u\u{308}ber"));
        let odd = ["a\u{202A}b", "a\u{202E}b", "a\u{2066}b", "a\u{2069}b", "a\u{200B}b", "a\u{2028}b", "a\0b", "a\nb"];
        for odd in odd {
            let error = checked_name("title", odd, 40).err();
            let error = error.filter(|error| error.details["field"] == "title" && error.message.contains("U+"));
            assert!(error.is_some(), "{odd:?}");
            assert_eq!(
                checked_name("title", &nearest_name(odd), 40).map(|name| name.replace(' ', "")),
                Ok("ab".into())
            );
        }
        for length in ["", " \t", &"x".repeat(41)] {
            assert!(
                checked_name("name", length, 40).is_err_and(|error| error.details["field"] == "name"),
                "{length:?}"
            );
        }
    }

    #[test]
    fn a_flag_that_ends_with_tags_is_shown_and_other_tags_are_not() {
        for flag in FLAGS {
            let trip = format!("{flag} Trip {flag}{flag} ❤\u{FE0F}");
            assert_eq!(checked_name("title", &trip, 40).as_deref(), Ok(trip.as_str()));
            assert_eq!(nearest_name(&trip), trip);
        }
        let hidden = "\u{1F3F4}\u{E0068}\u{E0069}\u{E007F} \u{1F3F4}\u{E0067}\u{E0062}";
        assert!(checked_name("title", hidden, 40).is_err());
        assert_eq!(nearest_name(hidden), "\u{1F3F4} \u{1F3F4}");
    }

    #[test]
    fn a_folder_is_named_by_one_part_of_a_path() {
        assert!(["review", "報告", "a b", "a.b"].into_iter().all(is_folder_name));
        let long = "x".repeat(256);
        assert!(!["", ".", "..", "a/b", "/a", "a/", "a\nb", &long].into_iter().any(is_folder_name));
        assert!(is_flow_name("review") && ![" ", ".git", "a/b"].into_iter().any(is_flow_name));
    }
}
