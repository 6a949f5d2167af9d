//! Documents of every kind as Markdown, and documents that mean harm.
#![expect(clippy::unwrap_used, reason = "tests")]

mod hostile;
mod kinds;
mod make;
mod whole;
