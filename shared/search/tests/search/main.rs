//! Search by words and by meaning.

mod deletion;
mod meaning;
mod words;
