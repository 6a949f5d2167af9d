//! Tells public addresses from private ones. Any author of files can write manifests and commands; these must not make the host connect to
//! services that only the host can reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is of the public internet: not of a private network, not of one machine, of no group and of no example.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let shared = a == 100 && (64..128).contains(&b);
    let special = (a, b, c) == (192, 0, 0) || (a == 198 && (b == 18 || b == 19)) || a >= 240 || a == 0;
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_unspecified()
        || shared
        || special)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, third, ..] = address.segments();
    // An address that embeds one of version 4 leads to that one.
    if let Some(inside) = address.to_ipv4() {
        return is_public_v4(inside);
    }
    let translated = (first == 0x64 && second == 0xff9b) || first == 0x2002;
    let documentation = first == 0x2001 && (second == 0xdb8 || second < 0x200);
    let global = (first & 0xe000) == 0x2000;
    global && !translated && !documentation && third != 0x5efe
}
