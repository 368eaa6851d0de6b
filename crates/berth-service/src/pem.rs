//! Certificates in files that may have more in them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The certificates of a PEM file, and nothing else of it: many a file has the key, too.
pub fn certificates(pem: &str) -> String {
    const FIRST: &str = "-----BEGIN CERTIFICATE-----";
    const LAST: &str = "-----END CERTIFICATE-----";
    let mut certificates = String::new();
    for (at, _) in pem.match_indices(FIRST) {
        let Some((body, _)) = pem[at + FIRST.len()..].split_once(LAST) else { continue };
        // One that was cut off is followed by something else.
        if !body.contains("-----") {
            certificates.extend([FIRST, body, LAST, "\n"]);
        }
    }
    certificates
}

/// Whether one of these certificates is self-signed. A client that trusts only such a file needs a root,
/// because it verifies the whole chain.
pub fn has_root(pem: &str) -> bool {
    let bodies = pem.split("-----BEGIN CERTIFICATE-----").skip(1);
    let bodies = bodies.filter_map(|rest| Some(rest.split_once("-----END")?.0));
    bodies.into_iter().any(|body| {
        let letters: String = body.split_ascii_whitespace().collect();
        STANDARD.decode(letters).ok().and_then(|der| is_root(&der)).unwrap_or(false)
    })
}

/// Whether the issuer equals the subject; `None` if this is not a certificate.
fn is_root(der: &[u8]) -> Option<bool> {
    const VERSION: u8 = 0xa0;
    let (_, certificate, _) = element(der)?;
    let (_, mut signed, _) = element(certificate)?;
    if signed.first() == Some(&VERSION) {
        signed = element(signed)?.2;
    }
    // Skip the serial number and the signature algorithm.
    let rest = element(element(signed)?.2)?.2;
    let (_, issuer, rest) = element(rest)?;
    // Skip the validity.
    let (_, subject, _) = element(element(rest)?.2)?;
    Some(issuer == subject)
}

/// Splits off the first DER element: its tag, its content and the rest.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit));
            (length, rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate up to its subject, with a length of more than one byte.
    fn certificate_of(issuer: &str, subject: &str) -> String {
        let wrap = |tag: u8, content: &[u8]| {
            let length = u16::try_from(content.len()).unwrap().to_be_bytes();
            [&[tag, 0x82], &length[..], content].concat()
        };
        let name = |name: &str| wrap(0x30, &wrap(0x0c, name.repeat(40).as_bytes()));
        let signed = [
            wrap(0xa0, &[2, 1, 2]),
            wrap(2, &[7]),
            wrap(0x30, &[]),
            name(issuer),
            wrap(0x30, &[]),
            name(subject),
        ];
        let der = wrap(0x30, &wrap(0x30, &signed.concat()));
        let text = STANDARD.encode(der);
        format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
    }

    #[test]
    fn a_root_is_its_own_issuer() {
        let (root, leaf) = (certificate_of("root", "root"), certificate_of("root", "leaf"));
        assert!(has_root(&root) && !has_root(&leaf));
        assert!(has_root(&format!("{leaf}{root}")));
        assert!(!has_root("-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n"));
    }

    #[test]
    fn of_a_file_with_a_key_jobs_get_the_certificates_alone() {
        let certificate =
            |text| format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
        let chain = [certificate("bGVhZg=="), certificate("cm9vdA==")].concat();
        for kind in ["PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY", "ENCRYPTED PRIVATE KEY"] {
            let key = format!("-----BEGIN {kind}-----\nc2VjcmV0\n-----END {kind}-----\n");
            let middle = format!("{}{key}{}", certificate("bGVhZg=="), certificate("cm9vdA=="));
            let cut = format!("{chain}-----BEGIN CERTIFICATE-----\nYQ==\n{key}");
            for pem in [format!("{key}{chain}"), format!("{chain}{key}"), middle, cut] {
                assert_eq!(certificates(&pem), chain);
            }
            let one_line = format!("-----BEGIN CERTIFICATE-----YQ=={key}-----END CERTIFICATE-----");
            assert_eq!(certificates(&one_line), "");
        }
        assert_eq!(certificates("c2VjcmV0"), "");
    }
}
