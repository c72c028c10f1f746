//! How little memory a daemon holds that nobody asks anything.

use std::os::raw::c_void;

/// Larger pieces of memory come from the kernel, and go back to it.
const PIECE: libc::c_int = 1 << 20;

/// How much the allocator asks for at once, and how much that is free it keeps: while the host starts, and then.
const STARTING: [libc::c_int; 2] = [1 << 20, 64 << 20];
const STARTED: [libc::c_int; 2] = [128 << 10, 128 << 10];

/// Before anything is allocated. Without it the C library raises the limit by itself when something large is freed, and
/// then clears, and so fills, the 16 MiB in which a session reads: they should be there, but empty.
///
/// What is made and dropped on the way up is not given back to the kernel each time, which would have to clear it anew.
#[cfg(target_env = "gnu")]
pub fn begin() {
    // SAFETY: it changes a setting of the allocator, which is made for that.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, PIECE) };
    keep(STARTING);
}

#[cfg(target_env = "gnu")]
fn keep([at_once, free]: [libc::c_int; 2]) {
    // SAFETY: as above.
    unsafe {
        libc::mallopt(libc::M_TOP_PAD, at_once);
        libc::mallopt(libc::M_TRIM_THRESHOLD, free);
    }
}

#[cfg(not(target_env = "gnu"))]
pub fn begin() {}

/// When all is up: gives back the pages of the program that only the start needed. Whoever needs one again finds it in
/// the kernel's cache.
pub fn settle() {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
    for (start, length) in maps.lines().filter_map(code) {
        // SAFETY: the range is code mapped from a file and never written to, so what is dropped is read again as it was.
        unsafe { libc::madvise(start as *mut c_void, length, libc::MADV_DONTNEED) };
    }
    #[cfg(target_env = "gnu")]
    {
        keep(STARTED);
        // SAFETY: it only gives free memory back.
        unsafe { libc::malloc_trim(0) };
    }
}

/// The place and length of a line of `/proc/self/maps` that is code of a file.
fn code(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_whitespace();
    let (range, rights) = (words.next()?, words.next()?);
    let file = words.nth(3)?;
    if rights != "r-xp" || !file.starts_with('/') {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    Some((start, usize::from_str_radix(end, 16).ok()?.checked_sub(start)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_a_file_is_given_back() {
        let line = |rights: &str, file: &str| format!("1000-3000 {rights} 00001000 fe:00 42                 {file}");
        assert_eq!(code(&line("r-xp", "/usr/bin/acheron")), Some((0x1000, 0x2000)));
        // What is relocated at the start is private to this process and would be lost.
        assert_eq!(code(&line("r--p", "/usr/bin/acheron")), None);
        assert_eq!(code(&line("r-xp", "[vdso]")), None);
        assert_eq!(code(&line("r-xp", "")), None);
        assert_eq!(code("nonsense"), None);
    }

    #[test]
    fn nothing_changes_but_the_memory() {
        settle();
        assert_eq!(code("0-1 r-xp 0 0 0 /x"), Some((0, 1)));
    }
}
