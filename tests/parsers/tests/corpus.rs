//! Feeds each parser its corpus, and inputs that are changed from it: without `cargo-fuzz`, bounded, and the same each time.

use parsers::TARGETS;
use std::{error::Error, fs, path::Path};

/// Changed inputs for each parser.
const CHANGED: usize = 150;
/// The longest of them, in bytes.
const LONGEST: usize = 64 * 1024;

/// Xorshift: the same numbers at each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }

    fn range(&mut self, length: usize) -> (usize, usize) {
        let (one, other) = (self.below(length + 1), self.below(length + 1));
        (one.min(other), one.max(other))
    }
}

/// An input like those in the corpus: with bytes changed, parts left out, repeated or from another one, and nested into itself.
fn changed(corpus: &[Vec<u8>], chance: &mut Chance) -> Vec<u8> {
    let mut input = corpus[chance.below(corpus.len())].clone();
    for _ in 0..=chance.below(3) {
        let (from, to) = chance.range(input.len());
        match chance.below(6) {
            0 if from < input.len() => input[from] = chance.below(256) as u8,
            1 => drop(input.drain(from..to)),
            2 => {
                let part = input[from..to].repeat(1 << chance.below(12));
                input.splice(from..to, part);
            }
            3 => {
                let other = &corpus[chance.below(corpus.len())];
                let (other_from, other_to) = chance.range(other.len());
                input.splice(from..to, other[other_from..other_to].iter().copied());
            }
            // An opening again and again, and its closing behind it: the worst case of recursion.
            4 => {
                let times = 1 << chance.below(14);
                let (open, close) =
                    [("{", "}"), ("[", "]"), ("(", ")"), ("{a,", "}"), ("[1,", "]"), ("{\"a\":", "}")][chance.below(6)];
                let inner = input[from..to].to_vec();
                let nested = [open.repeat(times).into_bytes(), inner, close.repeat(times).into_bytes()].concat();
                input.splice(from..to, nested);
            }
            _ => input.extend_from_slice(
                ["\0", "\u{feff}", "\u{202e}", "999999999999999999999", "-", "\\"][chance.below(6)].as_bytes(),
            ),
        }
        input.truncate(LONGEST);
    }
    input
}

#[test]
fn no_input_takes_a_parser_down() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for target in TARGETS {
        let mut names = fs::read_dir(root.join(target.name))?
            .map(|file| Ok(file?.path()))
            .collect::<Result<Vec<_>, std::io::Error>>()?;
        names.sort();
        let corpus = names.iter().map(fs::read).collect::<Result<Vec<_>, _>>()?;
        assert!(corpus.len() >= 2, "{} has no corpus", target.name);
        // On a stack as small as a worker's.
        let feeding =
            std::thread::Builder::new().name(target.name.into()).stack_size(2 * 1024 * 1024).spawn(move || {
                corpus.iter().for_each(|input| (target.feed)(input));
                let mut chance = Chance(0x9E37_79B9_7F4A_7C15);
                for _ in 0..CHANGED {
                    (target.feed)(&changed(&corpus, &mut chance));
                }
            })?;
        assert!(feeding.join().is_ok(), "{} panicked", target.name);
    }
    Ok(())
}

#[test]
fn every_corpus_has_its_parser() -> Result<(), Box<dyn Error>> {
    for folder in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus"))? {
        let name = folder?.file_name();
        assert!(name.to_str().is_some_and(|name| parsers::target(name).is_some()), "{name:?}");
    }
    Ok(())
}
