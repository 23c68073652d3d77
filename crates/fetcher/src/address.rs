//! The address guard: which addresses belong to the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

/// No address of a host is public. Travels through the HTTP client's errors as the root cause.
#[derive(Clone, Debug, Error)]
#[error("{host} is at {address}, which is outside the public internet")]
pub(crate) struct RefusedAddress {
    /// The name or literal.
    pub(crate) host: String,
    /// Its first address.
    pub(crate) address: IpAddr,
}

/// IPv4 blocks that are not public: network and prefix length (IANA IPv4 Special-Purpose Address Registry, RFC 6890,
/// and RFC 5771 for multicast). Anycast services inside `192.0.0.0/24` serve no web pages, so the block is refused whole.
const SPECIAL_V4: [([u8; 4], u32); 16] = [
    ([0, 0, 0, 0], 8),       // "This network", RFC 791
    ([10, 0, 0, 0], 8),      // Private use, RFC 1918
    ([100, 64, 0, 0], 10),   // Shared address space of carrier-grade NAT, RFC 6598
    ([127, 0, 0, 0], 8),     // Loopback, RFC 1122
    ([169, 254, 0, 0], 16),  // Link-local, cloud metadata services included, RFC 3927
    ([172, 16, 0, 0], 12),   // Private use, RFC 1918
    ([192, 0, 0, 0], 24),    // IETF protocol assignments, RFC 6890
    ([192, 0, 2, 0], 24),    // Documentation, RFC 5737
    ([192, 31, 196, 0], 24), // AS112 sink for reverse names, RFC 7535
    ([192, 52, 193, 0], 24), // Automatic multicast tunnelling, RFC 7450
    ([192, 88, 99, 0], 24),  // 6to4 relay anycast, deprecated, RFC 7526
    ([192, 168, 0, 0], 16),  // Private use, RFC 1918
    ([192, 175, 48, 0], 24), // AS112 sink for reverse names, RFC 7534
    ([198, 18, 0, 0], 15),   // Benchmarking, RFC 2544
    ([198, 51, 100, 0], 24), // Documentation, RFC 5737
    ([203, 0, 113, 0], 24),  // Documentation, RFC 5737
];

/// IPv6 blocks inside the global unicast space `2000::/3` that are not public (IANA IPv6 Special-Purpose Address
/// Registry, RFC 6890). All else outside `2000::/3` is refused without a list, but for the forms that carry IPv4.
const SPECIAL_V6: [(u128, u32); 4] = [
    (0x2001 << 112, 23), // IETF protocol assignments, RFC 2928: Teredo (RFC 4380), benchmarking, ORCHID, DRIP
    (0x2001_0db8 << 96, 32), // Documentation, RFC 3849
    (0x2620_004f_8000 << 80, 48), // AS112 sink for reverse names, RFC 7534
    (0x3fff << 112, 20), // Documentation, RFC 9637
];

