//! Names of attachments, which strangers chose, as names that a file can have on every system.

use ports::cut_name;

/// Names that devices have on Windows, with every end.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];

/// The safe name nearest to `name`: its last part, without characters that a system forbids or does not show. `attachment-<number>` when nothing is
/// left of it.
pub(crate) fn safe(name: &str, number: usize) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_forbidden = |c: char| matches!(c, '<' | '>' | ':' | '"' | '|' | '?' | '*');
    let shown: String = domain::nearest_new_name(last).replace(is_forbidden, "_");
    // A dot in front hides a file; Windows takes dots and spaces off the end.
    let is_edge = |c: char| c == '.' || c.is_whitespace();
    let name = numbered(shown.trim_matches(is_edge), 1);
    match name.trim_matches(is_edge) {
        "" => format!("attachment-{number}"),
        name if is_device(name) => format!("_{name}"),
        name => name.to_owned(),
    }
}

/// The name of another file with this name, such as `a (2).pdf`; the name itself for 1, cut to its greatest length.
pub(crate) fn numbered(name: &str, number: usize) -> String {
    let (stem, ending) = cut_name(name);
    if number == 1 { format!("{stem}{ending}") } else { format!("{stem} ({number}){ending}") }
}

/// Whether Windows takes a name for that of a device, such as `con.txt` or `COM1`.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_lowercase();
    let mut end = stem.chars();
    let is_port = matches!(end.next_back(), Some('0'..='9' | '¹' | '²' | '³')) && matches!(end.as_str(), "com" | "lpt");
    is_port || DEVICES.contains(&stem.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ports::MAX_ATTACHMENT_NAME;

    #[test]
    fn names_of_strangers_become_names_of_files() {
        let cases = [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", "passwd"),
            ("C:\\docs\\a: b?.txt", "a_ b_.txt"),
            ("..", "attachment-7"),
            ("", "attachment-7"),
            ("a/", "attachment-7"),
            (".gitattributes", "gitattributes"),
            ("a.txt. ", "a.txt"),
            ("a\u{0}\nb\u{202e}fdp.exe", "abfdp.exe"),
            ("u\u{308}ber.txt", "über.txt"),
            ("con", "_con"),
            ("Aux.tar.gz", "_Aux.tar.gz"),
            ("COM1.txt", "_COM1.txt"),
            ("LPT².txt", "_LPT².txt"),
            ("company.txt", "company.txt"),
        ];
        for (name, expected) in cases {
            assert_eq!(safe(name, 7), expected, "{name:?}");
        }
    }

    #[test]
    fn a_long_name_is_cut_before_its_end_and_a_number_stands_there_too() {
        let long = safe(&format!("{}.pdf", "ü".repeat(200)), 1);
        assert!(long.len() <= MAX_ATTACHMENT_NAME && long.ends_with("ü.pdf"), "{long}");
        assert_eq!(numbered("a.pdf", 2), "a (2).pdf");
        assert_eq!(numbered("README", 3), "README (3)");
        let strange = safe(&format!("a.{}", "b".repeat(300)), 1);
        assert!(strange.len() <= MAX_ATTACHMENT_NAME, "{strange}");
    }
}
