//! A `multipart/form-data` body (RFC 7578) that is in memory, within the limit of bodies: read, and made.

use domain::Error;

/// The longest head of a part, in bytes.
const MAX_HEAD: usize = 8 * 1024;
/// The most parts.
const MOST_PARTS: usize = 64;

/// A part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The name of the field.
    pub name: String,
    /// The name of the file, if it is one.
    pub file: Option<String>,
    /// Its content.
    pub content: &'a [u8],
}

/// The parts of a body with this `Content-Type`, at most 64.
///
/// # Errors
/// `INVALID_ARGUMENT` about `body`, with the fault, for one that is no form.
pub fn parts<'a>(kind: &str, body: &'a [u8]) -> Result<Vec<Part<'a>>, Error> {
    let boundary = parameter(kind, "boundary").filter(|boundary| (1..=70).contains(&boundary.len()));
    let boundary = boundary.ok_or_else(|| malformed("its type has no boundary"))?;
    // Each delimiter but the first one begins with the line end before it, which is no part of the content.
    let first = format!("--{boundary}").into_bytes();
    let delimiter = format!("\r\n--{boundary}").into_bytes();
    let mut at = find(body, &first, 0).ok_or_else(|| malformed("it has no boundary"))? + first.len();
    let mut all = Vec::new();
    loop {
        let rest = body.get(at..).unwrap_or_default();
        if rest.starts_with(b"--") {
            return Ok(all);
        }
        if all.len() == MOST_PARTS {
            return Err(malformed("it has too many parts"));
        }
        let begin = at + find(rest, b"\r\n", 0).ok_or_else(|| malformed("it breaks off"))?;
        // The head ends with an empty line; without any field, that is the line end of the boundary itself.
        let end = find(body, b"\r\n\r\n", begin).filter(|end| end - begin <= MAX_HEAD);
        let end = end.ok_or_else(|| malformed("a part has no head, or a long one"))?;
        let head = std::str::from_utf8(&body[begin..end]).map_err(|_| malformed("the head of a part is not UTF-8"))?;
        let content = end + 4;
        // The content may be empty: then the line end before the delimiter is that of the empty line.
        let after = find(body, &delimiter, content - 2).ok_or_else(|| malformed("it breaks off"))?;
        let disposition = head.split("\r\n").find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
        });
        let disposition = disposition.ok_or_else(|| malformed("a part has no name"))?;
        let name = parameter(disposition, "name").ok_or_else(|| malformed("a part has no name"))?;
        let content = &body[content.min(after)..after];
        all.push(Part { name, file: parameter(disposition, "filename"), content });
        at = after + delimiter.len();
    }
}

/// A body with these parts: its `Content-Type`, and its bytes. In names of fields and files signs that a quoted name cannot have become `_`.
pub fn form(parts: &[Part<'_>]) -> (String, Vec<u8>) {
    let is_free = |boundary: &String| parts.iter().all(|part| find(part.content, boundary.as_bytes(), 0).is_none());
    let boundary = (0..=u64::MAX).map(|number| format!("buildscale-{number}-x")).find(is_free).unwrap_or_default();
    let quoted = |name: &str| -> String {
        name.chars().map(|c| if matches!(c, '"' | '\\') || c.is_control() { '_' } else { c }).collect()
    };
    let mut body = Vec::new();
    for Part { name, file, content } in parts {
        let file = file.as_deref().map(|file| format!("; filename=\"{}\"", quoted(file))).unwrap_or_default();
        let head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"{file}\r\n\r\n", quoted(name));
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body)
}

/// A parameter of a header field, quoted or not.
fn parameter(value: &str, name: &str) -> Option<String> {
    let mut rest = value;
    loop {
        let (_, after) = rest.split_once(';')?;
        let (key, after) = after.split_once('=')?;
        let (found, after) = match after.trim_start().strip_prefix('"') {
            Some(quoted) => {
                let mut text = String::new();
                let mut characters = quoted.char_indices();
                let end = loop {
                    match characters.next()? {
                        (at, '"') => break at,
                        // Browsers write %22 for a quote; others escape it.
                        (_, '\\') if characters.as_str().starts_with('"') => {
                            text.extend(characters.next().map(|(_, c)| c))
                        }
                        (_, c) => text.push(c),
                    }
                };
                (text, &quoted[end + 1..])
            }
            None => {
                let end = after.find(';').unwrap_or(after.len());
                (after[..end].trim().to_owned(), &after[end..])
            }
        };
        if key.trim().eq_ignore_ascii_case(name) {
            return Some(found);
        }
        rest = after;
    }
}

