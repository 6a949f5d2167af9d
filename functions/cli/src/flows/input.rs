//! The input of a task: JSON when it parses as such, a text otherwise.

use crate::failure::CliError;
use serde_json::Value;
use std::io::{self, Read};

/// The input that `argument` means: JSON, `@FILE`, or `-` for standard input. The second tells whether that is used up.
pub(super) fn read(argument: &str) -> Result<(Value, bool), CliError> {
    if argument == "-" {
        let mut text = String::new();
        io::stdin().lock().read_to_string(&mut text)?;
        return Ok((parse(&text)?, true));
    }
    let Some(path) = argument.strip_prefix('@') else { return Ok((parse(argument)?, false)) };
    let text = std::fs::read_to_string(path).map_err(|source| CliError::Local { path: path.to_owned(), source })?;
    Ok((parse(&text)?, false))
}

/// JSON, else a text; but a text that begins like JSON is taken as a slip and refused.
pub(super) fn parse(text: &str) -> Result<Value, CliError> {
    match serde_json::from_str(text) {
        Ok(value) => match domain::exact_numbers::first_inexact(text) {
            None => Ok(value),
            Some(number) => Err(CliError::Usage(format!(
                "the number {number} cannot be kept exactly: send it as a text, in quotes"
            ))),
        },
        Err(error) if text.trim_start().starts_with(['{', '[', '"']) => {
            Err(CliError::Usage(format!("the input begins like JSON, but is not: {error}")))
        }
        Err(_) => Ok(Value::String(text.trim_end_matches(['\n', '\r']).to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_where_it_is_and_text_where_it_is_not() -> Result<(), CliError> {
        assert_eq!(parse(r#"{"a": [1]}"#)?, json!({ "a": [1] }));
        assert_eq!(parse("12")?, json!(12));
        assert_eq!(parse("write a haiku\n")?, json!("write a haiku"));
        assert_eq!(parse("")?, json!(""));
        assert!(matches!(parse("{a: 1}"), Err(CliError::Usage(_))));
        assert!(matches!(parse("[12345678901234567890123]"), Err(CliError::Usage(_))));
        assert!(matches!(read("@/no/such/file"), Err(CliError::Local { .. })));
        Ok(())
    }
}
