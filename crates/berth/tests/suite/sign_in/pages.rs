//! What a browser gets that is not the API: the portal, or a page that says that it is not there.

use super::browser::Browser;
use crate::machine::server::Server;

#[test]
fn every_address_is_a_page_for_a_browser_and_the_api_keeps_its_problems() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let url = &server.url;
    let mut browser = Browser::default();
    for path in ["/", "/jobs", "/jobs/17", "/device?code=BCDF-GHJK"] {
        let seen = browser.go(&format!("{url}{path}"));
        assert_eq!(
            (seen.status, seen.header("content-type")),
            (200, Some("text/html; charset=utf-8"))
        );
        let policy = seen.header("content-security-policy").expect("a policy");
        for part in
            ["default-src 'self'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"]
        {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("script-src 'self' 'unsafe"), "{policy}");
        for (header, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(seen.header(header), Some(value));
        }
        assert!(!seen.body.contains("<script>"), "no script stands in a page");
    }
    for (path, accept) in
        [("/v1/nothing", "text/html"), ("/jobs", "application/json"), ("/assets/x.js", "text/html")]
    {
        let seen = browser.send("GET", &format!("{url}{path}"), &[("accept", accept)], "");
        assert_eq!((seen.status, seen.code().as_deref()), (404, Some("BRT0010")), "{path}");
    }
    let api = browser.send("GET", &format!("{url}/v1/version"), &[], "");
    assert_eq!(api.header("cache-control"), Some("no-store"));
    assert_eq!(api.header("x-content-type-options"), Some("nosniff"));
    assert!(
        api.header("content-security-policy").expect("a policy").starts_with("default-src 'none'")
    );
    let head = browser.send("HEAD", &format!("{url}/"), &[("accept", "text/html")], "");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}
