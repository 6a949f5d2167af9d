//! A turn as a client sends it with files.

use crate::{
    IncomingFile,
    multipart::{self, Part},
};

/// The form of a turn with these words and files: its `Content-Type`, and its bytes.
pub fn form(input: &str, files: &[IncomingFile]) -> (String, Vec<u8>) {
    let words = Part { name: "input".into(), file: None, content: input.as_bytes() };
    let attached = files.iter().map(|file| Part {
        name: "attachments".into(),
        file: Some(file.name.clone()),
        content: &file.content,
    });
    multipart::form(&[words].into_iter().chain(attached).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_with_files_is_a_form_with_all_of_them() {
        let file = |name: &str, content: &[u8]| IncomingFile { name: name.into(), content: content.to_vec() };
        let (kind, body) = form("Compare", &[file("a.png", b"hi"), file("b.png", b"")]);
        let read = multipart::parts(&kind, &body).unwrap_or_default();
        let told: Vec<_> = read.iter().map(|part| (part.name.as_str(), part.file.as_deref(), part.content)).collect();
        let expected = [
            ("input", None, b"Compare".as_slice()),
            ("attachments", Some("a.png"), b"hi".as_slice()),
            ("attachments", Some("b.png"), b"".as_slice()),
        ];
        assert_eq!(told, expected);
    }
}
