use super::*;

#[test]
fn a_cookie_is_found_by_its_whole_name_and_once() {
    let cookie = SessionCookie::new(8377, false);
    for (header, expected) in [
        (None, None),
        (Some("acheron-8377=ach_1"), Some("ach_1")),
        (Some("a=b; acheron-8377=ach_1; c=d"), Some("ach_1")),
        (Some("acheron-837=ach_1"), None),
        (Some("xacheron-8377=ach_1"), None),
        (Some("acheron-8377=ach_1; acheron-8377=ach_2"), None),
        (Some("acheron-8377"), None),
    ] {
        assert_eq!(cookie.word(header), expected, "{header:?}");
    }
    assert!(!cookie.set("x", 1).contains("Secure") && SessionCookie::new(1, true).set("x", 1).ends_with("; Secure"));
}

#[test]
fn only_the_own_page_asks_with_the_cookie() {
    let ours = Some("http://127.0.0.1:8377");
    for (changes, site, origin, allowed) in [
        (false, Some("same-origin"), None, true),
        (true, Some("same-origin"), ours, true),
        (false, Some("none"), None, true),
        (true, Some("none"), None, false),
        (false, Some("same-site"), None, false),
        (true, Some("same-site"), ours, false),
        (false, Some("cross-site"), None, false),
        (false, Some("?"), None, false),
        (false, None, None, true),
        (true, None, None, false),
        (true, None, ours, true),
    ] {
        let request = BrowserRequest { changes, site, origin };
        assert_eq!(foreign(&request).is_none(), allowed, "{changes} {site:?} {origin:?}");
    }
}
