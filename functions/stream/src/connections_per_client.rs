//! The bound on the connections of each client, by its address: one client does not take the places of all others.

use parking_lot::Mutex;
use std::{
    collections::{HashMap, hash_map::Entry},
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

/// The open connections of each client, and the bound on them.
#[derive(Debug)]
pub(crate) struct ConnectionsPerClient {
    most: Option<usize>,
    bounds_loopback: bool,
    open: Mutex<HashMap<IpAddr, usize>>,
}

impl ConnectionsPerClient {
    /// At most `most` connections per client; none is no bound. Clients on this machine have none unless `bounds_loopback`.
    pub fn new(most: Option<usize>, bounds_loopback: bool) -> Arc<Self> {
        Arc::new(Self { most, bounds_loopback, open: Mutex::default() })
    }

    /// A place for a further connection from this address; none when its client has as many as it may.
    pub fn place(self: &Arc<Self>, address: IpAddr) -> Option<ClientConnection> {
        let client = client_at(address);
        let Some(most) = self.most.filter(|_| self.bounds_loopback || !client.is_loopback()) else {
            return Some(ClientConnection(None));
        };
        let mut open = self.open.lock();
        let count = open.get(&client).copied().unwrap_or(0);
        if count >= most {
            return None;
        }
        open.insert(client, count + 1);
        Some(ClientConnection(Some((self.clone(), client))))
    }
}

/// A place of a client, given back when dropped. It is empty for a client without a bound.
#[derive(Debug)]
pub(crate) struct ClientConnection(Option<(Arc<ConnectionsPerClient>, IpAddr)>);

impl Drop for ClientConnection {
    fn drop(&mut self) {
        let Some((connections, client)) = &self.0 else { return };
        if let Entry::Occupied(mut count) = connections.open.lock().entry(*client) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// The client at an address. An IPv4 client is the same one over a socket of IPv6. A client of IPv6 has a network of 64 bits and can
/// come from any address in it, but for the addresses of one link.
fn client_at(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() && !address.is_unicast_link_local() => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn at(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_client_has_so_many_places_and_gets_one_back_for_each_connection_that_ends() {
        let connections = ConnectionsPerClient::new(Some(2), false);
        let first = connections.place(at("192.0.2.1")).unwrap();
        let second = connections.place(at("192.0.2.1")).unwrap();
        assert!(connections.place(at("192.0.2.1")).is_none());
        let other = connections.place(at("192.0.2.2")).unwrap();
        drop(first);
        let third = connections.place(at("192.0.2.1")).unwrap();
        assert!(connections.place(at("192.0.2.1")).is_none());
        drop((second, third, other));
        assert!(connections.open.lock().is_empty(), "clients that left take memory");
    }

    #[test]
    fn a_client_is_the_same_one_at_all_of_its_addresses() {
        let check = |one: &str, other: &str, same: bool| {
            let connections = ConnectionsPerClient::new(Some(1), false);
            let held = connections.place(at(one)).unwrap();
            assert_eq!(connections.place(at(other)).is_none(), same, "{one} {other}");
            drop(held);
        };
        check("192.0.2.1", "::ffff:192.0.2.1", true);
        check("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true);
        check("2001:db8::1", "2001:db8:0:1::1", false);
        check("fe80::1", "fe80::2", false);
    }

    #[test]
    fn clients_on_this_machine_have_no_bound_unless_it_is_wanted() {
        for loopback in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
            let (free, bound) = (ConnectionsPerClient::new(Some(1), false), ConnectionsPerClient::new(Some(1), true));
            let held: Vec<_> = (0..3).map(|_| free.place(at(loopback)).unwrap()).collect();
            assert!(free.open.lock().is_empty());
            let place = bound.place(at(loopback)).unwrap();
            assert!(bound.place(at(loopback)).is_none(), "{loopback}");
            drop((held, place));
        }
        let unbound = ConnectionsPerClient::new(None, true);
        let held: Vec<_> = (0..3).map(|_| unbound.place(at("192.0.2.1")).unwrap()).collect();
        assert_eq!(held.len(), 3);
    }
}
