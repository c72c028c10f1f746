use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;

fn policy() -> RetryPolicy {
    RetryPolicy {
        attempts: 5,
        pause: Duration::from_secs(1),
        longest_pause: Duration::from_secs(4),
        ..RetryPolicy::default()
    }
}

#[test]
fn a_pause_doubles_up_to_the_longest() {
    let mut rng = StdRng::seed_from_u64(1);
    for (failed, most) in [(1, 1.0), (2, 2.0), (3, 4.0), (4, 4.0)] {
        let pause = policy().pause_after(failed, Retry::After(None), &mut rng).unwrap().as_secs_f64();
        assert!((most / 2.0..=most).contains(&pause), "{failed}: {pause}");
    }
    assert_eq!(policy().pause_after(5, Retry::After(None), &mut rng), None);
}

#[test]
fn the_pause_of_the_server_is_kept_within_bounds() {
    let mut rng = StdRng::seed_from_u64(1);
    let mut after = |seconds| policy().pause_after(1, Retry::After(Some(Duration::from_secs(seconds))), &mut rng);
    assert_eq!(after(3), Some(Duration::from_secs(3)));
    assert_eq!(after(0), Some(Duration::ZERO));
    assert_eq!(after(5), None);
    assert_eq!(policy().pause_after(1, Retry::Never, &mut rng), None);
}

#[test]
fn a_header_is_seconds_or_a_date() {
    let (at, later) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:50:07 GMT");
    let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:57 GMT").unwrap();
    for (header, date, wanted) in [
        ("7", None, Some(7)),
        (" 0 ", None, Some(0)),
        ("-1", None, None),
        ("soon", None, None),
        ("NaN", None, None),
        (later, Some(at), Some(30)),
        (later, None, Some(10)),
        (later, Some("yesterday"), Some(10)),
        (at, Some(later), Some(0)),
        ("Sunday, 06-Nov-94 08:50:07 GMT", Some(at), Some(30)),
        ("Sun Nov  6 08:50:07 1994", Some(at), Some(30)),
        ("Sun, 36 Nov 1994 08:50:07 GMT", Some(at), None),
    ] {
        assert_eq!(retry_after(Some(header), date, now), wanted.map(Duration::from_secs), "{header}");
    }
    assert_eq!(retry_after(None, Some(at), now), None);
}
