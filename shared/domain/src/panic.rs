//! Panics in words.

use std::any::Any;

/// The most that is told of a panic, in bytes.
const MOST: usize = 1024;

/// The text of a panic, at most a KiB of it: a library that gives up on its input may quote all of it.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("a panic without a text");
    if text.len() <= MOST {
        return text.into();
    }
    let kept = text.get(..text.floor_char_boundary(MOST)).unwrap_or_default();
    format!("{kept}… ({} bytes)", text.len())
}

#[cfg(test)]
mod tests {
    use super::panic_text;

    #[test]
    fn a_panic_is_told_in_a_kibibyte() {
        assert_eq!(panic_text(&"short"), "short");
        assert_eq!(panic_text(&"short".to_owned()), "short");
        assert_eq!(panic_text(&1), "a panic without a text");
        let long = panic_text(&"ä".repeat(40_000));
        assert!(long.len() < 1100 && long.ends_with("ä… (80000 bytes)"), "{long}");
    }
}
