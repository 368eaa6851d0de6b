//! Certificates in files that may have more in them.

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

#[cfg(test)]
mod tests {
    use super::*;

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