/// Returns whether an address belongs to the public internet, by the IANA special-purpose registries (RFC 6890).
///
/// An IPv6 address that carries an IPv4 address to which packets would go is judged by that: IPv4-mapped
/// (RFC 4291, section 2.5.5.2), NAT64 `64:ff9b::/96` (RFC 6052) and 6to4 `2002::/16` (RFC 3056).
///
/// ```
/// use fetcher::is_public_address;
/// assert!(is_public_address("93.184.215.14".parse()?));
/// assert!(!is_public_address("::ffff:169.254.169.254".parse()?));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[must_use]
pub fn is_public_address(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    // 224.0.0.0/3 is multicast (RFC 5771), reserved (RFC 1112, section 4) and limited broadcast (RFC 8190).
    if address.octets()[0] >= 224 {
        return false;
    }
    let bits = address.to_bits();
    !SPECIAL_V4.iter().any(|(network, prefix)| {
        let mask = u32::MAX << (32 - prefix);
        bits & mask == Ipv4Addr::from_octets(*network).to_bits()
    })
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let bits = address.to_bits();
    let has_prefix = |network: u128, prefix: u32| (bits ^ network) >> (128 - prefix) == 0;
    if let Some(mapped) = address.to_ipv4_mapped() {
        return is_public_v4(mapped);
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the embedded address is the part that is kept"
    )]
    if has_prefix(0x0064_ff9b << 96, 96) {
        return is_public_v4(Ipv4Addr::from_bits(bits as u32));
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the embedded address is the part that is kept"
    )]
    if has_prefix(0x2002 << 112, 16) {
        return is_public_v4(Ipv4Addr::from_bits((bits >> 80) as u32));
    }
    // Only 2000::/3 is delegated for global unicast (RFC 4291, section 2.4). Outside lie the unspecified and loopback
    // addresses, IPv4-compatible ones, local NAT64 (RFC 8215), discard and dummy prefixes (RFC 6666, RFC 9780),
    // segment routing (RFC 9602), unique local (RFC 4193), link-local, site-local (RFC 3879) and multicast.
    has_prefix(0x2 << 124, 3)
        && !SPECIAL_V6
            .iter()
            .any(|(network, prefix)| has_prefix(*network, *prefix))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

    use super::*;

    fn is_public(text: &str) -> bool {
        is_public_address(text.parse().unwrap())
    }

    #[test]
    fn special_purpose_blocks_are_refused_from_first_to_last_address() {
        for (first, last) in [
            ("0.0.0.0", "0.255.255.255"),
            ("10.0.0.0", "10.255.255.255"),
            ("100.64.0.0", "100.127.255.255"),
            ("127.0.0.0", "127.255.255.255"),
            ("169.254.0.0", "169.254.255.255"),
            ("172.16.0.0", "172.31.255.255"),
            ("192.0.0.0", "192.0.0.255"),
            ("192.0.2.0", "192.0.2.255"),
            ("192.88.99.0", "192.88.99.255"),
            ("192.168.0.0", "192.168.255.255"),
            ("198.18.0.0", "198.19.255.255"),
            ("198.51.100.0", "198.51.100.255"),
            ("203.0.113.0", "203.0.113.255"),
            ("224.0.0.0", "255.255.255.255"),
            ("::", "::ffff"),
            ("::7f00:1", "::a00:1"),
            ("64:ff9b:1::", "64:ff9b:1:ffff::"),
            ("100::", "100:0:0:1:ffff::"),
            ("2001::", "2001:1ff:ffff::"),
            ("2001:db8::", "2001:db8:ffff::"),
            ("3fff::", "3fff:fff:ffff::"),
            ("5f00::", "5f00:ffff::"),
            ("fc00::", "fdff:ffff::"),
            ("fe80::", "febf:ffff::"),
            ("fec0::", "feff:ffff::"),
            ("ff00::", "ffff:ffff::"),
        ] {
            assert!(!is_public(first) && !is_public(last), "{first} to {last}");
        }
    }

    #[test]
    fn neighbours_of_special_blocks_are_public() {
        for text in [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.0.3.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "203.0.112.255",
            "223.255.255.255",
            "2000::1",
            "2001:200::1",
            "2001:db7::1",
            "2001:db9::1",
            "2606:4700::1111",
            "3ffe::1",
            "2a00:1450::1",
        ] {
            assert!(is_public(text), "{text}");
        }
    }

    #[test]
    fn embedded_addresses_are_judged_by_what_they_carry() {
        for (private, public) in [
            ("::ffff:127.0.0.1", "::ffff:8.8.8.8"),
            ("64:ff9b::10.0.0.1", "64:ff9b::8.8.8.8"),
            ("2002:c0a8:0101::1", "2002:0808:0808::1"),
        ] {
            assert!(
                !is_public(private) && is_public(public),
                "{private}, {public}"
            );
        }
    }

    /// Each address as it would stand in a link: whatever its spelling, its canonical form is judged.
    #[test]
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    fn public_reports_on_addresses() {
        let Some(shared) = std::env::var_os("BLOOMCRAWL_CORPORA") else {
            eprintln!("skipped: BLOOMCRAWL_CORPORA is not set");
            return;
        };
        let path = std::path::Path::new(&shared).join("cases/public-reports.jsonl");
        let text = std::fs::read_to_string(path).unwrap();
        let cases = text
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let mut count = 0;
        for case in cases.filter(|case| case["op"] == "ip.blocked") {
            count += 1;
            let input = case["input"].as_str().unwrap();
            let authority = if input.contains(':') {
                format!("[{input}]")
            } else {
                input.to_owned()
            };
            let url = types::Canonicalizer::default()
                .canonicalize(&format!("http://{authority}/"))
                .unwrap();
            let is_blocked = !is_public(url.host().name().trim_matches(['[', ']']));
            assert_eq!(case["expect"], is_blocked, "{}: {input}", case["id"]);
        }
        assert!(count >= 17, "only {count} cases");
    }
}
