//! `application/vnd.amazon.eventstream`, as Bedrock writes it.

/// One message: lengths with their checksum, headers (all of them texts, type 7), the payload, and the checksum of it all.
pub fn message(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(u8::try_from(name.len()).unwrap());
        head.extend(name.as_bytes());
        head.push(7);
        head.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        head.extend(value.as_bytes());
    }
    let mut message = Vec::new();
    message.extend(u32::try_from(16 + head.len() + payload.len()).unwrap().to_be_bytes());
    message.extend(u32::try_from(head.len()).unwrap().to_be_bytes());
    message.extend(crc32(&message).to_be_bytes());
    message.extend(head);
    message.extend(payload);
    message.extend(crc32(&message).to_be_bytes());
    message
}

/// An event of that name.
pub fn event(kind: &str, payload: &str) -> Vec<u8> {
    message(
        &[(":event-type", kind), (":content-type", "application/json"), (":message-type", "event")],
        payload.as_bytes(),
    )
}

/// Bedrock's event for a failure in the middle of an answer.
pub fn exception(kind: &str, payload: &str) -> Vec<u8> {
    let headers = [(":exception-type", kind), (":content-type", "application/json"), (":message-type", "exception")];
    message(&headers, payload.as_bytes())
}

/// CRC-32 of IEEE 802.3.
fn crc32(bytes: &[u8]) -> u32 {
    let divided = |rest: u32, _| (rest >> 1) ^ (0xEDB8_8320 & (rest & 1).wrapping_neg());
    !bytes.iter().fold(!0, |rest, byte| (0..8).fold(rest ^ u32::from(*byte), divided))
}
