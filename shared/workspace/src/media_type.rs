//! The media types of contents, by their beginning.

/// The beginnings of the contents that models take, and their types.
const KINDS: [(&[u8], &str); 8] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
];
/// The types of contents in a RIFF container, by their form.
const FORMS: [(&[u8], &str); 2] = [(b"WEBP", "image/webp"), (b"WAVE", "audio/wav")];

/// The media type of a content that models may take, by its beginning; the name of a file says nothing about it.
pub fn media_type(content: &[u8]) -> Option<&'static str> {
    if content.starts_with(b"RIFF") {
        let form = content.get(8..12)?;
        return FORMS.iter().find(|(known, _)| *known == form).map(|(_, kind)| *kind);
    }
    KINDS.iter().find(|(start, _)| content.starts_with(start)).map(|(_, kind)| *kind)
}

/// The media type of this name, if contents have it by their beginning.
pub fn known_media_type(name: &str) -> Option<&'static str> {
    KINDS.iter().chain(&FORMS).map(|(_, known)| *known).find(|known| *known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_content_tells_its_type() {
        for (content, kind) in [
            (&b"\x89PNG\r\n\x1a\nrest"[..], Some("image/png")),
            (b"RIFF1234WEBPVP8 ", Some("image/webp")),
            (b"RIFF1234WAVEfmt ", Some("audio/wav")),
            (b"RIFF1234AVI LIST", None),
            (b"RIFF", None),
            (b"%PDF-1.7", Some("application/pdf")),
            (b"plain", None),
        ] {
            assert_eq!(media_type(content), kind, "{content:?}");
        }
    }
}
