//! Encryption of tokens at rest: AES-256-GCM (RFC 5116) under a key of the host, which is in no row, no backup of the table and no log.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::Sha256;
use ports::Secret;
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    rand::{SecureRandom, SystemRandom},
};
use std::sync::Arc;

/// Gives the key of the host; asked when a token is sealed or opened.
pub type KeySource = Arc<dyn Fn() -> Result<Secret, String> + Send + Sync>;

/// Random bytes.
///
/// # Errors
/// When the machine has none.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "the machine gives no random numbers".to_owned())?;
    Ok(bytes)
}

/// Random text, as URLs take it.
///
/// # Errors
/// Those of [`random`].
pub(crate) fn random_text() -> Result<String, String> {
    Ok(URL_SAFE_NO_PAD.encode(random::<32>()?))
}

/// Eight random digits, for people.
///
/// # Errors
/// Those of [`random`].
pub(crate) fn random_digits() -> Result<String, String> {
    Ok(format!("{:08}", u64::from_be_bytes(random::<8>()?) % 100_000_000))
}

fn key(source: &KeySource) -> Result<LessSafeKey, String> {
    let digest = Sha256::of(format!("buildscale accounts of mcp servers 1\n{}", source()?.expose()).as_bytes());
    let key = UnboundKey::new(&AES_256_GCM, digest.as_bytes()).map_err(|_| "the key of tokens is none".to_owned())?;
    Ok(LessSafeKey::new(key))
}

/// Seals a text for this place, and for no other.
///
/// # Errors
/// The reason, for people.
pub(crate) fn seal(source: &KeySource, place: &str, text: &str) -> Result<String, String> {
    let nonce = random::<NONCE_LEN>()?;
    let mut sealed = text.as_bytes().to_vec();
    key(source)?
        .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(place.as_bytes()), &mut sealed)
        .map_err(|_| "a token cannot be sealed".to_owned())?;
    Ok(URL_SAFE_NO_PAD.encode([nonce.as_slice(), &sealed].concat()))
}

/// The text that was sealed for this place; none when it was sealed for another one, or under another key.
///
/// # Errors
/// When the key cannot be had.
pub(crate) fn open(source: &KeySource, place: &str, sealed: &str) -> Result<Option<String>, String> {
    let key = key(source)?;
    let Ok(mut bytes) = URL_SAFE_NO_PAD.decode(sealed) else { return Ok(None) };
    if bytes.len() < NONCE_LEN {
        return Ok(None);
    }
    let mut sealed = bytes.split_off(NONCE_LEN);
    let Ok(nonce) = Nonce::try_assume_unique_for_key(&bytes) else { return Ok(None) };
    let opened = key.open_in_place(nonce, Aad::from(place.as_bytes()), &mut sealed).ok();
    Ok(opened.and_then(|text| String::from_utf8(text.to_vec()).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &'static str) -> KeySource {
        Arc::new(move || Ok(Secret::new(text)))
    }

    #[test]
    fn a_sealed_token_is_opened_at_its_place_and_under_its_key_alone() {
        let key = source("a key of the host");
        let sealed = seal(&key, "w/s", "the-token").unwrap_or_default();
        assert!(!sealed.contains("token"));
        assert_eq!(open(&key, "w/s", &sealed), Ok(Some("the-token".to_owned())));
        assert_ne!(seal(&key, "w/s", "the-token"), Ok(sealed.clone()), "never the same twice");
        assert_eq!(open(&key, "w/other", &sealed), Ok(None));
        assert_eq!(open(&source("another key"), "w/s", &sealed), Ok(None));
        for broken in ["", "AAAA", "no base64!", sealed.get(1..).unwrap_or_default()] {
            assert_eq!(open(&key, "w/s", broken), Ok(None), "{broken}");
        }
        let lost: KeySource = Arc::new(|| Err("it is lost".into()));
        assert_eq!(open(&lost, "w/s", &sealed), Err("it is lost".to_owned()));
    }
}
