//! Bytes that are no text, as git writes them: compressed, in base 85, with the names of both objects.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// The name of an object that is not there.
pub const NOTHING: &str = "0000000000000000000000000000000000000000";

/// The name that git gives to the bytes of a file.
pub fn object_name(bytes: &[u8]) -> String {
    let mut digest = ring::digest::Context::new(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY);
    digest.update(format!("blob {}\0", bytes.len()).as_bytes());
    digest.update(bytes);
    crate::root::hex(digest.finish().as_ref())
}

/// Both sides, so that the patch can be reversed.
pub fn literals(old: &[u8], new: &[u8], out: &mut Vec<u8>) {
    out.extend(b"GIT binary patch\n");
    for side in [new, old] {
        out.extend(format!("literal {}\n", side.len()).into_bytes());
        for line in compressed(side).chunks(52) {
            out.push(length_letter(line.len()));
            base85(line, out);
            out.push(b'\n');
        }
        out.push(b'\n');
    }
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory does not fail.
    encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default()
}

fn length_letter(length: usize) -> u8 {
    match length as u8 {
        length @ 1..=26 => b'A' + length - 1,
        length => b'a' + length - 27,
    }
}

const LETTERS: &[u8; 85] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

fn base85(bytes: &[u8], out: &mut Vec<u8>) {
    for four in bytes.chunks(4) {
        let mut padded = [0; 4];
        padded[..four.len()].copy_from_slice(four);
        let mut number = u32::from_be_bytes(padded);
        let mut letters = [0; 5];
        for letter in letters.iter_mut().rev() {
            *letter = LETTERS[(number % 85) as usize];
            number /= 85;
        }
        out.extend(letters);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_the_name_that_git_gives_it() {
        assert_eq!(object_name(b"hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(length_letter(26), b'Z');
        assert_eq!((length_letter(27), length_letter(52)), (b'a', b'z'));
    }
}
