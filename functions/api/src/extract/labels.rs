//! The query string of a list that can be filtered by labels.

use super::query::{check_encoding, pairs, read};
use crate::error::{ApiError, excerpt, internal};
use axum::extract::FromRequestParts;
use domain::{Error, Labels};
use http::{Uri, request::Parts};
use serde::{Deserialize, de::DeserializeOwned};
use std::collections::BTreeMap;
use utoipa::IntoParams;

/// The parameter of a filter by labels, for the document.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it describes a parameter that may come more than once, and is read from the address")]
pub(crate) struct ByLabel {
    /// Only those that have this label, as `key=value`; given more than once, those that have all of them. A page may have fewer than its limit
    /// then, or none, and still have a next one.
    #[param(max_items = 16, example = json!(["customer=c-17"]))]
    label: Option<Vec<String>>,
}

/// The parameters of the query string, and the labels that its `label` parameters ask for. There may be several of these.
pub(crate) struct Labelled<T>(pub T, pub Labels);

impl<S: Send + Sync, T: DeserializeOwned + IntoParams> FromRequestParts<S> for Labelled<T> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let all = parts.uri.query().unwrap_or_default().split('&');
        let (labels, others): (Vec<&str>, Vec<&str>) = all.partition(|one| one.split('=').next() == Some("label"));
        let (labels, others) = (uri_of(&labels)?, uri_of(&others)?);
        check_encoding(&labels)?;
        Ok(Self(read(&others)?, wanted(pairs(&labels))?))
    }
}

fn uri_of(parameters: &[&str]) -> Result<Uri, ApiError> {
    format!("/?{}", parameters.join("&")).parse().map_err(|_| internal())
}

/// The labels that parameters ask for.
fn wanted(parameters: Vec<(String, String)>) -> Result<Labels, Error> {
    let mut labels = BTreeMap::new();
    for (_, label) in parameters {
        let Some((key, value)) = label.split_once('=') else {
            let message = format!("{:?} is no label", excerpt(&label));
            return Err(Error::invalid("label", message).hint("give it as key=value, such as label=customer=c-17"));
        };
        if labels.insert(key.to_owned(), value.to_owned()).is_some() {
            let message = format!("{:?} is given more than once, and a label has one value", excerpt(key));
            return Err(Error::invalid("label", message).hint("give each key once"));
        }
    }
    Labels::checked("label", labels)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn asked(parameters: &[&str]) -> Result<Labels, Error> {
        wanted(pairs(&uri_of(parameters).unwrap_or_default()))
    }

    #[test]
    fn each_parameter_is_a_label_and_the_value_is_all_behind_the_first_equals_sign() {
        let labels = asked(&["label=customer=c%2017", "label=query=a%3Db=c", "label=empty="]).unwrap();
        let pairs: Vec<_> = labels.pairs().collect();
        assert_eq!(pairs, [("customer", "c 17"), ("empty", ""), ("query", "a=b=c")]);
        assert!(asked(&[]).unwrap().is_empty());
    }

    #[test]
    fn a_filter_that_is_no_label_is_refused() {
        let long = format!("label=k={}", "v".repeat(513));
        let long = long.as_str();
        for wrong in [&["label=customer"][..], &["label="], &["label==x"], &["label=a=1", "label=a=2"], &[long]] {
            assert_eq!(asked(wrong).unwrap_err().details["field"], "label", "{wrong:?}");
        }
    }
}
