//! Work without a hub: flows in folders of this machine are checked and drawn by the very code that the hub loads them with.

use super::tell_faults;
use crate::{
    args::Picture,
    failure::{CliError, Exit},
    output::{Look, Output, clean, counted},
};
use flow::{
    Flow,
    draw::{self, RunVisits},
    load::{self, KnownNames, Report},
    op::alias,
    template,
};
use serde_json::json;
use std::{collections::BTreeMap, fs, path::Path};

/// The names that manifests may use here. Only the hub knows the models and personas: those are not missed.
fn known() -> KnownNames {
    // A hub runs commands unless it is told not to.
    KnownNames { sandbox: true, ..KnownNames::default() }
}

/// The name of the flow in a folder: the folder's.
pub(super) fn name_of(folder: &Path) -> Result<String, CliError> {
    let failed = |source| CliError::Local { path: folder.display().to_string(), source };
    // A folder typed as `.` has a name, too.
    let whole = folder.canonicalize().map_err(failed)?;
    let name = whole.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned).ok_or_else(|| CliError::Usage(format!("{} has no name for a flow", folder.display())))
}

fn loaded(folder: &Path) -> Result<Result<Flow, Report>, CliError> {
    let failed = |source| CliError::Local { path: folder.display().to_string(), source };
    let files: BTreeMap<String, String> = load::read_folder(folder).map_err(failed)?;
    Ok(load::load(&name_of(folder)?, files, &known()))
}

/// Refuses a folder whose flow has faults.
pub(super) fn sound(folder: &Path) -> Result<(), CliError> {
    loaded(folder)?.map(drop).map_err(|report| {
        let count = report.faults.len();
        let first = report.faults.first().map(ToString::to_string).unwrap_or_default();
        let all = counted(count, "fault");
        CliError::Usage(format!("{first}\n{all}: buildscale flow check {} has the whole report", folder.display()))
    })
}

/// Says everything that is wrong.
pub(super) fn check(folder: &Path, out: &mut Output) -> Result<Exit, CliError> {
    let report = match loaded(folder)? {
        Ok(flow) => json!({ "ok": true, "hash": flow.reference.hash, "faults": [], "notes": flow.notes }),
        Err(report) => json!({ "ok": false, "faults": report.faults, "notes": report.notes }),
    };
    tell_faults(&report, &folder.display().to_string(), out)
}

/// The flow as a picture; none when it has faults, which are told.
pub(super) fn graph(folder: &Path, format: Picture, out: &mut Output) -> Result<Option<Vec<u8>>, CliError> {
    let Ok(flow) = loaded(folder)? else {
        check(folder, out)?;
        return Ok(None);
    };
    let nothing = RunVisits::new();
    let picture = match format {
        Picture::Svg => draw::svg(&flow, &nothing),
        Picture::Dot => draw::dot(&flow, &nothing),
        Picture::Mermaid => draw::mermaid(&flow, &nothing),
        Picture::Text => clean(&draw::outline(&flow, &nothing)),
    };
    Ok(Some(picture.into_bytes()))
}

/// Makes a folder with a flow to begin with. Existing files are never overwritten.
pub(super) fn new(folder: &Path, name: Option<&str>, out: &mut Output) -> Result<Exit, CliError> {
    let failed = |source| CliError::Local { path: folder.display().to_string(), source };
    fs::create_dir_all(folder).map_err(failed)?;
    if fs::read_dir(folder).map_err(failed)?.next().is_some() {
        return Err(CliError::Usage(format!("{} is not empty", folder.display())));
    }
    let files = template::new_flow(&name.map_or_else(|| name_of(folder), |name| Ok(name.to_owned()))?);
    for (path, text) in &files {
        let path = folder.join(path);
        let failed = |source| CliError::Local { path: path.display().to_string(), source };
        fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(failed)?;
        fs::write(&path, text).map_err(failed)?;
    }
    if out.is_json() {
        let paths: Vec<&String> = files.keys().collect();
        return out.json(&json!({ "folder": folder.display().to_string(), "files": paths })).map(|()| Exit::Done);
    }
    for path in files.keys().filter(|path| !path.starts_with('.')) {
        out.line(folder.join(path).display())?;
    }
    let place = for_a_shell(folder);
    out.notice(format_args!("check it with: buildscale flow check {place}; run it with: buildscale flow run {place}"))?;
    Ok(Exit::Done)
}

