//! Settings of the C allocator that keep the memory of a program with an idle mount small. Without them, the buffer of a
//! FUSE session counts as used memory. A program calls [`begin`] first and [`settle`] when it is mounted.

use std::os::raw::c_void;

/// Larger allocations are mapped from the kernel and returned to it.
const PIECE: libc::c_int = 1 << 20;

/// The size of heap extensions, and the free memory that is kept: during the start, and afterwards.
const STARTING: [libc::c_int; 2] = [1 << 20, 64 << 20];
const STARTED: [libc::c_int; 2] = [128 << 10, 128 << 10];

/// Must run before the first allocation. Otherwise glibc raises the mmap threshold when a large block is freed, and
/// then clears, and so touches, the 16 MiB read buffer of a FUSE session, which should stay unbacked.
///
/// Memory that is freed during the start is not returned to the kernel each time, because the kernel would have to
/// clear it again.
#[cfg(target_env = "gnu")]
pub fn begin() {
    // SAFETY: it changes an allocator setting through the interface made for that.
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

/// Does nothing: another C library has no such settings.
#[cfg(not(target_env = "gnu"))]
pub fn begin() {}

/// Returns the code pages that only the start needed. If one is needed again, it comes from the page cache.
pub fn settle() {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
    for (start, length) in maps.lines().filter_map(code) {
        // SAFETY: the range is code mapped from a file and never written, so dropped pages are read again unchanged.
        unsafe { libc::madvise(start as *mut c_void, length, libc::MADV_DONTNEED) };
    }
    #[cfg(target_env = "gnu")]
    {
        keep(STARTED);
        // SAFETY: it only returns free memory.
        unsafe { libc::malloc_trim(0) };
    }
}

/// The address and length in a line of `/proc/self/maps` that maps code of a file.
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
        // Relocated pages are private to this process and would be lost.
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
