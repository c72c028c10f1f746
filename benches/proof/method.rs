//! How a ratio is measured that holds on a machine which others use too.
//!
//! Client and daemons share one processor. Chunks of operations on ours and on the baseline alternate, their order is
//! swapped from chunk to chunk, and the ratio is the median of the ratios of the chunks: what slows the machine down for
//! a while slows both sides of a chunk. The baseline is measured twice in each chunk; the ratio of those two, which
//! should be 1, is the noise.

use std::time::{Duration, Instant};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub chunks: usize,
    /// Operations in a chunk.
    pub ops: usize,
}

/// Ours against a baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    pub ratio: f64,
    /// The baseline against itself.
    pub noise: f64,
    /// Seconds an operation takes: ours, and the baseline's.
    pub ours: f64,
    pub base: f64,
}

/// One chunk: seconds for ours, for the baseline, and for the baseline once more.
pub type Chunk = [f64; 3];

/// Runs `ours` and `base` in turns; each is told the number of the operation.
pub fn compare(pace: Pace, mut ours: impl FnMut(usize), mut base: impl FnMut(usize)) -> Compared {
    (0..pace.ops.min(20)).for_each(|op| {
        ours(op);
        base(op);
    });
    let mut chunks = Vec::with_capacity(pace.chunks);
    for number in 0..pace.chunks {
        let mut chunk = Chunk::default();
        for side in order(number) {
            let began = Instant::now();
            match side {
                0 => (0..pace.ops).for_each(&mut ours),
                _ => (0..pace.ops).for_each(&mut base),
            }
            chunk[side] = began.elapsed().as_secs_f64() / pace.ops as f64;
        }
        chunks.push(chunk);
    }
    summed_up(&chunks)
}

/// As [`compare`], for two sides that tell the time of one operation themselves.
pub fn compare_timed(pace: Pace, mut ours: impl FnMut() -> Duration, mut base: impl FnMut() -> Duration) -> Compared {
    let mut chunks = Vec::with_capacity(pace.chunks);
    for number in 0..pace.chunks {
        let mut chunk = Chunk::default();
        for side in order(number) {
            let mut times: Vec<f64> =
                (0..pace.ops).map(|_| if side == 0 { ours() } else { base() }.as_secs_f64()).collect();
            chunk[side] = median(&mut times);
        }
        chunks.push(chunk);
    }
    summed_up(&chunks)
}

/// In which order the sides of a chunk are run: each is first, in the middle and last equally often.
pub fn order(number: usize) -> [usize; 3] {
    [[0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1], [1, 2, 0], [0, 2, 1]][number % 6]
}

/// The medians over all chunks.
pub fn summed_up(chunks: &[Chunk]) -> Compared {
    let over = |figure: fn(&Chunk) -> f64| median(&mut chunks.iter().map(figure).collect::<Vec<_>>());
    Compared {
        ratio: over(|[ours, base, _]| ours / base),
        noise: over(|[_, base, again]| again / base),
        ours: over(|[ours, ..]| *ours),
        base: over(|[_, base, _]| *base),
    }
}

/// The middle one; of an even number, the mean of the two in the middle. Nothing has no middle.
pub fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    match figures.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => figures[n / 2],
        n => f64::midpoint(figures[n / 2 - 1], figures[n / 2]),
    }
}

/// Pins this process, and whatever it starts from now on, to one processor.
pub fn pin() -> Result<(), nix::Error> {
    let mut only = nix::sched::CpuSet::new();
    only.set(0)?;
    nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &only)
}

/// What the method itself must do right; run before anything is measured.
pub fn check() {
    assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
    assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
    assert!(median(&mut []).is_nan());
    let mut places = [[0; 3]; 3];
    for number in 0..6 {
        order(number).into_iter().enumerate().for_each(|(place, side)| places[side][place] += 1);
    }
    assert_eq!(places, [[2; 3]; 3], "every side is in every place equally often");
    // One chunk in which the machine was busy for a while moves nothing.
    let calm = [3.0, 2.0, 2.0];
    let found = summed_up(&[calm, calm, [90.0, 2.0, 7.0], calm, calm]);
    assert_eq!(found, Compared { ratio: 1.5, noise: 1.0, ours: 3.0, base: 2.0 });
}

/// The database of a state directory that no host uses.
pub fn open_state(dir: &std::path::Path) -> acheron_store::Store {
    acheron::state::open(dir, &acheron_base::Clock::real(), &acheron_base::Random::real()).expect("a store").0
}
