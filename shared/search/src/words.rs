//! The words of a text as they are indexed and searched for: in lower case, without accents, English words by their stems.
//!
//! A letter of a script that is written without spaces is a word of its own, so words in it are found as phrases.

use crate::stem::stem;
use icu_normalizer::DecomposingNormalizerBorrowed;

/// The longest word, in bytes; of a longer one the beginning counts.
const LONGEST: usize = 48;
/// Between texts whose words do not follow each other.
pub(crate) const GAP: &str = "\u{B6}";

/// A word of a text, and its place in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub text: String,
    pub start: usize,
    pub end: usize,
}

/// The words of a text, in order.
pub(crate) fn words(text: &str) -> Vec<Word> {
    plain(text).into_iter().map(|word| Word { text: stem(&word.text), ..word }).collect()
}

/// The same before their stems are taken.
pub(crate) fn plain(text: &str) -> Vec<Word> {
    let mut found = Vec::new();
    let mut begun: Option<usize> = None;
    let mut take = |start: usize, end: usize| {
        let Some(part) = text.get(start..end) else { return };
        let folded = fold(part);
        if !folded.is_empty() {
            found.push(Word { text: folded, start, end });
        }
    };
    for (at, c) in text.char_indices() {
        let stands_alone = is_unspaced(c);
        let joins = begun.is_some() && is_mark(c);
        if (c.is_alphanumeric() && !stands_alone) || joins {
            begun.get_or_insert(at);
            continue;
        }
        if let Some(start) = begun.take() {
            take(start, at);
        }
        if stands_alone {
            take(at, at + c.len_utf8());
        }
    }
    if let Some(start) = begun {
        take(start, text.len());
    }
    found
}

/// Words with spaces between them.
pub(crate) fn joined<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for word in words {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}

fn fold(word: &str) -> String {
    let mut folded: String = if word.is_ascii() {
        word.to_ascii_lowercase()
    } else {
        let parts = DecomposingNormalizerBorrowed::new_nfkd().normalize(word).to_lowercase();
        let letters = parts.chars().filter(|c| !is_mark(*c) && c.is_alphanumeric());
        letters.fold(String::new(), |mut folded, c| {
            match plain_letter(c) {
                Some(plain) => folded.push_str(plain),
                None => folded.push(c),
            }
            folded
        })
    };
    folded.truncate(folded.floor_char_boundary(LONGEST));
    folded
}

/// Accents that stand behind their letter, the vowel signs of Hebrew and Arabic among them; and the place where a word may be broken.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{AD}' | '\u{300}'..='\u{36F}' | '\u{591}'..='\u{5BD}' | '\u{610}'..='\u{61A}'
        | '\u{64B}'..='\u{65F}' | '\u{670}')
}

/// Letters that Unicode does not take for others with an accent, as keyboards without them write them. The two cases of `ß` are `ß` and `SS`.
fn plain_letter(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'ł' => "l",
        'đ' => "d",
        'ı' => "i",
        _ => return None,
    })
}

/// Letters of scripts without spaces: Thai to Burmese, Khmer, kana, Han.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{E00}'..='\u{EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{3040}'..='\u{30FF}'
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        words(text).into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn words_are_in_lower_case_without_accents_by_their_stems() {
        assert_eq!(all("The Parsers' parse_header(x86)"), ["the", "parser", "pars", "header", "x86"]);
        assert_eq!(all("Café Cafe\u{301} ÜBER"), ["cafe", "cafe", "uber"]);
        assert_eq!(all("Straße STRASSE"), ["strass", "strass"]);
        assert_eq!(all("Łódź ŁÓDŹ smørrebrød"), ["lodz", "lodz", "smorrebrod"]);
        assert_eq!(all("Donau\u{AD}dampf \u{AD} مُحَمَّد"), ["donaudampf", "محمد"]);
        assert_eq!(all("検索 x"), ["検", "索", "x"]);
        assert_eq!(all("\u{0}\"* - \u{301}"), Vec::<String>::new());
    }

    #[test]
    fn places_are_those_of_the_text() {
        let text = "é parsing\u{0}索";
        let places: Vec<&str> = words(text).iter().map(|word| &text[word.start..word.end]).collect();
        assert_eq!(places, ["é", "parsing", "索"]);
    }

    #[test]
    fn long_words_are_cut_between_characters() {
        assert!(all(&"é".repeat(100_000)).iter().all(|word| word.len() <= LONGEST));
    }

    proptest::proptest! {
        #[test]
        fn no_word_has_a_character_that_the_index_takes_for_a_separator(text in ".{0,60}") {
            for word in words(&text) {
                assert!(!word.text.is_empty() && word.text.chars().all(|c| !c.is_ascii() || c.is_ascii_digit() || c.is_ascii_lowercase()));
                assert!(text.is_char_boundary(word.start) && text.is_char_boundary(word.end));
            }
        }
    }
}
