//! Texts of issuers that are taken for credentials.

/// The shortest run of letters and digits that makes a text a credential, in bytes.
const RUN: usize = 12;

/// Whether a text that an issuer has chosen may be taken out of everything that this host writes down, in every workspace: it looks like a credential, and
/// not like a word, a path, a digest or an id that somebody else uses.
pub(crate) fn is_credential(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._~+/=:|".contains(c);
    let is_name = text.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    // Names and paths of people have short words between their signs.
    let is_long = |run: &str| run.len() >= RUN && run.contains(|c: char| c.is_ascii_digit());
    (20..=4_096).contains(&text.len())
        && text.chars().all(fits)
        && text.split(|c: char| !c.is_ascii_alphanumeric()).any(is_long)
        && !is_name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_has_no_words_and_no_ids_of_others_taken_out_of_what_is_written() {
        for token in ["access-019bf537-f228-7cd3-aa1c-3da8af302e12", "1//0gQxWvN3bTz7kLmAa-CgYIARAAGBASNwF"] {
            assert!(is_credential(token), "{token}");
        }
        let long = "x1".repeat(3_000);
        for word in [
            "function",
            "internationalization",
            "019bf537-f228-7cd3-aa1c-3da8af302e12",
            "\"turn_id\":\"019bf537-f228",
            "/projects/apollo11/src/main.rs",
            "https://api.example.com/v2/invoices",
            "projects/apollo-2026/release.notes",
            &long,
        ] {
            assert!(!is_credential(word), "{word}");
        }
    }
}
