//! Where messages may go. A message is sent by the server, and users name its address: without a
//! check they could reach whatever the server can reach and they cannot, such as a service on
//! loopback or the metadata of a cloud machine.

use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::{Host, Url};

/// Networks that no message goes to unless the operator allows it: those of the IANA registries of
/// special-purpose addresses that are not reachable by everybody.
const REFUSED: &[(&str, &str)] = &[
    ("0.0.0.0/8", "this network"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "shared by a carrier"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "for protocols"),
    ("192.0.2.0/24", "for documentation"),
    ("192.88.99.0/24", "a relay"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "for benchmarks"),
    ("198.51.100.0/24", "for documentation"),
    ("203.0.113.0/24", "for documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    // An IPv4 address inside an IPv6 one is looked at as what it is, so what is left of these
    // networks has no meaning.
    ("::/96", "an IPv4 address"),
    ("64:ff9b:1::/48", "translated to private addresses"),
    ("100::/64", "discarded"),
    ("2001::/23", "for protocols"),
    ("2001:db8::/32", "for documentation"),
    ("2002::/16", "a relay"),
    ("3fff::/20", "for documentation"),
    ("5f00::/16", "for segment routing"),
    ("fc00::/7", "unique-local"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "site-local"),
    ("ff00::/8", "multicast"),
];

/// Where clouds tell a machine who it is, with the keys of its account. A network that is allowed
/// does not cover these: they have to be named.
const METADATA: &[IpAddr] = &[
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 23)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// Why a message does not go to an address. The address itself is not repeated: whoever can read a
/// log must not learn it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("the address of the message is no URL that begins with https:// or http://")]
    NoUrl,
    #[error("the address of the message is {kind}, and messages go only to public addresses")]
    NotPublic { kind: &'static str },
    #[error("the address of the message tells machines of a cloud who they are")]
    Metadata,
}

impl AddressError {
    /// What to do about it.
    pub fn next(&self) -> &'static str {
        match self {
            AddressError::NoUrl => "give a URL such as https://hooks.example.com/x",
            AddressError::NotPublic { .. } | AddressError::Metadata => {
                "give a public address, or have the server started with --notify-allow and the \
                 network of that address"
            }
        }
    }
}

/// Where messages may go.
#[derive(Debug, Clone, Default)]
pub struct NotifyAddresses {
    allowed: Vec<IpNet>,
    refused: Vec<(IpNet, &'static str)>,
}

impl NotifyAddresses {
    /// Public addresses, and those in these networks.
    pub fn new(allowed: Vec<IpNet>) -> NotifyAddresses {
        let net = |text: &str| text.parse().expect("the table has networks");
        let refused = REFUSED.iter().map(|(text, kind)| (net(text), *kind)).collect();
        NotifyAddresses { allowed, refused }
    }

    /// Whether a message may go to this address.
    pub fn check(&self, address: IpAddr) -> Result<(), AddressError> {
        let address = plain(address);
        let mut covers = self.allowed.iter().filter(|net| net.contains(&address));
        if METADATA.contains(&address) {
            let named = covers.any(|net| net.prefix_len() == net.max_prefix_len());
            return if named { Ok(()) } else { Err(AddressError::Metadata) };
        }
        if covers.next().is_some() {
            return Ok(());
        }
        match self.refused.iter().find(|(net, _)| net.contains(&address)) {
            Some((_, kind)) => Err(AddressError::NotPublic { kind }),
            None => Ok(()),
        }
    }

    /// Whether a URL can be right, before anything is looked up. A name may lead anywhere, so its
    /// addresses are checked when a message is sent.
    pub fn check_url(&self, url: &str) -> Result<Url, AddressError> {
        let url = Url::parse(url).map_err(|_| AddressError::NoUrl)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(AddressError::NoUrl);
        }
        match url.host() {
            None => return Err(AddressError::NoUrl),
            Some(Host::Ipv4(address)) => self.check(address.into())?,
            Some(Host::Ipv6(address)) => self.check(address.into())?,
            Some(Host::Domain(name)) => {
                let name = name.trim_end_matches('.');
                if name == "localhost" || name.ends_with(".localhost") {
                    let loopback = self.check(Ipv4Addr::LOCALHOST.into());
                    loopback.or_else(|_| self.check(Ipv6Addr::LOCALHOST.into()))?;
                }
            }
        }
        Ok(url)
    }
}

