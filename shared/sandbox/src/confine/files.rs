//! The part of the file system that a command sees: Landlock.

use super::Confinement;
use crate::run::Refusal;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use std::path::PathBuf;

/// The files that programs need to run: code, and data of the system.
#[rustfmt::skip]
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/proc",
    // Of /etc only the files that programs read for their setup, and no password, key or token of a service.
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/java",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/lsb-release",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/networks",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/perl",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/profile",
    "/etc/protocols",
    "/etc/python3",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
    "/sys/devices/system/cpu",
];

/// The prefixes of folders of interpreters in /etc; the version is behind it.
const INTERPRETERS: &[&str] = &["python3."];

/// Devices without data of anyone.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Terminals, for programs that run commands in one.
const TERMINALS: &[&str] = &["/dev/ptmx", "/dev/pts", "/dev/tty"];

/// The folders and files that commands can read and run.
#[derive(Debug)]
pub(crate) struct Readable {
    /// By paths without links.
    paths: Vec<PathBuf>,
    /// Links by which programs know them, with their targets.
    pub links: Vec<(PathBuf, PathBuf)>,
}

impl Readable {
    /// The system's and `more`, without anything in `hidden`, at any path: a host with workspaces in /opt does not show all of them to each command.
    pub fn new(more: &[PathBuf], hidden: &[PathBuf]) -> Self {
        let hidden: Vec<PathBuf> =
            hidden.iter().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone())).collect();
        let (mut paths, mut links) = (Vec::new(), Vec::new());
        let is_interpreter = |name: &str| INTERPRETERS.iter().any(|start| name.starts_with(start));
        let etc = std::fs::read_dir("/etc").into_iter().flatten().flatten().map(|entry| entry.path());
        let interpreters =
            etc.filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_interpreter));
        for path in SYSTEM.iter().map(PathBuf::from).chain(more.iter().cloned()).chain(interpreters) {
            // Systems have links for their folders: the targets are the paths.
            let Ok(at) = path.canonicalize() else { continue };
            without(at.clone(), &hidden, &mut paths);
            if at != path {
                links.push((path, at));
            }
        }
        Self { paths, links }
    }

    /// These paths, at the same places, and those that every command has.
    pub fn seen(paths: &[PathBuf]) -> Self {
        let own = ["/proc", "/etc/passwd", "/etc/group"].map(PathBuf::from);
        Self { paths: paths.iter().cloned().chain(own).collect(), links: Vec::new() }
    }

    /// Those of them that are in none of the others, and that no command has by itself.
    pub fn outermost(&self) -> Vec<PathBuf> {
        let own = ["/proc", "/etc/passwd", "/etc/group", "/dev", "/tmp"].map(PathBuf::from);
        let mut sorted: Vec<&PathBuf> = self.paths.iter().collect();
        sorted.sort();
        let mut found: Vec<PathBuf> = Vec::new();
        for path in sorted {
            let is_in = |around: &PathBuf| path.starts_with(around);
            if !own.iter().any(is_in) && !found.iter().any(is_in) {
                found.push(path.clone());
            }
        }
        found
    }
}

/// Adds a folder; or its entries, if some of them are hidden.
fn without(path: PathBuf, hidden: &[PathBuf], found: &mut Vec<PathBuf>) {
    if hidden.iter().any(|hidden| path.starts_with(hidden)) {
        return;
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(&path)) {
        return found.push(path);
    }
    for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
        // A link would open its target, which is handled at its own path.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            without(entry.path(), hidden, found);
        }
    }
}

/// Restricts this thread, as far as the kernel can. The version of Landlock that holds now.
pub(super) fn restrict(confinement: &Confinement) -> Result<u8, Refusal> {
    let abi = version(confinement.landlock);
    enforce(rules(confinement, abi), abi)
}

/// Restricts this thread to files that it can read and run, and to those that it can also change; sockets stay free.
pub(super) fn confine(readable: &Readable, writable: &[PathBuf]) -> Result<u8, Refusal> {
    let abi = version(u8::MAX);
    let rules = handled(abi, true).and_then(|handled| {
        handled
            .add_rules(path_beneath_rules(&readable.paths, AccessFs::from_read(abi)))?
            .add_rules(path_beneath_rules(DEVICES, devices()))?
            .add_rules(path_beneath_rules(TERMINALS, AccessFs::from_file(abi)))?
            .add_rules(path_beneath_rules(writable, AccessFs::from_all(abi)))
    });
    enforce(rules, abi)
}

