//! Removes the terminal's echo of one line that we typed while a command ran. `sentinel` and `screen` use it; it uses
//! nothing. Pure: bytes in, bytes out.

/// A line editor that had switched bracketed paste on switches it off at the end of a line.
const PASTE_OFF: &[u8] = b"\x1b[?2004l\r";

/// Removes every echo of one line, in whatever pieces it comes: the kernel may echo it, and a line editor once more.
#[derive(Debug)]
pub struct EchoFilter {
    echo: Vec<u8>,
    /// The beginning of what may become the echo.
    held: Vec<u8>,
}

impl EchoFilter {
    /// `line` is the text as typed, with its line end. It must not occur in other output, and no end of it may be its
    /// beginning.
    pub fn new(line: &str) -> Self {
        EchoFilter { echo: line.replace('\n', "\r\n").into_bytes(), held: Vec::new() }
    }

    /// What is left of the next bytes. Keeps no more than could be the beginning of an echo.
    pub fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut heard = std::mem::take(&mut self.held);
        heard.extend_from_slice(bytes);
        let (mut rest, mut left) = (&heard[..], Vec::new());
        while let Some(at) = find(rest, &self.echo) {
            left.extend_from_slice(&rest[..at]);
            let after = &rest[at + self.echo.len()..];
            if after.len() < PASTE_OFF.len() && PASTE_OFF.starts_with(after) {
                self.held = rest[at..].to_vec();
                return left;
            }
            rest = after.strip_prefix(PASTE_OFF).unwrap_or(after);
        }
        let longest = rest.len().min(self.echo.len() - 1);
        let start = (rest.len() - longest..rest.len()).find(|at| self.echo.starts_with(&rest[*at..]));
        let (passed, held) = rest.split_at(start.unwrap_or(rest.len()));
        left.extend_from_slice(passed);
        self.held = held.to_vec();
        left
    }

    /// What was held back, when no echo can come any more.
    pub fn finish(self) -> Vec<u8> {
        self.held.strip_prefix(&self.echo[..]).map_or(self.held.clone(), <[u8]>::to_vec)
    }
}

/// Where `needle`, which is not empty, first stands.
pub fn find(heap: &[u8], needle: &[u8]) -> Option<usize> {
    heap.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests;
