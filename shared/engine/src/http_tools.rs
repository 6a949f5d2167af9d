//! HTTP tools of flows beside those of the workspace, for the check of a flow.

use flow::{
    Flow,
    load::{ManifestFault, Report},
    tool_declarations::Declaration,
};
use workspace::Workspace;

/// A fault for each HTTP tool of a flow whose name one of the workspace has. Agents of the flow would have the flow's own one, and nobody who reads
/// the manifests could tell.
///
/// # Errors
/// The report, where there is such a tool.
pub(crate) async fn check(workspace: &Workspace, flow: &Flow) -> Result<(), Report> {
    let mut faults = Vec::new();
    for (file, text) in &*tools::servers_of(workspace).await.tools {
        // A file that declares nothing takes no name.
        let Ok(declared) = Declaration::read(file, text) else { continue };
        let Some(own) = flow.http_tools.get(&declared.called(file)) else { continue };
        faults.push(ManifestFault {
            file: own.file.clone(),
            line: own.line,
            column: 1,
            code: "taken_name",
            message: format!("the workspace has a tool `{}` already: /system/tools/{file} declares it", own.name),
            hint: "give one of them another name, or remove this file: the flow can bind that of the workspace".into(),
        });
    }
    faults.sort();
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Report { faults, notes: flow.notes.clone() }),
    }
}
