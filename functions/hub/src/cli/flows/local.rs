//! What needs no hub: flows in folders of this machine are checked and drawn by the very code that the hub loads them with.

use super::tell_faults;
use crate::cli::{
    args::Picture,
    failure::{Exit, Failure},
    output::Output,
};
use flow::{
    Flow,
    load::{self, Known, Report},
    op::{Functions, expr, template},
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::Path};

/// What manifests may name here. Which models and personas there are, only the hub knows: those are not missed.
fn known() -> Known {
    Known {
        functions: Functions::builtin().known().map(str::to_owned).collect(),
        expression: expr::check,
        template: |text| template::check(&Value::String(text.to_owned())),
        ..Known::default()
    }
}

/// The name of the flow in a folder: the folder's.
pub(super) fn name_of(folder: &Path) -> Result<String, Failure> {
    let failed = |source| Failure::Local { path: folder.display().to_string(), source };
    // A folder typed as `.` has a name, too.
    let whole = folder.canonicalize().map_err(failed)?;
    let name = whole.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned).ok_or_else(|| Failure::Usage(format!("{} has no name for a flow", folder.display())))
}

fn loaded(folder: &Path) -> Result<Result<Flow, Report>, Failure> {
    let failed = |source| Failure::Local { path: folder.display().to_string(), source };
    let files: BTreeMap<String, String> = load::read_folder(folder).map_err(failed)?;
    Ok(load::load(&name_of(folder)?, files, &known()))
}

/// Refuses a folder whose flow has faults.
pub(super) fn sound(folder: &Path) -> Result<(), Failure> {
    loaded(folder)?.map(drop).map_err(|report| {
        let count = report.faults.len();
        let first = report.faults.first().map(ToString::to_string).unwrap_or_default();
        Failure::Usage(format!("{first}\n{count} faults in all: buildscale flow check {} lists them", folder.display()))
    })
}

/// Says everything that is wrong.
pub(super) fn check(folder: &Path, out: &mut Output) -> Result<Exit, Failure> {
    let report = match loaded(folder)? {
        Ok(flow) => json!({ "ok": true, "hash": flow.reference.hash, "faults": [] }),
        Err(report) => json!({ "ok": false, "faults": report.faults }),
    };
    tell_faults(&report, &folder.display().to_string(), out)
}

/// The flow as a picture; none when it has faults, which are told.
pub(super) fn graph(folder: &Path, format: Picture, out: &mut Output) -> Result<Option<Vec<u8>>, Failure> {
    let _ = format;
    check(folder, out)?;
    Ok(None)
}

/// Makes a folder with a flow to begin with.
pub(super) fn new(folder: &Path, name: Option<&str>, out: &mut Output) -> Result<Exit, Failure> {
    let _ = (folder, name, out);
    Ok(Exit::Failed)
}

/// Prints the schema of a manifest, or which there are.
pub(super) fn schema(name: Option<&str>, out: &mut Output) -> Result<Exit, Failure> {
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
        Failure::NotFound(format!("there is no manifest {name}; there are: {known}"))
    })?;
    out.line(serde_json::to_string_pretty(&schema).unwrap_or_default())?;
    Ok(Exit::Done)
}