/// The IPv4 address that an IPv6 address stands for, or the address itself.
fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    if let Some(v4) = v6.to_ipv4_mapped() {
        return v4.into();
    }
    match v6.segments() {
        // Compatible, and translated (NAT64). `::` and `::1` are addresses of their own.
        [0, 0, 0, 0, 0, 0, a, b] if a != 0 => v4(a, b).into(),
        [0x64, 0xff9b, 0, 0, 0, 0, a, b] => v4(a, b).into(),
        _ => address,
    }
}

fn v4(a: u16, b: u16) -> Ipv4Addr {
    let ([w, x], [y, z]) = (a.to_be_bytes(), b.to_be_bytes());
    Ipv4Addr::new(w, x, y, z)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn no_message_goes_to_an_address_that_is_not_public() {
        let all = NotifyAddresses::new(Vec::new());
        let refused = [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.254",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "169.254.1.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "192.0.0.192",
            "198.18.0.1",
            "224.0.0.1",
            "239.255.255.250",
            "255.255.255.255",
            "168.63.129.16",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2001::1",
            "2002:7f00:1::1",
            "fc00::1",
            "fd00:ec2::254",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
        ];
        for address in refused {
            assert!(all.check(ip(address)).is_err(), "{address}");
        }
        let public = [
            "1.1.1.1",
            "100.63.255.255",
            "100.128.0.1",
            "172.32.0.1",
            "8.8.8.8",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2606:4700::1111",
            "2a00::1",
        ];
        for address in public {
            assert_eq!(all.check(ip(address)), Ok(()), "{address}");
        }
    }

    #[test]
    fn a_network_that_is_allowed_is_reached_and_metadata_only_by_name() {
        let nets = ["10.0.0.0/8", "fd00::/8", "169.254.0.0/16"];
        let some = NotifyAddresses::new(nets.iter().map(|net| net.parse().unwrap()).collect());
        assert_eq!(some.check(ip("10.1.2.3")), Ok(()));
        assert_eq!(some.check(ip("::ffff:10.1.2.3")), Ok(()));
        assert_eq!(some.check(ip("fd12::1")), Ok(()));
        assert!(some.check(ip("192.168.0.1")).is_err());
        for address in ["169.254.169.254", "fd00:ec2::254", "::ffff:169.254.169.254"] {
            assert_eq!(some.check(ip(address)), Err(AddressError::Metadata), "{address}");
        }
        let named = NotifyAddresses::new(vec!["169.254.169.254/32".parse().unwrap()]);
        assert_eq!(named.check(ip("169.254.169.254")), Ok(()));
    }

    #[test]
    fn a_url_with_an_address_in_it_is_refused_however_it_is_written() {
        let all = NotifyAddresses::new(Vec::new());
        let refused = [
            "https://127.0.0.1/x",
            "https://127.1/x",
            "https://0x7f000001/",
            "https://2130706433/",
            "https://0177.0.0.1/",
            "https://[::1]:8443/",
            "https://[::ffff:7f00:1]/",
            "https://localhost/",
            "https://localhost./",
            "https://a.localhost/",
            "https://user@10.0.0.1/",
            "https://169.254.169.254/latest/meta-data",
            "ftp://example.com/",
            "https://",
            "file:///etc/passwd",
            "not a url",
        ];
        for url in refused {
            assert!(all.check_url(url).is_err(), "{url}");
        }
        assert!(all.check_url("https://hooks.slack.com/services/x").is_ok());
        let own = NotifyAddresses::new(vec!["127.0.0.0/8".parse().unwrap()]);
        assert!(own.check_url("http://localhost:80/").is_ok());
        assert!(own.check_url("http://127.0.0.1:80/").is_ok());
    }
}
