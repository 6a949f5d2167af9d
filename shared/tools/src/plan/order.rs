//! The order of the steps of a plan that is written: what each needs, as the text says it, and whether that can come to an end. Pure.

use super::checklist::needs;
use domain::{Error, text::counted};
use std::collections::BTreeSet;

/// The lines of a plan, each with the steps that it needs: those that its own words name, and those that are given.
///
/// # Errors
/// `INVALID_ARGUMENT` about `depends_on` for a step that is not in the plan, and for steps that wait for each other.
pub(crate) fn with_needs<'a>(
    lines: &[String],
    given: impl Iterator<Item = (u32, &'a [u32])>,
) -> Result<Vec<String>, Error> {
    let mut all: Vec<(&str, BTreeSet<u32>)> =
        lines.iter().map(|line| needs(line)).map(|(title, needs)| (title, needs.into_iter().collect())).collect();
    let invalid = |why: String| Error::invalid("depends_on", why);
    for (step, on) in given {
        let at = step.checked_sub(1).map(|at| at as usize);
        let Some((_, needed)) = at.and_then(|at| all.get_mut(at)) else {
            return Err(invalid(format!("the plan has {}, and no step {step}", counted(lines.len(), "step"))));
        };
        needed.extend(on);
    }
    let numbers = 1..=u32::try_from(all.len()).unwrap_or(u32::MAX);
    for (step, (_, needed)) in numbers.clone().zip(&all) {
        if let Some(unknown) = needed.iter().find(|needed| !numbers.contains(needed)) {
            return Err(invalid(format!("step {step} needs step {unknown}, which is not in the plan")));
        }
    }
    let mut cleared: BTreeSet<u32> = BTreeSet::new();
    // Steps that can be done are, until none is left that can.
    while let Some(next) =
        numbers.clone().zip(&all).find(|(step, (_, needed))| !cleared.contains(step) && needed.is_subset(&cleared))
    {
        cleared.insert(next.0);
    }
    let stuck: Vec<String> = numbers.filter(|step| !cleared.contains(step)).map(|step| step.to_string()).collect();
    if !stuck.is_empty() {
        return Err(invalid(format!("the steps {} wait for each other", stuck.join(", ")))
            .hint("a step can only need steps that come to their end without it"));
    }
    let line = |(title, needed): (&str, BTreeSet<u32>)| {
        let numbers: Vec<String> = needed.iter().map(u32::to_string).collect();
        if numbers.is_empty() { title.to_owned() } else { format!("{title} (after {})", numbers.join(", ")) }
    };
    Ok(all.into_iter().map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lines: &[&str], given: &[(u32, &[u32])]) -> Result<Vec<String>, String> {
        let lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        with_needs(&lines, given.iter().copied()).map_err(|error| error.message)
    }

    #[test]
    fn a_line_says_what_its_step_needs() {
        let lines = ["one", "two (after 1)", "three (of them)"];
        assert_eq!(
            told(&lines, &[(3, &[2, 1]), (2, &[1])]),
            Ok(["one", "two (after 1)", "three (of them) (after 1, 2)"].map(str::to_owned).to_vec())
        );
    }

    #[test]
    fn an_order_without_an_end_is_refused_with_its_steps() {
        for (given, word) in [
            (vec![(4, [1].as_slice())], "no step 4"),
            (vec![(2, &[9])], "step 2 needs step 9"),
            (vec![(1, &[0])], "step 1 needs step 0"),
            (vec![(1, &[1])], "the steps 1 wait"),
            (vec![(2, &[3]), (3, &[2])], "the steps 2, 3 wait for each other"),
        ] {
            let refused = told(&["one", "two", "three"], &given);
            assert!(refused.as_ref().is_err_and(|why| why.contains(word)), "{refused:?}");
        }
    }
}
