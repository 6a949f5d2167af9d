//! Pictures, sound and moving pictures: their measures, and what their makers wrote down. Places of photographs stay out.

use crate::{DocumentKind, converted, damaged, markdown::line, text::find};
use exif::{In, Tag};
use lofty::{
    file::{AudioFile, TaggedFileExt},
    probe::Probe,
    tag::Accessor,
};
use nom_exif::{MediaParser, MediaSource, TrackInfoTag};
use ports::{Converted, NotConverted, counted, shortened};
use serde_json::{Value, json};
use std::io::Cursor;

/// Of the data in a photograph, those that tell how and when it was made.
const TAGS: [(&str, Tag); 5] = [
    ("taken_at", Tag::DateTimeOriginal),
    ("camera", Tag::Model),
    ("description", Tag::ImageDescription),
    ("artist", Tag::Artist),
    ("orientation", Tag::Orientation),
];
/// The longest text of a tag, in characters.
const LONGEST: usize = 500;

pub(crate) fn image(content: &[u8]) -> Result<Converted, NotConverted> {
    let kind = imagesize::image_type(content).map_err(|_| damaged("its kind cannot be read"))?;
    let size = imagesize::blob_size(content).map_err(|_| damaged("its measures cannot be read"))?;
    let format = format!("{kind:?}").to_ascii_lowercase();
    let format = format.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned();
    let text = format!("A picture of {} × {} pixels ({format}).\n", size.width, size.height);
    let measures = [("format", json!(format)), ("width", json!(size.width)), ("height", json!(size.height))];
    let mut done = converted(text, measures);
    if let Ok(exif) = exif::Reader::new().read_from_container(&mut Cursor::new(content)) {
        for (name, tag) in TAGS {
            let Some(field) = exif.get_field(tag, In::PRIMARY) else { continue };
            note(&mut done, name, json!(short(&field.display_value().to_string())));
        }
    }
    Ok(done)
}

/// A film: what its container says of it; of one that says nothing, what a recording would have.
pub(crate) fn film(content: &[u8]) -> Result<Converted, NotConverted> {
    let source = MediaSource::from_memory(content.to_vec());
    let Ok(track) = source.and_then(|source| MediaParser::new().parse_track(source)) else {
        return sound(DocumentKind::Video, content);
    };
    let number = |tag| track.get(tag).and_then(|value| value.to_string().parse::<u64>().ok());
    let seconds = number(TrackInfoTag::DurationMs).map(|ms| ms / 1000);
    let (width, height) = (number(TrackInfoTag::Width), number(TrackInfoTag::Height));
    let format = container(content);
    let length = seconds.map_or_else(|| "A film".to_owned(), |s| format!("A film of {}:{:02} minutes", s / 60, s % 60));
    let measures = match (width, height) {
        (Some(width), Some(height)) => format!(", {width} × {height} pixels"),
        _ => String::new(),
    };
    let facts =
        [("format", json!(format)), ("duration_s", json!(seconds)), ("width", json!(width)), ("height", json!(height))];
    let mut done = converted(format!("{length}{measures} ({format}).\n"), facts);
    for (name, tag) in
        [("taken_at", TrackInfoTag::CreateDate), ("camera", TrackInfoTag::Model), ("artist", TrackInfoTag::Author)]
    {
        // A container without a date has that of the beginning of its calendar.
        let is_date = |text: &String| name != "taken_at" || !text.starts_with("1904");
        let value = track.get(tag).map(|value| short(&value.to_string())).filter(is_date);
        if let Some(value) = value {
            note(&mut done, name, json!(value));
        }
    }
    Ok(done)
}

fn container(content: &[u8]) -> &'static str {
    let has = |mark: &[u8]| find(content.get(..64.min(content.len())).unwrap_or_default(), mark).is_some();
    match () {
        () if has(b"webm") => "webm",
        () if has(b"matroska") => "matroska",
        () if has(b"ftypqt") => "quicktime",
        () => "mp4",
    }
}

pub(crate) fn sound(kind: DocumentKind, content: &[u8]) -> Result<Converted, NotConverted> {
    let probed = Probe::new(Cursor::new(content)).guess_file_type().ok().and_then(|probe| probe.read().ok());
    let what = if kind == DocumentKind::Video { "A film" } else { "A recording" };
    let Some(file) = probed else {
        return Ok(converted(
            format!("{what} of {}.\n", counted(content.len(), "byte")),
            [("bytes", json!(content.len()))],
        ));
    };
    let (properties, format) = (file.properties(), format!("{:?}", file.file_type()).to_ascii_lowercase());
    let seconds = properties.duration().as_secs();
    let text = format!("{what} of {}:{:02} minutes ({format}).\n", seconds / 60, seconds % 60);
    let facts = [
        ("format", json!(format)),
        ("duration_s", json!(seconds)),
        ("sample_rate", json!(properties.sample_rate())),
        ("channels", json!(properties.channels())),
    ];
    let mut done = converted(text, facts);
    if let Some(tag) = file.primary_tag().or_else(|| file.first_tag()) {
        for (name, value) in [("title", tag.title()), ("artist", tag.artist()), ("album", tag.album())] {
            if let Some(value) = value {
                note(&mut done, name, json!(short(&value)));
            }
        }
    }
    Ok(done)
}

/// Adds a fact, also to the text: it is searched.
fn note(done: &mut Converted, name: &str, value: Value) {
    if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
        done.markdown.push_str(&format!("\n- {}: {text}", name.replace('_', " ")));
        done.facts.push((name.to_owned(), value));
    }
}

fn short(text: &str) -> String {
    shortened(&line(text.trim_matches('"')), LONGEST)
}
