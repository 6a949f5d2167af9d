//! How many connections there may be: as many as the limit of open files allows, and a share of them per client.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use stream::ServeOptions;

/// More open files than this no hub needs, and some systems have no limit at all.
const ENOUGH: u64 = 1 << 17;

/// Raises the soft limit of descriptors to the hard one, as servers do: the soft one is for programs that use `select`. Returns
/// how many there are.
pub(crate) fn raise_descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let wanted = wanted(&limit);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum });
    if let Err(error) = raised {
        tracing::warn!(%error, "the limit of open files cannot be raised");
        return limit.current.unwrap_or(ENOUGH);
    }
    wanted
}

/// The soft limit to ask for: the hard one as far as it is of use, and no less than there is.
fn wanted(limit: &Rlimit) -> u64 {
    limit.maximum.unwrap_or(ENOUGH).min(ENOUGH).max(limit.current.unwrap_or(ENOUGH))
}

/// Connections take half of the descriptors at most: the rest is for files, commands and models, so that clients who only hold connections
/// open stop no work. One client takes a quarter of the connections, or as many as the configuration says.
pub(crate) fn within(descriptors: u64, per_address: Option<usize>) -> ServeOptions {
    let usual = ServeOptions::default();
    let half = usize::try_from(descriptors / 2).unwrap_or(usize::MAX).max(1);
    let max_connections = usual.max_connections.min(half);
    let share = per_address.unwrap_or(max_connections / 4).max(1);
    ServeOptions { max_connections, max_per_address: Some(share), ..usual }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_raised_to_the_hard_one_and_never_lowered() {
        let check = |current, maximum, expected| assert_eq!(wanted(&Rlimit { current, maximum }), expected);
        check(Some(1024), Some(20_000), 20_000);
        check(Some(1024), Some(1024), 1024);
        check(Some(1024), Some(1 << 20), ENOUGH);
        check(Some(1024), None, ENOUGH);
        check(Some(1 << 20), Some(1 << 20), 1 << 20);
        check(None, None, ENOUGH);
    }

    #[test]
    fn a_raised_limit_is_there_afterwards() {
        let raised = raise_descriptors();
        assert_eq!(getrlimit(Resource::Nofile).current, Some(raised));
        assert_eq!(raise_descriptors(), raised);
    }

    #[test]
    fn connections_leave_half_of_the_descriptors_and_one_client_leaves_most_connections() {
        let check = |descriptors, per_address, expected: (usize, usize)| {
            let options = within(descriptors, per_address);
            assert_eq!((options.max_connections, options.max_per_address), (expected.0, Some(expected.1)));
            assert!(!options.bounds_loopback, "a proxy on this machine is not bounded");
        };
        check(1024, None, (512, 128));
        check(1 << 17, None, (16 * 1024, 4096));
        check(1, None, (1, 1));
        check(1024, Some(500), (512, 500));
        check(1024, Some(0), (512, 1));
    }
}
