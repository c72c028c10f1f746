//! The method by which `scripts/bench` compares: pure, so it can be tested without measuring anything.

#[allow(dead_code)] // the rest of it is for the bench
mod method;

#[test]
fn a_ratio_is_the_median_of_the_chunks_and_no_busy_moment_moves_it() {
    method::check();
}

#[test]
fn both_sides_do_the_same_number_of_operations() {
    let (mut ours, mut base) = (0, 0);
    method::compare(method::Pace { chunks: 6, ops: 10 }, |_| ours += 1, |_| base += 1);
    // Ten to warm up; the baseline is measured twice.
    assert_eq!((ours, base), (10 + 60, 10 + 120));
}
