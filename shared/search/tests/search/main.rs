//! Search by words and by meaning.

mod meaning;
mod words;
