//! The answers to interrupts (`command.resume`), in the forms that clients send.

use domain::{Code, Error};
use serde_json::{Value, json};
use uuid::Uuid;

/// An answer to an interrupt.
#[derive(Clone, Debug, PartialEq)]
pub enum Resumed {
    /// A yes or a no to a request for permission.
    Decision {
        /// Whether it is a yes.
        approved: bool,
        /// Why it is a no.
        reason: Option<String>,
    },
    /// Anything else: answers to questions, or a yes or a no in our own forms.
    Given(Value),
}

/// Reads the answer to the interrupt with the id `open`. It may stand alone, or by the id of the interrupt: then it answers no other one, however often it is sent.
///
/// # Errors
/// `INVALID_ARGUMENT` for a decision that cannot be honoured; `CONFLICT` for answers to another interrupt.
pub fn resumed(value: &Value, open: &str) -> Result<Resumed, Error> {
    if let Some(fields) = value.as_object() {
        if let Some(answer) = fields.get(open) {
            if fields.len() > 1 {
                return Err(Error::invalid("command", "a thread has one interrupt at a time, and so has its answer"));
            }
            return alone(answer);
        }
        // All interrupts have UUIDs, and no question has one for its name.
        if !fields.is_empty() && fields.keys().all(|key| Uuid::try_parse(key).is_ok()) {
            return Err(Error::new(Code::Conflict, "this interrupt is not open")
                .detail("field", "command")
                .hint("the thread's interrupts list the one that is"));
        }
    }
    alone(value)
}

fn alone(value: &Value) -> Result<Resumed, Error> {
    let one = match (value.get("decisions").and_then(Value::as_array), value) {
        (Some(decisions), _) => decisions,
        (None, Value::Array(list)) if list.iter().all(|entry| entry["type"].is_string()) => list,
        _ => return Ok(Resumed::Given(value.clone())),
    };
    let [decision] = &one[..] else {
        return Err(Error::invalid("command", "an interrupt asks for one decision"));
    };
    let words = [&decision["message"], &decision["args"]].into_iter().find_map(Value::as_str).map(str::to_owned);
    match decision["type"].as_str().unwrap_or_default() {
        "approve" | "accept" => Ok(Resumed::Decision { approved: true, reason: None }),
        "reject" | "ignore" => Ok(Resumed::Decision { approved: false, reason: words }),
        "response" | "respond" => Ok(Resumed::Given(json!(words.unwrap_or_default()))),
        other => {
            let shown: String = other.chars().take(32).collect();
            Err(Error::invalid("command", format!("the decision {shown:?} cannot be honoured here"))
                .hint("approve the call, or reject it with a message that says what to do instead"))
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn decisions_are_read_in_the_forms_of_clients() {
        let no = |reason: &str| Resumed::Decision { approved: false, reason: Some(reason.into()) };
        for (sent, read) in [
            (json!({ "decisions": [{ "type": "approve" }] }), Resumed::Decision { approved: true, reason: None }),
            (json!({ "decisions": [{ "type": "reject", "message": "why" }] }), no("why")),
            (json!({ "open": { "decisions": [{ "type": "reject", "message": "why" }] } }), no("why")),
            (json!([{ "type": "accept", "args": null }]), Resumed::Decision { approved: true, reason: None }),
            (json!({ "colour": "red" }), Resumed::Given(json!({ "colour": "red" }))),
            (json!("red"), Resumed::Given(json!("red"))),
            (json!(true), Resumed::Given(json!(true))),
        ] {
            assert_eq!(resumed(&sent, "open").unwrap(), read);
        }
        for wrong in
            [json!({ "decisions": [{ "type": "edit" }] }), json!({ "decisions": [] }), json!({ "open": 1, "b": 2 })]
        {
            assert_eq!(resumed(&wrong, "open").unwrap_err().details["field"], "command");
        }
        let (before, now) = (Uuid::from_u128(1).to_string(), Uuid::from_u128(2).to_string());
        let again = json!({ before.as_str(): { "decisions": [{ "type": "approve" }] } });
        assert_eq!(resumed(&again, &now).unwrap_err().code, Code::Conflict, "it was the answer to another interrupt");
        assert_eq!(resumed(&again, &before).unwrap(), Resumed::Decision { approved: true, reason: None });
    }
}
