//! Policies that look at names, and names that tell what a file is made of.

use super::*;

#[test]
fn a_policy_looks_at_names_however_it_comes_by_the_path() {
    for path_of in ["resource", "{x: resource}.x", "{Var: resource}.Var", "(if true then resource else resource)"] {
        let set = own(&format!(
            r#"forbid (principal is Agent, action == Action::"read", resource) when {{ {path_of}.name like "*.env" }};"#
        ));
        for (at, may) in [("/projects/x/a.rs", true), ("/projects/x/.env", false), ("/projects/x/b.rs", true)] {
            assert_eq!(set.decide(&agent(ANN), Action::Read, &path(at)).is_permit(), may, "{path_of}: {at}");
        }
    }
}

#[test]
fn a_conversion_is_read_by_those_who_read_its_document() {
    let set = own(r#"
        forbid (principal, action == Action::"read", resource == Path::"/data/pay.pdf") unless { principal in Role::"owner" };
        forbid (principal, action == Action::"list", resource == Path::"/data/mail.eml") unless { principal in Role::"owner" };
    "#);
    let (ann, bob) = (person(ANN, Role::Owner), person(BOB, Role::Editor));
    let may = |subject: &Subject, action, at: &str| set.decide(subject, action, &path(at)).is_permit();
    for at in [
        "/data/pay.pdf",
        "/data/pay.pdf.md",
        "/data/pay.pdf.attachments/a.txt",
        "/data/mail.eml.md",
        "/data/mail.eml.attachments/deep/b.pdf.md",
    ] {
        assert!(may(&ann, Action::Read, at) && !may(&bob, Action::Read, at), "{at}");
    }
    for at in ["/data/pay.md", "/data/other.pdf.md", "/data/mail.eml.txt", "/projects/pay.pdf.md"] {
        assert!(may(&bob, Action::Read, at), "{at}");
    }
    assert!(may(&bob, Action::List, "/data/pay.pdf.md") && may(&bob, Action::Write, "/data/pay.pdf.md"));
    for at in ["/data/mail.eml.md", "/data/mail.eml.attachments"] {
        assert!(!set.shows(&bob, &path(at)) && !may(&bob, Action::Write, at), "{at}");
    }
    let inside = set.decide_in(&bob, Action::List, &path("/data/mail.eml.attachments")).unwrap();
    assert_eq!((inside.effect, set.decide_in(&bob, Action::Read, &path("/data"))), (Effect::Deny, None));
    let named = set.named_below(&path("/data"));
    for at in ["/data/pay.pdf", "/data/pay.pdf.md", "/data/mail.eml.attachments"] {
        assert!(named.contains(&path(at)), "a command must not see {at}: {named:?}");
    }
    let by_name =
        own(r#"forbid (principal is Agent, action == Action::"read", resource) when { resource.name like "*.pdf" };"#);
    assert!(!by_name.decide(&agent(ANN), Action::Read, &path("/projects/a.pdf.md")).is_permit());
    assert!(by_name.decide(&agent(ANN), Action::Read, &path("/projects/a.txt.md")).is_permit());
}
