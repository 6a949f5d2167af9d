//! `buildscale files tag`, `untag`, `link` and `links`: tags of files, and links between them.

use crate::{
    failure::CliError,
    files::Files,
    output::{Output, one_line},
    value::{list, text},
};
use serde_json::{Value, json};

impl Files {
    pub(crate) async fn tag(&self, path: &str, tags: &[String], out: &mut Output) -> Result<(), CliError> {
        let file = self.find(path).await?;
        let marked = self.client.post(&self.at(&[text(&file, "file_id"), "tags"]), &json!({ "tags": tags })).await?;
        tagged(&marked, out)
    }

    pub(crate) async fn untag(&self, path: &str, tags: &[String], out: &mut Output) -> Result<(), CliError> {
        let file = self.find(path).await?;
        let mut marked = Value::Null;
        for tag in tags {
            let query = [("tag", tag.as_str())];
            marked = self.client.remove(&self.at(&[text(&file, "file_id"), "tags"]), &query).await?;
        }
        tagged(&marked, out)
    }

    pub(crate) async fn link(
        &self,
        ends: (&str, &str),
        kind: &str,
        gone: bool,
        out: &mut Output,
    ) -> Result<(), CliError> {
        let (from, to) = (self.find(ends.0).await?, self.find(ends.1).await?);
        let (place, target) = (self.at(&[text(&from, "file_id"), "links"]), text(&to, "file_id"));
        let marked = match gone {
            true => self.client.remove(&place, &[("to", target), ("kind", kind)]).await?,
            false => self.client.post(&place, &json!({ "to": target, "kind": kind })).await?,
        };
        if out.is_json() {
            return out.json(&marked);
        }
        let what = if gone { "no longer " } else { "" };
        let (from, to) = (one_line(text(&from, "path"), 4096), one_line(text(&to, "path"), 4096));
        out.line(format_args!("{from} {what}{} {to}", one_line(kind, 32)))
    }

    pub(crate) async fn links(&self, path: &str, out: &mut Output) -> Result<(), CliError> {
        let file = self.find(path).await?;
        let found = self.client.get(&self.at(&[text(&file, "file_id"), "links"]), &[]).await?;
        if out.is_json() {
            return out.json(&found);
        }
        let tags: Vec<&str> = list(&found, "tags").iter().filter_map(Value::as_str).collect();
        if !tags.is_empty() {
            out.line(format_args!("tags: {}", one_line(&tags.join(", "), 4096)))?;
        }
        for (arrow, links) in [("->", list(&found, "links")), ("<-", list(&found, "backlinks"))] {
            for link in links {
                let kind = one_line(text(link, "kind"), 32);
                match link.get("file") {
                    Some(file) => out.line(format_args!("{arrow} {kind}  {}", one_line(text(file, "path"), 4096)))?,
                    None => out.line(format_args!(
                        "{arrow} {kind}  {} (nothing is there)",
                        one_line(text(link, "target"), 512)
                    ))?,
                }
            }
        }
        Ok(())
    }
}

fn tagged(marked: &Value, out: &mut Output) -> Result<(), CliError> {
    if out.is_json() {
        return out.json(marked);
    }
    let tags: Vec<&str> = list(marked, "tags").iter().filter_map(Value::as_str).collect();
    let tags = if tags.is_empty() { "none".into() } else { one_line(&tags.join(", "), 4096) };
    out.line(format_args!("tags of {}: {tags}", one_line(text(marked, "path"), 4096)))
}
