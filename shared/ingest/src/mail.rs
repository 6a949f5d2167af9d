//! E-mail: headers, the body, and attachments, which become files of their own (RFC 5322, MIME).

use crate::{budget::Limits, converted, damaged, html, markdown::line, text};
use mail_parser::{
    Address, Encoding, Message, MessageParser, MessagePart, MimeHeaders, PartType,
    decoders::{base64::base64_decode, quoted_printable::quoted_printable_decode},
};
use ports::{Attachment, Converted, MAX_ATTACHED, MAX_ATTACHMENTS, NotConverted, counted, cut_name};
use serde_json::json;
use std::borrow::Cow;

pub(crate) fn convert(content: &[u8], limits: &Limits) -> Result<Converted, NotConverted> {
    let message = MessageParser::default().parse(content).ok_or_else(|| damaged("it is no message"))?;
    let subject = line(message.subject().unwrap_or_default());
    let count = message.attachment_count();
    let mut text = String::new();
    show(&message, limits, &mut text)?;
    let attachments = attachments(&message);
    let left = count - attachments.len();
    if left > 0 {
        let most = MAX_ATTACHED >> 20;
        text.push_str(&format!(
            "[left out: {}; a message gives {MAX_ATTACHMENTS} at most, with {most} MiB together]\n",
            counted(left, "attachment")
        ));
    }
    limits.fits(text.len())?;
    let converted = converted(text, [("title", json!(subject)), ("attachments", json!(count))]);
    Ok(Converted { attachments, ..converted })
}

fn show(message: &Message<'_>, limits: &Limits, text: &mut String) -> Result<(), NotConverted> {
    let subject = line(message.subject().unwrap_or_default());
    text.push_str(&format!("# {}\n\n", if subject.is_empty() { "(no subject)" } else { &subject }));
    for (name, address) in [("From", message.from()), ("To", message.to()), ("Cc", message.cc())] {
        if let Some(address) = address.map(people).filter(|people| !people.is_empty()) {
            text.push_str(&format!("- {name}: {address}\n"));
        }
    }
    if let Some(date) = message.date() {
        text.push_str(&format!("- Date: {}\n", date.to_rfc3339()));
    }
    text.push('\n');
    text.push_str(&body(message, limits)?);
    text.push_str("\n\n");
    Ok(())
}

/// The texts of a message, in order: a message with a picture or a signature between its texts has several. The plain text is what its author saw; HTML
/// is for parts that have no other.
fn body(message: &Message<'_>, limits: &Limits) -> Result<String, NotConverted> {
    let mut texts: Vec<String> = Vec::new();
    for part in message.text_bodies() {
        let text = match &part.body {
            PartType::Text(text) => words(message, part, text).replace("\r\n", "\n"),
            PartType::Html(page) => html::page(&words(message, part, page), limits, false)?.0,
            _ => continue,
        };
        if !text.trim().is_empty() {
            texts.push(text.trim().to_owned());
        }
    }
    let page = message.html_bodies().find_map(|part| match &part.body {
        PartType::Html(page) => Some(words(message, part, page)),
        _ => None,
    });
    match page {
        Some(page) if texts.is_empty() => Ok(html::page(&page, limits, false)?.0.trim().to_owned()),
        _ => Ok(texts.join("\n\n")),
    }
}

/// The words of a part. The parser takes a text that names no encoding for UTF-8, and believes a wrong name: such a text is read as a file is.
fn words<'a>(message: &'a Message<'_>, part: &'a MessagePart<'_>, parsed: &'a str) -> Cow<'a, str> {
    if !parsed.contains(char::REPLACEMENT_CHARACTER) {
        return parsed.into();
    }
    let sent = content(message, part);
    let guessed = match &part.body {
        PartType::Html(_) => text::decode_page(&sent).into_owned(),
        _ => text::decode(&sent).0.into_owned(),
    };
    let is_better = !guessed.is_empty() && !guessed.contains(char::REPLACEMENT_CHARACTER);
    if is_better { guessed.into() } else { parsed.into() }
}

/// The attachments, as many as fit.
fn attachments(message: &Message<'_>) -> Vec<Attachment> {
    let (mut all, mut bytes) = (Vec::new(), 0);
    for (number, part) in (1..=MAX_ATTACHMENTS).zip(message.attachments()) {
        let content = content(message, part);
        if bytes + content.len() <= MAX_ATTACHED {
            bytes += content.len();
            all.push(Attachment { name: name(part, number), content: content.into_owned() });
        }
    }
    all
}

/// The content of an attachment as its sender had it. The parser itself decodes the characters of texts, and of a message in a message it gives the
/// whole message around it.
fn content<'a>(message: &'a Message<'_>, part: &'a MessagePart<'_>) -> Cow<'a, [u8]> {
    let place = part.raw_body_offset() as usize..part.raw_end_offset() as usize;
    let sent = message.raw_message().get(place).unwrap_or_default();
    let decoded = match (&part.body, part.encoding) {
        (PartType::Text(_) | PartType::Html(_) | PartType::Message(_), Encoding::None) => return sent.into(),
        (PartType::Text(_) | PartType::Html(_), Encoding::Base64) => base64_decode(sent),
        (PartType::Text(_) | PartType::Html(_), Encoding::QuotedPrintable) => quoted_printable_decode(sent),
        _ => None,
    };
    decoded.map_or_else(|| part.contents().into(), Cow::Owned)
}

/// The name of an attachment; one of its number and its type when it has none.
fn name(part: &MessagePart<'_>, number: usize) -> String {
    let given = line(part.attachment_name().unwrap_or_default());
    let name: String = match &part.body {
        PartType::Message(message) if given.is_empty() => line(message.subject().unwrap_or_default()),
        _ => given,
    };
    let (stem, end) = cut_name(&name);
    let name = format!("{stem}{end}");
    let has_name = name.chars().any(char::is_alphanumeric);
    let ending = ending(part);
    match &part.body {
        _ if !has_name => format!("attachment-{number}.{ending}"),
        PartType::Message(_) if !name.to_ascii_lowercase().ends_with(".eml") => format!("{name}.eml"),
        _ => name,
    }
}

/// The usual end of the names of files of this type.
fn ending(part: &MessagePart<'_>) -> String {
    let (kind, subtype) = match part.content_type() {
        Some(kind) => (kind.ctype().to_ascii_lowercase(), kind.subtype().unwrap_or_default().to_ascii_lowercase()),
        None => Default::default(),
    };
    let is_ending = (1..=4).contains(&subtype.len()) && subtype.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match (kind.as_str(), subtype.as_str()) {
        _ if part.is_message() => "eml".into(),
        ("text", "plain") => "txt".into(),
        ("text", "calendar") => "ics".into(),
        ("image", "jpeg") => "jpg".into(),
        _ if is_ending => subtype,
        _ => "bin".into(),
    }
}

fn people(address: &Address<'_>) -> String {
    let one = |person: &mail_parser::Addr<'_>| match (person.name(), person.address()) {
        (Some(name), Some(address)) => format!("{name} <{address}>"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) => String::new(),
    };
    line(&address.iter().map(one).filter(|one| !one.is_empty()).collect::<Vec<_>>().join(", "))
}