fn find(body: &[u8], sought: &[u8], from: usize) -> Option<usize> {
    let first = *sought.first()?;
    let mut at = from;
    loop {
        at += body.get(at..)?.iter().position(|byte| *byte == first)?;
        if body[at..].starts_with(sought) {
            return Some(at);
        }
        at += 1;
    }
}

fn malformed(why: &str) -> Error {
    Error::invalid("body", format!("the body is no multipart/form-data: {why}"))
        .hint("let your HTTP client make the form")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const KIND: &str = "multipart/form-data; boundary=\"x-y\"";

    fn of(body: &str) -> Result<Vec<Part<'_>>, Error> {
        parts(KIND, body.as_bytes())
    }

    #[test]
    fn fields_and_files_are_read_with_their_bytes_as_they_are() {
        let body = "preamble\r\n--x-y\r\nContent-Disposition: form-data; name=\"input\"\r\n\r\nHello\r\nyou\r\n\
            --x-y\r\ncontent-disposition: form-data; name=attachments; filename=\"a \\\"b\\\";c.txt\"\r\nContent-Type: text/plain\r\n\r\n\
            --x\r\n--x-\r\n\r\n--x-y\r\nContent-Disposition: form-data; name=\"empty\"\r\n\r\n\r\n--x-y--\r\nepilogue";
        let read = of(body).unwrap();
        let told: Vec<_> = read.iter().map(|part| (part.name.as_str(), part.file.as_deref(), part.content)).collect();
        assert_eq!(
            told,
            [
                ("input", None, b"Hello\r\nyou".as_slice()),
                ("attachments", Some("a \"b\";c.txt"), b"--x\r\n--x-\r\n".as_slice()),
                ("empty", None, b"".as_slice()),
            ]
        );
        assert_eq!(of("--x-y--").unwrap(), []);
    }

    #[test]
    fn a_form_that_is_made_is_read_with_its_bytes_as_they_are() {
        let part = |name: &str, file: Option<&str>, content: &'static [u8]| Part {
            name: name.into(),
            file: file.map(str::to_owned),
            content,
        };
        let made = [
            part("input", None, b"--buildscale-0-x\r\n".as_slice()),
            part("attachments", Some("a \"b\\\n.png"), b"\r\n\x00\xff--buildscale-1-x"),
            part("empty", None, b""),
        ];
        let (kind, body) = form(&made);
        assert_eq!(kind, "multipart/form-data; boundary=buildscale-2-x");
        let mut expected = made.to_vec();
        expected[1].file = Some("a _b__.png".into());
        assert_eq!(parts(&kind, &body).unwrap(), expected);
        let (kind, body) = form(&[]);
        assert_eq!(parts(&kind, &body).unwrap(), []);
    }

    #[test]
    fn bodies_that_are_no_forms_are_refused_without_a_panic() {
        let whole = "--x-y\r\nContent-Disposition: form-data; name=\"input\"\r\n\r\nHello\r\n--x-y--";
        for end in 0..whole.len() - 2 {
            assert!(of(&whole[..end]).is_err(), "{end}");
        }
        for body in
            ["", "--x-y", "--x-y\r\n\r\n\r\n--x-y--", "--x-y\r\n\r\n--x-y--", "--x-y\r\nX: y\r\n\r\n\r\n--x-y--"]
        {
            assert!(of(body).is_err(), "{body:?}");
        }
        let many = "--x-y\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n".repeat(MOST_PARTS + 1) + "--x-y--";
        assert!(of(&many).is_err());
        let head = format!(
            "--x-y\r\nContent-Disposition: form-data; name=a\r\nX: {}\r\n\r\n\r\n--x-y--",
            "x".repeat(MAX_HEAD)
        );
        assert!(of(&head).is_err());
        for kind in
            ["multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=\"", "; boundary"]
        {
            assert!(parts(kind, b"--x").is_err(), "{kind}");
        }
    }
}
