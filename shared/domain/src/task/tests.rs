use super::*;
use std::collections::BTreeSet;

const DRAWN: Uuid = Uuid::from_u128(0x019b_f537_f228_7cd3_aa1c_3da8_af30_2e12);

fn subtask(index: u32) -> ChildName {
    ChildName(format!("items/worker[{index}]").into())
}

#[test]
fn ids_of_siblings_lie_beside_each_other_in_their_order() {
    let root = TaskId::root(DRAWN);
    let children: Vec<_> = (0..65_536).map(|index| root.child(&subtask(index))).collect();
    assert!(children.is_sorted());
    assert_eq!(children[3].to_string(), "c8897b74-0003-8af2-8734-cf21ee73a499");
    // Those of another parent lie elsewhere.
    let (first, last) = (children[7].child(&subtask(0)), children[7].child(&subtask(65_535)));
    assert!(first < last && (last < children[0] || first > children[65_535]));
    // A split may be larger.
    let more = (65_536..100_000).map(|index| root.child(&subtask(index)));
    assert_eq!(more.chain(children.iter().copied()).collect::<BTreeSet<_>>().len(), 100_000);
    let clones = ["review/coder", "review/tester"].map(|name| root.child(&ChildName(name.into())));
    assert_ne!(clones[0], clones[1]);
    assert!([root, children[7], first, clones[0]].iter().all(|id| id.0.get_version_num() == 8));
}

#[test]
fn children_of_a_task_from_before_have_the_ids_that_they_had() {
    let child = TaskId(DRAWN).child(&subtask(3));
    assert_eq!(child.to_string(), "da534444-7f67-5333-9e9f-ff029440c2f9");
}
