//! How long a value is as JSON.

use serde::Serialize;
use std::io;

/// The length of a value as JSON, in bytes, without making the text. If a value cannot be serialized, the length until the error.
pub fn json_length(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting does not fail; a value that cannot be serialized fails when it is stored.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

#[cfg(test)]
mod tests {
    use super::json_length;
    use serde_json::json;

    #[test]
    fn a_value_is_as_long_as_its_text() {
        for value in [json!(null), json!({ "a": [1, 2.5, "ö\n"] }), json!("x".repeat(1000))] {
            assert_eq!(json_length(&value), value.to_string().len(), "{value}");
        }
    }
}
