//! A text as a small vector: counted character n-grams, hashed into 256 places.
//!
//! It needs no model and no other text, so a vector never has to be made again because something else changed. Whole
//! numbers throughout: the same text gives the same vector on every machine.

use acheron_base::words::telling;

pub const SIZE: usize = 256;
/// The most words of one text that are looked at.
const MOST: usize = 4096;

/// Unit length is 127: a dot product of two vectors is their likeness times 127².
pub type Vector = [i8; SIZE];

/// The vector of a text; all zero if it has no words.
pub fn vector(text: &str) -> Vector {
    let mut sums = [0f32; SIZE];
    for word in telling(text).into_iter().take(MOST) {
        let padded: Vec<char> = format!("<{word}>").chars().collect();
        for length in 3..=5usize {
            for gram in padded.windows(length) {
                add(&mut sums, gram, 1.0 + length as f32 / 5.0);
            }
        }
    }
    quantised(&sums)
}

fn add(sums: &mut [f32; SIZE], gram: &[char], weight: f32) {
    // FNV-1a: spread is all that is asked of it.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for c in gram {
        for byte in (*c as u32).to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    let place = (hash >> 32) as usize % SIZE;
    sums[place] += if hash & 1 == 0 { weight } else { -weight };
}

fn quantised(sums: &[f32; SIZE]) -> Vector {
    let damped = sums.map(|sum| sum.signum() * (1.0 + sum.abs()).ln());
    let length = damped.iter().map(|part| part * part).sum::<f32>().sqrt();
    if length == 0.0 {
        return [0; SIZE];
    }
    damped.map(|part| (part / length * 127.0).round() as i8)
}

/// How alike two vectors are, in thousandths: 1000 is the same direction.
pub fn likeness(a: &Vector, b: &Vector) -> i32 {
    let dot: i32 = a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
    dot * 1000 / (127 * 127)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_words_give_the_same_vector() {
        assert_eq!(vector("trust repair"), vector("Trust, repair!"));
        assert_eq!(vector("⟐"), [0; SIZE]);
    }

    #[test]
    fn related_words_are_nearer_than_strange_ones() {
        let of = |text| vector(text);
        let near = likeness(&of("repairing trust"), &of("trust repair"));
        let far = likeness(&of("repairing trust"), &of("quantum banana"));
        assert!(near > 600 && far < 300, "{near} {far}");
        assert!(likeness(&of("drift"), &of("drift")) > 950);
    }
}