fn enforce(rules: Result<landlock::RulesetCreated, RulesetError>, abi: ABI) -> Result<u8, Refusal> {
    let status = rules
        .and_then(landlock::RulesetCreated::restrict_self)
        .map_err(|error| Refusal::Failed(format!("Landlock refuses a rule: {error}")))?;
    match status.landlock {
        LandlockStatus::Available { effective_abi, .. }
            if status.ruleset != RulesetStatus::NotEnforced && status.no_new_privs =>
        {
            Ok((effective_abi as u8).min(abi as u8))
        }
        LandlockStatus::NotEnabled => Err(unconfined("it is not enabled when the kernel starts (`lsm=landlock,…`)")),
        _ => Err(unconfined("this kernel has none (Linux 5.13 and newer may)")),
    }
}

/// Takes all files and TCP ports away from this thread. The version of Landlock that holds now; 0 when the kernel has none.
pub(super) fn shut() -> Result<u8, RulesetError> {
    let abi = version(u8::MAX);
    let mut handled =
        Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::from_all(abi))?;
    if !Scope::from_all(abi).is_empty() {
        handled = handled.scope(Scope::from_all(abi))?;
    }
    if !AccessNet::from_all(abi).is_empty() {
        handled = handled.handle_access(AccessNet::from_all(abi))?;
    }
    let status = handled.create()?.restrict_self()?;
    Ok(match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => (effective_abi as u8).min(abi as u8),
        _ => 0,
    })
}

fn unconfined(why: &str) -> Refusal {
    Refusal::Refused(format!("commands are confined by Landlock, and cannot be here: {why}"))
}

/// Rules that allow nothing yet: files, signals to others, and sockets unless they are free.
fn handled(abi: ABI, network: bool) -> Result<landlock::RulesetCreated, RulesetError> {
    let all = AccessFs::from_all(abi);
    let mut handled = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(all)?;
    let scopes = Scope::from_all(abi);
    if !scopes.is_empty() {
        handled = handled.scope(scopes)?;
    }
    let sockets = AccessNet::from_all(abi);
    if !network && !sockets.is_empty() {
        handled = handled.handle_access(sockets)?;
    }
    handled.create()
}

fn devices() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::WriteFile
}

fn rules(confinement: &Confinement, abi: ABI) -> Result<landlock::RulesetCreated, RulesetError> {
    let (read, all) = (AccessFs::from_read(abi), AccessFs::from_all(abi));
    handled(abi, confinement.network)?
        .add_rules(path_beneath_rules(&confinement.readable.paths, read))?
        .add_rules(path_beneath_rules(DEVICES, devices()))?
        .add_rules(path_beneath_rules([&confinement.scratch], all))?
        .add_rule(PathBeneath::new(&confinement.root, read))
}

/// The newest version that is asked for and known here.
fn version(number: u8) -> ABI {
    match number {
        0 | 1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        6 => ABI::V6,
        7 => ABI::V7,
        8 => ABI::V8,
        _ => ABI::V9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_paths_are_left_out_of_the_folder_around_them() -> std::io::Result<()> {
        let home = tempfile::tempdir()?;
        let home = home.path().canonicalize()?;
        for folder in ["opt/tool", "opt/data/files/one", "opt/data/other"] {
            std::fs::create_dir_all(home.join(folder))?;
        }
        std::fs::write(home.join("opt/data/readme"), "")?;
        std::os::unix::fs::symlink(home.join("opt/data/files"), home.join("opt/data/link"))?;
        let mut found = Vec::new();
        without(home.join("opt"), &[home.join("opt/data/files")], &mut found);
        found.sort();
        assert_eq!(found, [home.join("opt/data/other"), home.join("opt/data/readme"), home.join("opt/tool")]);

        let mut nothing = Vec::new();
        without(home.join("opt/data/files/one"), &[home.join("opt/data/files")], &mut nothing);
        assert!(nothing.is_empty());
        Ok(())
    }
}
