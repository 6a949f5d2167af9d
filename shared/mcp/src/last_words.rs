//! The reason of a server's failure, for people: with the end of its error output, where it is a program. Servers tell there which key they refuse, so
//! secrets are taken out.

use crate::bounds::printable;
use parking_lot::Mutex;
use ports::{KnownSecrets, Redactor, Secret};
use std::{sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::watch,
    time::timeout,
};

/// How much of it is told, in bytes.
const TOLD: usize = 1_024;
/// How much of it is kept, in bytes: a secret that lies across the beginning of the part that is told is whole here.
const KEPT: usize = 8 * 1_024;
/// How long the last of it is waited for.
const PATIENCE: Duration = Duration::from_millis(500);

/// The last words of a program.
#[derive(Clone)]
pub(crate) struct LastWords {
    kept: Arc<Mutex<String>>,
    /// Holds true once there is no more.
    over: watch::Receiver<bool>,
    /// Takes out the secrets that the program was given.
    given: Redactor,
    /// All others that this process knows.
    known: Option<KnownSecrets>,
}

impl LastWords {
    /// Of a server that has none.
    pub fn none(given: &[Secret], known: Option<KnownSecrets>) -> Self {
        Self { kept: Arc::default(), over: watch::channel(true).1, given: Redactor::new(given), known }
    }

    /// Reads them. The program was given these secrets.
    pub fn read(mut told: Box<dyn AsyncRead + Send + Unpin>, given: &[Secret], known: Option<KnownSecrets>) -> Self {
        let (ends, over) = watch::channel(false);
        let kept = Arc::<Mutex<String>>::default();
        let into = kept.clone();
        tokio::spawn(async move {
            let mut buffer = [0; 4_096];
            while let Ok(length @ 1..) = told.read(&mut buffer).await {
                let mut kept = into.lock();
                kept.push_str(&String::from_utf8_lossy(buffer.get(..length).unwrap_or_default()));
                let from = kept.ceil_char_boundary(kept.len().saturating_sub(KEPT));
                kept.drain(..from);
            }
            ends.send_replace(true);
        });
        Self { kept, over, given: Redactor::new(given), known }
    }

    /// A text of the server without secrets.
    pub fn without_secrets(&self, text: &str) -> String {
        let text = self.given.text(text);
        self.known.as_ref().map_or_else(|| text.to_string(), |known| known.redactor().text(&text).into_owned())
    }

    /// The reason, with the last words of a program that ends.
    pub async fn explain(&self, why: &str) -> String {
        let _ = timeout(PATIENCE, self.over.clone().wait_for(|over| *over)).await;
        let kept = self.kept.lock().clone();
        let known = self.known.as_ref().map(KnownSecrets::redactor);
        let redactors: Vec<&Redactor> = [&self.given].into_iter().chain(&known).collect();
        let words = printable(Redactor::end_of(&kept, TOLD, &redactors).trim(), TOLD);
        let why = in_short(&self.without_secrets(why));
        if words.is_empty() { why } else { format!("{why}; it said: {words}") }
    }
}

/// An error of the protocol's library without the names of its types.
pub(crate) fn in_short(error: &str) -> String {
    let rest = error.rsplit_once("] error: ").map_or(error, |(_, rest)| rest);
    printable(rest, 500)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn told(words: String, given: &[Secret], known: Option<KnownSecrets>) -> String {
        LastWords::read(Box::new(std::io::Cursor::new(words)), given, known).explain("it ended").await
    }

    #[tokio::test]
    async fn the_last_words_of_a_program_have_no_secret_in_them_wherever_they_are_cut() {
        let (given, known) = ([Secret::new("given-secret-0123456789")], KnownSecrets::default());
        known.learn([&Secret::new("known-secret-0123456789")]);
        let said = |key: &str| format!("invalid key {key}\n");
        let both = told(said("given-secret-0123456789") + &said("known-secret-0123456789"), &given, Some(known)).await;
        assert_eq!(both, "it ended; it said: invalid key [redacted]\ninvalid key [redacted]");
        for behind in TOLD - 30..TOLD + 10 {
            let told = told(said("given-secret-0123456789") + &"x".repeat(behind), &given, None).await;
            assert!(!told.contains("secret") && !told.contains("456789"), "{told}");
        }
        // What is kept begins inside of one of many secrets, without which the rest is short.
        let long = "part-of-a-key-".repeat(20);
        for behind in (0..long.len()).step_by(20) {
            let said = said(&long).repeat(100) + &"x".repeat(behind);
            let told = told(said, &[Secret::new(long.as_str())], None).await;
            assert!(told.contains("invalid key [redacted]\n") && !told.contains("a-key-"), "{behind}: {told}");
        }
        assert_eq!(told("x".repeat(3 * KEPT), &[], None).await.len(), "it ended; it said: ".len() + TOLD);
        assert_eq!(told(String::new(), &[], None).await, "it ended");
        // A server over HTTP may repeat a header.
        let refused = LastWords::none(&given, None).explain("HTTP 400: no given-secret-0123456789").await;
        assert_eq!(refused, "HTTP 400: no [redacted]");
    }
}
