//! E-mail: headers, the body, and attachments, which are converted as documents of their own (RFC 5322, MIME).

use crate::{budget::Limits, converted, damaged, html, markdown::line, part};
use mail_parser::{Address, Message, MessageParser, MessagePart, MimeHeaders, PartType};
use ports::{Converted, NotConverted};
use serde_json::json;

/// Attachments of one message that are shown.
const ATTACHMENTS: usize = 100;

pub(crate) fn convert(content: &[u8], limits: &Limits) -> Result<Converted, NotConverted> {
    let message = MessageParser::default().parse(content).ok_or_else(|| damaged("it is no message"))?;
    let subject = line(message.subject().unwrap_or_default());
    let count = message.attachment_count();
    let mut text = String::new();
    show(&message, 1, limits, &mut text)?;
    limits.fits(text.len())?;
    Ok(converted(text, [("title", json!(subject)), ("attachments", json!(count))]))
}

fn show(message: &Message<'_>, level: usize, limits: &Limits, text: &mut String) -> Result<(), NotConverted> {
    let mark = "#".repeat(level.min(6));
    let subject = line(message.subject().unwrap_or_default());
    text.push_str(&format!("{mark} {}\n\n", if subject.is_empty() { "(no subject)" } else { &subject }));
    for (name, address) in [("From", message.from()), ("To", message.to()), ("Cc", message.cc())] {
        if let Some(address) = address.map(people).filter(|people| !people.is_empty()) {
            text.push_str(&format!("- {name}: {address}\n"));
        }
    }
    if let Some(date) = message.date() {
        text.push_str(&format!("- Date: {}\n", date.to_rfc3339()));
    }
    text.push('\n');
    // The plain text is what its author saw; HTML is for messages that have no other.
    let plain = message.text_bodies().find_map(|body| match &body.body {
        PartType::Text(text) => Some(text.trim().replace("\r\n", "\n")),
        _ => None,
    });
    let body = match plain {
        Some(plain) => plain,
        None => match message.html_bodies().find_map(|body| body.text_contents()) {
            Some(page) => html::page(page, limits, false)?.0,
            None => String::new(),
        },
    };
    text.push_str(body.trim());
    text.push_str("\n\n");
    for (number, attachment) in message.attachments().enumerate() {
        if number == ATTACHMENTS || limits.is_late() {
            let left = message.attachment_count() - number;
            text.push_str(&format!("[{left} attachments more are left out]\n"));
            break;
        }
        attached(attachment, level + 1, limits, text)?;
        limits.fits(text.len())?;
    }
    Ok(())
}

fn attached(
    attachment: &MessagePart<'_>,
    level: usize,
    limits: &Limits,
    text: &mut String,
) -> Result<(), NotConverted> {
    let name = line(attachment.attachment_name().unwrap_or("without a name"));
    let kind = attachment.content_type().map(|kind| match kind.subtype() {
        Some(subtype) => format!("{}/{subtype}", kind.ctype()),
        None => kind.ctype().to_owned(),
    });
    let size = attachment.len();
    let kind = line(&kind.unwrap_or_default());
    text.push_str(&format!("{} Attachment: {name}\n\n{kind}, {size} bytes\n\n", "#".repeat(level.min(6))));
    let deep = match &attachment.body {
        PartType::Message(message) => limits.within(|| show(message, level + 1, limits, text)).transpose()?.is_none(),
        PartType::Text(body) => {
            text.push_str(&format!("{}\n\n", body.trim()));
            false
        }
        _ => match limits.within(|| part(&name, attachment.contents(), limits)) {
            Some(Ok(converted)) => {
                text.push_str(&format!("{}\n\n", converted.markdown.trim()));
                false
            }
            Some(Err(NotConverted::Failed { message, .. } | NotConverted::Skipped { message, .. })) => {
                text.push_str(&format!("[not converted: {message}]\n\n"));
                false
            }
            Some(Err(NotConverted::Unavailable(_))) => false,
            None => true,
        },
    };
    if deep {
        text.push_str("[not converted: it lies too deep in other messages]\n\n");
    }
    Ok(())
}

fn people(address: &Address<'_>) -> String {
    let one = |person: &mail_parser::Addr<'_>| match (person.name(), person.address()) {
        (Some(name), Some(address)) => format!("{name} <{address}>"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) => String::new(),
    };
    line(&address.iter().map(one).filter(|one| !one.is_empty()).collect::<Vec<_>>().join(", "))
}
