//! The rules of the house that a compiler cannot check, as tests over the manifests, the resolved graph and the files.
//!
//! Each failure lists every place at fault and the remedy. Nothing needs to be installed for them: the checks of cargo-deny and cargo-machete for
//! licences, bans and unused dependencies are here too.

#[cfg(test)]
mod access;
#[cfg(test)]
mod arrows;
#[cfg(test)]
mod configuration;
#[cfg(test)]
mod dashboards;
#[cfg(test)]
mod dependencies;
#[cfg(test)]
mod findings;
#[cfg(test)]
mod folders;
#[cfg(test)]
mod glossary;
#[cfg(test)]
mod licences;
#[cfg(test)]
mod modules;
#[cfg(test)]
mod names;
#[cfg(test)]
mod one_process;
#[cfg(test)]
mod paragraphs;
#[cfg(test)]
mod repository;
#[cfg(test)]
mod sleeps;
#[cfg(test)]
mod sources;
#[cfg(test)]
mod targets;
#[cfg(test)]
mod test_names;
#[cfg(test)]
mod toolchains;
#[cfg(test)]
mod workspaces;
