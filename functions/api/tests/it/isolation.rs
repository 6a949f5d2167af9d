//! Tenants are kept apart, on every route of the document: [`rows`] has a row for each, and a route without one fails.
//!
//! Two tenants have one of everything. Each row is called with every credential that must not open it, and with each id in its
//! path, query and body swapped for the other tenant's. The answer is always 401, 403 or 404, and never holds a word that the
//! other tenant wrote. So that a 404 means something, the same call is let in for the least person with the least credential.

mod attacks;
mod authors;
mod coding_agents;
mod deletion;
mod export_import;
mod file_writers;
mod flows_at_doors;
mod header;
mod homes;
mod issuer_keys;
mod langgraph;
mod limits;
mod members;
mod modes;
mod roles;
mod route_table;
mod row;
mod rows;
mod streams;
mod transfers;
mod world;
