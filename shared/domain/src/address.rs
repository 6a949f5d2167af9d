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
    // An address that embeds one of version 4 leads to that one.
    if let Some(inside) = address.to_ipv4() {
        return is_public_v4(inside);
    }
    let [first, second, _, _, fifth, sixth, ..] = address.segments();
    let is_global = (first & 0xe000) == 0x2000;
    // 6to4 (RFC 3056), and ISATAP in any network (RFC 5214 §6.1): the way goes on to an address of version 4.
    let is_tunnel = first == 0x2002 || ((fifth & 0xfdff) == 0 && sixth == 0x5efe);
    // Addresses of protocols, Teredo among them (2001::/23), and of examples (RFC 3849, RFC 9637).
    let is_special = (first == 0x2001 && (second < 0x200 || second == 0xdb8)) || (first == 0x3fff && second < 0x1000);
    is_global && !is_tunnel && !is_special
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn an_address_that_leads_to_a_private_one_is_not_public() {
        let check = |text: &str, expected: bool| assert_eq!(is_public(text.parse().unwrap()), expected, "{text}");
        for public in ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "2a00:1450:5efe::1"] {
            check(public, true);
        }
        for private in ["10.0.0.1", "100.64.0.1", "169.254.169.254", "192.0.2.1", "0.0.0.0", "255.255.255.255"] {
            check(private, false);
        }
        for private in ["::1", "::ffff:10.0.0.1", "::a00:1", "64:ff9b::a00:1", "fe80::1", "fd00::1", "ff02::1"] {
            check(private, false);
        }
        for tunnel in ["2002:a00:1::1", "2001:0:1::1", "2a00:1450::5efe:a00:1", "2a00:1450::200:5efe:a00:1"] {
            check(tunnel, false);
        }
        for example in ["2001:db8::1", "3fff::1", "3fff:fff::1"] {
            check(example, false);
        }
    }
}
