use proptest::prelude::*;

use super::*;

fn rules(texts: &[&str]) -> HostRules {
    texts.iter().map(|text| text.parse::<HostRule>().unwrap()).collect()
}

fn to(text: &str) -> Destination {
    Destination::parse(text, None).unwrap()
}

fn allowed(texts: &[&str], host: &str) -> bool {
    rules(texts).check_host(&to(host)).is_ok()
}

fn reached(texts: &[&str], host: &str, address: &str) -> bool {
    let (rules, host) = (rules(texts), to(host));
    rules.check_host(&host).is_ok() && rules.check_address(&host, address.parse().unwrap()).is_ok()
}

#[test]
fn a_rule_allows_the_host_and_the_port_that_it_names_and_nothing_else() {
    let github = ["api.github.com:443"];
    assert!(allowed(&github, "api.github.com:443") && allowed(&github, "API.GITHUB.COM.:443"));
    for other in ["github.com:443", "api.github.com:80", "x.api.github.com:443", "api.github.com.evil.example:443"] {
        assert!(!allowed(&github, other), "{other}");
    }
    let below = ["*.example.org"];
    assert!(allowed(&below, "a.example.org:443") && allowed(&below, "a.b.example.org:443"));
    for other in ["example.org:443", "evilexample.org:443", "a.example.org:80", "a.example.org.evil.example:443"] {
        assert!(!allowed(&below, other), "{other}");
    }
    assert!(allowed(&["*:443"], "any.example:443") && !allowed(&["*:443"], "93.184.216.34:443"));
    assert!(allowed(&["10.0.0.0/8:22"], "10.1.2.3:22") && !allowed(&["10.0.0.0/8:22"], "11.1.2.3:22"));
    assert!(allowed(&["10.1.2.3:22"], "[::ffff:10.1.2.3]:22") && !allowed(&["10.1.2.3:22"], "10.1.2.4:22"));
    assert!(allowed(&["[fd00::/8]:443"], "[fd12::1]:443") && !allowed(&["[fd00::/8]:443"], "[fe80::1]:443"));
    assert!(!allowed(&[], "api.github.com:443"));
}

#[test]
fn a_name_leads_to_no_private_address_unless_a_rule_names_the_address() {
    let name = ["db.example:443"];
    assert!(reached(&name, "db.example:443", "93.184.216.34"));
    let inner = ["127.0.0.1", "10.1.2.3", "169.254.169.254", "100.64.0.1", "224.0.0.1", "::1", "fd00::1", "fe80::1"];
    let disguised = ["::ffff:10.1.2.3", "64:ff9b::a01:203", "2002:a01:203::1", "::10.1.2.3"];
    for address in inner.into_iter().chain(disguised) {
        assert!(!reached(&name, "db.example:443", address), "{address}");
        assert!(!reached(&["*:443"], "db.example:443", address), "{address}");
    }
    assert!(reached(&["db.example:443", "10.1.2.3:443"], "db.example:443", "10.1.2.3"));
    assert!(reached(&["db.example:443", "10.0.0.0/8:443"], "db.example:443", "10.1.2.3"));
    assert!(!reached(&["db.example:443", "10.1.2.3:80"], "db.example:443", "10.1.2.3"));
    assert!(reached(&["10.1.2.3:443"], "10.1.2.3:443", "10.1.2.3"));
}

#[test]
fn localhost_is_this_machine_if_a_rule_names_it() {
    assert!(reached(&["localhost:80"], "localhost:80", "127.0.0.1"));
    assert!(!reached(&["localhost:80"], "localhost:80", "10.0.0.1"));
    assert!(!reached(&["*:80"], "localhost:80", "127.0.0.1"));
    assert!(!reached(&["*.localhost:80"], "x.localhost:80", "127.0.0.1"));
}

#[test]
fn a_refusal_says_why_and_which_rule_would_allow_it() {
    let refusal = rules(&["a.example"]).check_host(&to("b.example:443")).unwrap_err();
    assert_eq!(
        (refusal.why.as_str(), refusal.allow.as_deref()),
        ("b.example:443 is not in network", Some("b.example:443"))
    );
    let refusal = rules(&["a.example"]).check_address(&to("a.example:443"), "10.0.0.1".parse().unwrap()).unwrap_err();
    assert_eq!(
        refusal.why,
        "a.example:443 leads to 10.0.0.1, an address of a private network, and only a rule that names it allows that"
    );
    assert_eq!(refusal.allow.as_deref(), Some("10.0.0.1:443"));
}

#[test]
fn what_is_no_rule_is_refused() {
    for text in
        ["", "*", "https://a.example", "a.example/x", "a.*.example", "*a.example", "a.example:*", "10.0.0.0/33", "x/8"]
    {
        assert_eq!(text.parse::<HostRule>().is_ok(), text == "*", "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_and_what_is_read_is_written_again(text in "[*a-z0-9.:/\\[\\]-]{0,30}") {
        if let Ok(rule) = text.parse::<HostRule>() {
            prop_assert_eq!(rule.to_string().parse::<HostRule>().unwrap(), rule);
        }
    }

    #[test]
    fn no_rule_for_names_reaches_an_address_that_is_not_public(bytes: [u8; 16], four: [u8; 4], v6: bool) {
        let address: IpAddr = if v6 { bytes.into() } else { four.into() };
        let name = to("x.example:443");
        let rules = rules(&["*", "*.example", "x.example", "localhost"]);
        let reached = rules.check_address(&name, address).is_ok();
        prop_assert_eq!(reached, AddressKind::of(address) == AddressKind::Public);
    }
}
