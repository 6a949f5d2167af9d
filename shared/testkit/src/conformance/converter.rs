//! The suite of the converters of documents.

use bytes::Bytes;
use futures::{FutureExt as _, future::join_all};
use ports::{Converted, Converter, MAX_ATTACHED, MAX_ATTACHMENT_NAME, MAX_ATTACHMENTS, NotConverted};

const PAGE: &str =
    "<!DOCTYPE html><html><body><article><h1>Rain</h1><p>It rains in Bergen.</p></article></body></html>";
const MAIL: &str = "MIME-Version: 1.0\r\nSubject: all\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n";

/// Holds a converter to its documentation.
pub async fn converter(converter: &dyn Converter) {
    a_kind_is_found_by_the_content_whatever_the_name_is(converter).await;
    the_name_counts_where_the_content_tells_nothing(converter).await;
    a_text_is_skipped_with_a_reason(converter).await;
    a_damaged_document_fails_alike_each_time(converter).await;
    attachments_come_in_their_order_with_the_bytes_of_their_sender(converter).await;
    a_message_gives_no_more_attachments_than_the_limits(converter).await;
    conversions_at_once_and_dropped_ones_leave_each_other_alone(converter).await;
}

async fn a_kind_is_found_by_the_content_whatever_the_name_is(converter: &dyn Converter) {
    let page = done(converter, "page.html", PAGE).await;
    assert!(!page.kind.is_empty() && page.markdown.contains("It rains in Bergen."), "{page:?}");
    for name in ["a.csv", "", "../\n\"{} ü", "page.html\u{0}.pdf"] {
        assert_eq!(done(converter, name, PAGE).await, page, "{name:?}");
    }
}

async fn the_name_counts_where_the_content_tells_nothing(converter: &dyn Converter) {
    let table = done(converter, "a.csv", "city,people\nOslo,700000\n").await;
    assert!(table.markdown.contains("700000"), "{table:?}");
    let text = convert(converter, "a.txt", "city,people\nOslo,700000\n").await;
    assert!(matches!(text, Err(NotConverted::Skipped { .. })), "{text:?}");
}

async fn a_text_is_skipped_with_a_reason(converter: &dyn Converter) {
    match convert(converter, "a.md", "# Rain\n\nIt rains.\n").await {
        Err(NotConverted::Skipped { reason, message }) => assert!(!reason.is_empty() && !message.is_empty()),
        other => panic!("{other:?}"),
    }
}

async fn a_damaged_document_fails_alike_each_time(converter: &dyn Converter) {
    let first = convert(converter, "a.pdf", "%PDF-1.4\nnothing of a PDF").await;
    assert!(matches!(first, Err(NotConverted::Failed { .. })), "{first:?}");
    assert_eq!(convert(converter, "a.pdf", "%PDF-1.4\nnothing of a PDF").await, first);
}

async fn attachments_come_in_their_order_with_the_bytes_of_their_sender(converter: &dyn Converter) {
    let part = |name: &str, content: &str| {
        format!(
            "--x\r\nContent-Type: application/octet-stream; name=\"{name}\"\r\n\
             Content-Transfer-Encoding: base64\r\n\r\n{content}\r\n"
        )
    };
    // The bytes of the first are no text. Two attachments may have one name.
    let message = format!("{MAIL}{}{}--x--\r\n", part("b.bin", "AAH/"), part("b.bin", "aGVsbG8="));
    let attached = done(converter, "a.eml", &message).await.attachments;
    let attached: Vec<(&str, &[u8])> = attached.iter().map(|it| (it.name.as_str(), it.content.as_slice())).collect();
    let expected: [(&str, &[u8]); 2] = [("b.bin", b"\0\x01\xff"), ("b.bin", b"hello")];
    assert_eq!(attached, expected);
}

async fn a_message_gives_no_more_attachments_than_the_limits(converter: &dyn Converter) {
    let name = "n".repeat(10 * MAX_ATTACHMENT_NAME);
    let part = format!("--x\r\nContent-Type: application/octet-stream; name=\"{name}.bin\"\r\n\r\nzz\r\n");
    let message = format!("{MAIL}{}--x--\r\n", part.repeat(MAX_ATTACHMENTS + 1));
    let attached = done(converter, "a.eml", &message).await.attachments;
    assert_eq!(attached.len(), MAX_ATTACHMENTS);
    assert!(attached.iter().all(|it| it.name.len() <= MAX_ATTACHMENT_NAME));
    assert!(attached.iter().map(|it| it.content.len()).sum::<usize>() <= MAX_ATTACHED);
}

async fn conversions_at_once_and_dropped_ones_leave_each_other_alone(converter: &dyn Converter) {
    // It is dropped after it has begun.
    drop(convert(converter, "a.csv", "city,people\nBergen,1\n").now_or_never());
    let numbers: Vec<String> = (1..=4).map(|number| format!("n\n{}\n", number * 1_111)).collect();
    let all = join_all(numbers.iter().map(|content| done(converter, "a.csv", content))).await;
    for (number, converted) in (1..=4).zip(all) {
        assert!(converted.markdown.contains(&(number * 1_111).to_string()), "{converted:?}");
    }
}

async fn convert(converter: &dyn Converter, name: &str, content: &str) -> Result<Converted, NotConverted> {
    converter.convert(name, Bytes::copy_from_slice(content.as_bytes())).await
}

async fn done(converter: &dyn Converter, name: &str, content: &str) -> Converted {
    match convert(converter, name, content).await {
        Ok(converted) => converted,
        Err(why) => panic!("{name:?}: {why:?}"),
    }
}
