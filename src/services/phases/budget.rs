//! Divides the token budget of a prompt among its parts: whole numbers, nothing lost.

/// The parts that share what is left beside the system block and the query, in the order of the prompt.
pub const WEIGHTS: [usize; 3] = [2, 5, 3];

/// Shares `available` tokens among agents, symbols and history, by 2 : 5 : 3 over those that are there.
///
/// Each share is rounded down; what is left goes out one by one, in that order.
pub fn shares(available: usize, present: [bool; 3]) -> [usize; 3] {
    let weight = |part: usize| if present[part] { WEIGHTS[part] } else { 0 };
    let total: usize = (0..3).map(weight).sum();
    if total == 0 {
        return [0; 3];
    }
    let mut shares = [0, 1, 2].map(|part| (available as u128 * weight(part) as u128 / total as u128) as usize);
    let mut left = available - shares.iter().sum::<usize>();
    for part in (0..3).filter(|part| present[*part]).cycle() {
        if left == 0 {
            break;
        }
        shares[part] += 1;
        left -= 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_shares() {
        let (all, no_history, no_agents, no_symbols) =
            ([true; 3], [true, true, false], [false, true, true], [true, false, true]);
        for (available, present, expected) in [
            (3094, all, [619, 1547, 928]),
            (3094, no_history, [884, 2210, 0]),
            (3094, no_agents, [0, 1934, 1160]),
            (3094, no_symbols, [1238, 0, 1856]),
            (3000, all, [600, 1500, 900]),
            (3000, no_history, [858, 2142, 0]),
            (3000, no_agents, [0, 1875, 1125]),
            (3000, no_symbols, [1200, 0, 1800]),
            (100, all, [20, 50, 30]),
            (100, no_history, [29, 71, 0]),
            (100, no_agents, [0, 63, 37]),
            (100, no_symbols, [40, 0, 60]),
            (1, all, [1, 0, 0]),
            (1, no_agents, [0, 1, 0]),
            (0, all, [0, 0, 0]),
            (100, [false; 3], [0, 0, 0]),
        ] {
            assert_eq!(shares(available, present), expected, "{available} {present:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_invented(available in 0usize..1_000_000, a: bool, s: bool, h: bool) {
            let given: usize = shares(available, [a, s, h]).iter().sum();
            proptest::prop_assert_eq!(given, if a || s || h { available } else { 0 });
        }
    }
}