/// A path as a shell reads it back.
fn for_a_shell(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,@%:=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Writes the files of the flow with their hashes into `deployment.yaml`; with `verify`, lists the files that differ from it.
pub(super) fn package(folder: &Path, verify: bool, out: &mut Output) -> Result<Exit, CliError> {
    const MANIFEST: &str = "deployment.yaml";
    // Files that differ from the package are the subject of this command, and no fault.
    if let Err(report) = loaded(folder)?
        && report.faults.iter().any(|fault| fault.code != load::TAMPERED)
    {
        sound(folder)?;
    }
    let failed = |source| CliError::Local { path: folder.display().to_string(), source };
    let files = load::read_folder(folder).map_err(failed)?;
    let made = template::package(&files);
    if !verify {
        fs::write(folder.join(MANIFEST), template::deployment_text(&made)).map_err(failed)?;
        let hash = made.hash.unwrap_or_default();
        return if out.is_json() { out.json(&json!({ "hash": hash })) } else { out.line(hash) }.map(|()| Exit::Done);
    }
    let said = template::said(&files).filter(|said| !said.fingerprints.is_empty());
    let said =
        said.ok_or_else(|| CliError::NotFound(format!("{MANIFEST} has no fingerprints: package the flow first")))?;
    let changed = template::drift(&said, &files);
    if out.is_json() {
        out.json(&json!({ "changed": changed }))?;
    } else {
        changed.iter().try_for_each(|path| out.line(path))?;
    }
    Ok(if changed.is_empty() { Exit::Done } else { Exit::Failed })
}

/// Lists the entry points that tools.yaml can name.
pub(super) fn entrypoints(out: &mut Output) -> Result<Exit, CliError> {
    let KnownNames { tools, functions, .. } = known();
    let usual = |tool: &str| -> Vec<&'static str> {
        alias::known().filter(|name| alias::alias(name) == Some(tool) && *name != tool).collect()
    };
    if out.is_json() {
        let tools: Vec<_> = tools.iter().map(|tool| json!({ "name": tool, "also": usual(tool) })).collect();
        return out.json(&json!({ "tools": tools, "functions": functions })).map(|()| Exit::Done);
    }
    let widest = tools.iter().map(|tool| tool.len()).max().unwrap_or_default();
    for tool in &tools {
        let also = usual(tool).join(", ");
        out.words(format_args!("{tool:widest$}  {}", out.style().paint(Look::Dim, format_args!("or {also}"))))?;
    }
    functions.iter().try_for_each(|function| out.line(function))?;
    Ok(Exit::Done)
}

/// Prints the schema of a manifest, or which there are.
pub(super) fn schema(name: Option<&str>, out: &mut Output) -> Result<Exit, CliError> {
    let mut schemas = flow::manifest::schemas();
    let Some(name) = name else {
        if out.is_json() {
            return out.json(&json!({ "schemas": schemas })).map(|()| Exit::Done);
        }
        for name in schemas.keys() {
            out.line(format_args!("{name}.yaml"))?;
        }
        return Ok(Exit::Done);
    };
    let bare = name.split('.').next().unwrap_or_default();
    let schema = schemas.remove(bare).ok_or_else(|| {
        let known = schemas.keys().copied().collect::<Vec<_>>().join(", ");
        CliError::NotFound(format!("there is no manifest {name}; there are: {known}"))
    })?;
    out.line(serde_json::to_string_pretty(&schema).unwrap_or_default())?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_a_command_to_copy_is_one_word_of_a_shell() {
        for (path, word) in [
            ("flows/résumé-2", "flows/résumé-2"),
            ("my flows/a b", "'my flows/a b'"),
            ("it's", r"'it'\''s'"),
            ("$HOME;ls", "'$HOME;ls'"),
        ] {
            assert_eq!(for_a_shell(Path::new(path)), word);
        }
    }
}
