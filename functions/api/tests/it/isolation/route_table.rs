//! The table is whole: each route has its row, and each way into a workspace needs a role there.

use super::rows::{Needs, ROWS};
use crate::openapi::operations;
use identity::Action;
use std::collections::BTreeSet;

#[test]
fn every_route_of_the_document_has_its_row_and_no_other_has() {
    let rows: BTreeSet<String> = ROWS.iter().map(|row| row.route.to_owned()).collect();
    assert_eq!(rows.len(), ROWS.len(), "a route has one row");
    let missing: Vec<_> = operations().difference(&rows).cloned().collect();
    assert!(missing.is_empty(), "give these routes a row, with the rights that they need and a call: {missing:#?}");
    let gone: Vec<_> = rows.difference(&operations()).cloned().collect();
    assert!(gone.is_empty(), "these routes are gone: {gone:#?}");
}

#[test]
fn every_route_into_a_workspace_needs_a_role_there() {
    for row in ROWS {
        let inside = row.route.contains("/{workspace_id}") || row.query.contains("{workspace_id}");
        assert_eq!(matches!(row.needs, Needs::In(_)), inside, "{}", row.route);
        // The address of a receiver may have a token in it: who may not set it does not see it.
        let is_for_admins = row.route.contains("/webhooks");
        let ends = [
            "/check",
            "/checkpoint",
            "/count",
            "/history",
            "/mcp",
            "/namespaces",
            "/search",
            "/stream-tickets",
            "/presence",
        ];
        let reads = row.method() == "GET" && !is_for_admins || ends.iter().any(|end| row.route.ends_with(end));
        if let Needs::In(action) = row.needs {
            assert_eq!(action == Action::Read, reads, "{} changes something, or does not", row.route);
        }
    }
}
