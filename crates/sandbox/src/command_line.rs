//! The command line that `/proc` shows of a supervisor, by which the host knows whose sandbox it is. A supervisor that was
//! executed has it; one that was forked gives it to itself, and forgets the environment of the program that it was.
//! [`foreground`](super::foreground) uses it.

use std::fs;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;

/// As the kernel has it (`linux/prctl.h`). Not in libc.
#[repr(C)]
struct MemoryMap {
    start_code: u64,
    end_code: u64,
    start_data: u64,
    end_data: u64,
    start_brk: u64,
    brk: u64,
    start_stack: u64,
    arg_start: u64,
    arg_end: u64,
    env_start: u64,
    env_end: u64,
    auxv: u64,
    auxv_size: u32,
    exe_fd: u32,
}

/// The words of a supervisor: this program, the hidden argument, the connection and the agent.
fn words(connection: RawFd, agent: &str) -> [String; 4] {
    ["/proc/self/exe".to_owned(), super::INIT_ARG.to_owned(), connection.to_string(), agent.to_owned()]
}

/// Shows these words as the command line of this process. Needs a kernel with `CONFIG_CHECKPOINT_RESTORE`.
pub(super) fn replace(connection: RawFd, agent: &str) -> Result<(), Errno> {
    let stat = fs::read_to_string("/proc/self/stat").map_err(|_| Errno::IO)?;
    let mut map = read(&stat).ok_or(Errno::IO)?;
    // SAFETY: with null it only answers the end of the heap.
    map.brk = unsafe { libc::sbrk(0) } as u64;
    let environment = (map.env_start, map.env_end);
    // For as long as this process lives, so that the kernel can read it.
    let line: &'static [u8] = (words(connection, agent).join("\0") + "\0").into_bytes().leak();
    (map.arg_start, map.arg_end) = (line.as_ptr() as u64, line.as_ptr() as u64 + line.len() as u64);
    map.env_end = map.env_start;
    // SAFETY: the struct has the layout of the kernel and lives over the call, which only reads it.
    let answer =
        unsafe { libc::prctl(libc::PR_SET_MM, libc::PR_SET_MM_MAP, &raw const map, size_of::<MemoryMap>(), 0) };
    if answer != 0 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO));
    }
    forget(environment);
    Ok(())
}

/// Overwrites the environment that the kernel gave to this program: the operator's secrets are none of the sandbox's.
fn forget((start, end): (u64, u64)) {
    // SAFETY: this process has one thread, and after `clearenv` nothing refers to these bytes, which are its own and
    // writable.
    unsafe {
        libc::clearenv();
        std::ptr::write_bytes(start as *mut u8, 0, (end - start) as usize);
    }
}

/// The map of this process, from its `stat`; the numbers of the fields are those of `proc_pid_stat(5)`.
fn read(stat: &str) -> Option<MemoryMap> {
    // The name may contain anything, brackets too.
    let fields: Vec<u64> =
        stat.rsplit_once(')')?.1.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
    let field = |number: usize| fields.get(number - 3).copied().filter(|address| *address != 0);
    Some(MemoryMap {
        start_code: field(26)?,
        end_code: field(27)?,
        start_data: field(45)?,
        end_data: field(46)?,
        start_brk: field(47)?,
        brk: field(47)?,
        start_stack: field(28)?,
        arg_start: field(48)?,
        arg_end: field(49)?,
        env_start: field(50)?,
        env_end: field(51)?,
        auxv: 0,
        auxv_size: 0,
        exe_fd: u32::MAX,
    })
}

/// Executes this program again as a supervisor, with no environment. Returns only if that fails.
pub(super) fn execute_again(connection: RawFd, agent: &str) {
    // SAFETY: the descriptor is open, and one fcntl is made on it.
    let held = unsafe { std::os::fd::BorrowedFd::borrow_raw(connection) };
    let kept = rustix::io::fcntl_setfd(held, rustix::io::FdFlags::empty());
    if kept.is_ok() {
        let [program, arguments @ ..] = words(connection, agent);
        _ = Command::new(program).args(arguments).env_clear().exec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_stat_are_where_the_manual_says() {
        let numbers: Vec<String> = (4..=52).map(|number: u32| number.to_string()).collect();
        let map = read(&format!("7 (a (b) c) S {}", numbers.join(" "))).unwrap();
        assert_eq!((map.start_code, map.end_code, map.start_stack), (26, 27, 28));
        assert_eq!((map.start_data, map.end_data, map.start_brk), (45, 46, 47));
        assert_eq!((map.arg_start, map.arg_end, map.env_start, map.env_end), (48, 49, 50, 51));
        assert!(read("7 (a) S 1 2").is_none());
    }
}
