//! `application/vnd.amazon.eventstream`: the framing of Bedrock's answers, from bytes that are cut anywhere.
//!
//! A message is the length of it all and of its headers, their checksum, the headers, the payload, and the checksum of everything
//! before it; numbers are big-endian, checksums CRC-32 (IEEE 802.3).

use super::{Event, WireFault};
use serde_json::{Value, json};

const PRELUDE: usize = 12;
const CHECKSUM: usize = 4;

/// Turns bytes into events. An exception becomes an event with an `error`, as other providers send them.
#[derive(Default)]
pub(super) struct Reader {
    bytes: Vec<u8>,
}

impl Reader {
    /// Takes bytes, and adds the events that are whole now.
    ///
    /// # Errors
    /// [`WireFault::Nonsense`] for a frame whose length, checksum or headers are wrong. The events before it are among `events`.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), WireFault> {
        self.bytes.extend_from_slice(bytes);
        let mut read = 0;
        while let Some(message) = next(&self.bytes[read..])? {
            read += message.len();
            events.push(event(message)?);
        }
        self.bytes.drain(..read);
        Ok(())
    }
}

fn damaged(what: &str) -> WireFault {
    WireFault::Nonsense(format!("a frame of the answer is damaged: {what}"))
}

/// The whole message that these bytes begin with, if all of it is there.
fn next(bytes: &[u8]) -> Result<Option<&[u8]>, WireFault> {
    let Some(total) = number(bytes, 0) else { return Ok(None) };
    // Checked before the rest comes: a length that is wrong would be waited for in vain.
    if let Some(sum) = number(bytes, 8)
        && sum != crc32(&bytes[..8])
    {
        return Err(damaged("its lengths"));
    }
    if (total as usize) < PRELUDE + CHECKSUM {
        return Err(damaged("its length"));
    }
    let Some(message) = bytes.get(..total as usize) else { return Ok(None) };
    let body = message.len() - CHECKSUM;
    if number(message, body) != Some(crc32(&message[..body])) {
        return Err(damaged("its checksum"));
    }
    Ok(Some(message))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn event(message: &[u8]) -> Result<Event, WireFault> {
    let headers_end = number(message, 4).map_or(usize::MAX, |length| PRELUDE.saturating_add(length as usize));
    let body = message.len() - CHECKSUM;
    let headers = message.get(PRELUDE..headers_end.min(body)).ok_or_else(|| damaged("its headers"))?;
    let headers = texts(headers).ok_or_else(|| damaged("its headers"))?;
    let header = |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    let data = String::from_utf8_lossy(message.get(headers_end..body).unwrap_or_default()).into_owned();
    let failed = header(":exception-type").or_else(|| header(":error-code"));
    let Some(kind) = failed else {
        return Ok(Event { name: header(":event-type").unwrap_or_default().to_owned(), data });
    };
    let told = serde_json::from_str::<Value>(&data).ok();
    let told = told.as_ref().and_then(|body| body.get("message").or_else(|| body.get("Message"))?.as_str());
    let words = told.or_else(|| header(":error-message")).unwrap_or(kind);
    let data = json!({"error": {"type": kind, "message": words}}).to_string();
    Ok(Event { name: "exception".into(), data })
}

/// The headers that are texts; none when they cannot be read.
fn texts(mut bytes: &[u8]) -> Option<Vec<(&str, &str)>> {
    let mut headers = Vec::new();
    while let Some((length, rest)) = bytes.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        let (kind, rest) = rest.split_first()?;
        let sized = |rest: &[u8]| Some(2 + usize::from(u16::from_be_bytes(rest.get(..2)?.try_into().ok()?)));
        let size = match kind {
            0 | 1 => 0,
            2 => 1,
            3 => 2,
            4 => 4,
            5 | 8 => 8,
            6 | 7 => sized(rest)?,
            9 => 16,
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(size)?;
        if *kind == 7 {
            headers.push((std::str::from_utf8(name).ok()?, std::str::from_utf8(&value[2..]).ok()?));
        }
        bytes = rest;
    }
    Some(headers)
}

fn crc32(bytes: &[u8]) -> u32 {
    let divided = |rest: u32, _| (rest >> 1) ^ (0xEDB8_8320 & (rest & 1).wrapping_neg());
    !bytes.iter().fold(!0, |rest, byte| (0..8).fold(rest ^ u32::from(*byte), divided))
}
