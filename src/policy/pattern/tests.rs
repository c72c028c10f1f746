use super::*;

#[test]
fn patterns_match_what_they_say() {
    let table = [
        ("/", "", true),
        ("/", "a", false),
        ("/a", "a", true),
        ("/a", "a/b", false),
        ("/a/**", "a", true),
        ("/a/**", "a/b/c", true),
        ("/a/**", "ab", false),
        ("/**", "", true),
        ("/**/x", "x", true),
        ("/**/x", "a/b/x", true),
        ("/**/x", "a/b/x/y", false),
        ("/**/a/**/b", "a/a/c/b/b", true),
        ("/a/*/c", "a/b/c", true),
        ("/a/*/c", "a/c", false),
        ("/a/*.json", "a/x.json", true),
        ("/a/*.json", "a/.json", true),
        ("/a/x*y*z", "a/xyyz", true),
        ("/a/x*y*z", "a/xz", false),
        ("/agents/self/**", "agents/charon/x", true),
        ("/agents/self/**", "agents/self/x", false),
        ("/a/self", "a/charon", false),
    ];
    for (pattern, path, matching) in table {
        let pattern_of = Pattern::parse(pattern).unwrap().owned_by("charon");
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        assert_eq!(pattern_of.matches(&names), matching, "{pattern} {path}");
    }
}

#[test]
fn what_is_no_pattern_is_refused_with_the_reason() {
    let table = [
        ("", "must begin with /"),
        ("agents/self", "must begin with /"),
        ("/a//b", "has a doubled slash"),
        ("/a/../b", "cannot contain .."),
        ("/a/b**", "** must stand alone between slashes, not in b**"),
    ];
    for (text, fault) in table {
        assert_eq!(Pattern::parse(text).unwrap_err(), fault, "{text}");
    }
}

#[test]
fn a_pattern_of_many_stars_ends_soon() {
    let pattern = Pattern::parse(&"/**/a*a*a*a*b".repeat(100)).unwrap();
    let long = "a".repeat(200);
    let names = vec![long.as_str(); 100];
    assert!(!pattern.matches(&names));
}
