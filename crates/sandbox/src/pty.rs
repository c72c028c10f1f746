//! The near end of a pseudo-terminal, asynchronous. A program in a sandbox gets the far end
//! ([`Streams::Terminal`](super::Streams)). The terminal service uses it; it uses nothing of the sandbox.

use std::os::fd::OwnedFd;

use rustix::process::Signal;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use tokio::io::unix::AsyncFd;

use acheron_base::{Error, Result};

/// The near end of a terminal.
pub struct Pty(AsyncFd<OwnedFd>);

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
}

impl Pty {
    /// A new terminal: the near end, and the end for a program.
    pub fn open(size: TerminalSize) -> Result<(Pty, OwnedFd)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let near = rustix::pty::openpt(flags).map_err(|err| unavailable("no terminal can be opened", err))?;
        rustix::pty::grantpt(&near)
            .and_then(|()| rustix::pty::unlockpt(&near))
            .map_err(|err| unavailable("terminal", err))?;
        // By descriptor and not by name: /dev/pts may belong to another instance.
        let far = rustix::pty::ioctl_tiocgptpeer(&near, flags).map_err(|err| unavailable("terminal", err))?;
        rustix::io::ioctl_fionbio(&near, true).map_err(|err| unavailable("terminal", err))?;
        // SAFETY: the descriptor is owned, and stays open and the same for as long as it is registered.
        let registered = unsafe { AsyncFd::register(near) };
        let pty = Pty(registered.map_err(|err| Error::unavailable(format!("terminal: {err}")))?);
        pty.resize(size)?;
        Ok((pty, far))
    }

    /// Changes the size.
    pub fn resize(&self, size: TerminalSize) -> Result<()> {
        let winsize = Winsize { ws_col: size.cols, ws_row: size.rows, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(self.0.get_ref(), winsize).map_err(|err| unavailable("cannot resize", err))
    }

    /// The next bytes; 0 when the far end is closed.
    pub async fn read(&self, buffer: &mut [u8]) -> Result<usize> {
        loop {
            let mut ready = self.0.readable().await?;
            match ready.try_io(|near| Ok(rustix::io::read(near.get_ref(), &mut *buffer)?)) {
                Ok(Ok(count)) => return Ok(count),
                Ok(Err(err)) if err.raw_os_error() == Some(libc::EIO) => return Ok(0),
                Ok(Err(err)) if err.kind() == std::io::ErrorKind::Interrupted => (),
                Ok(Err(err)) => return Err(err.into()),
                Err(_not_yet) => (),
            }
        }
    }

    /// Writes all of `bytes`.
    pub async fn write(&self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let mut ready = self.0.writable().await?;
            match ready.try_io(|near| Ok(rustix::io::write(near.get_ref(), bytes)?)) {
                Ok(Ok(count)) => bytes = &bytes[count..],
                Ok(Err(err)) if err.kind() == std::io::ErrorKind::Interrupted => (),
                Ok(Err(err)) => return Err(err.into()),
                Err(_not_yet) => (),
            }
        }
        Ok(())
    }

    /// Kills the foreground process group, but never the shell, which leads the session of the terminal.
    pub fn interrupt(&self) -> Result<()> {
        self.signal(Signal::INT)?;
        let near = self.0.get_ref();
        let group = rustix::termios::tcgetpgrp(near)
            .ok()
            .filter(|group| rustix::termios::tcgetsid(near).is_ok_and(|leader| leader != *group));
        group.map_or(Ok(()), |group| {
            rustix::process::kill_process_group(group, Signal::KILL).map_err(|err| unavailable("cannot signal", err))
        })
    }

    /// The process that leads the session of the terminal: the shell.
    pub fn leader(&self) -> Option<i32> {
        rustix::termios::tcgetsid(self.0.get_ref()).ok().map(|pid| pid.as_raw_nonzero().get())
    }

    /// Whether the shell itself is in the foreground, and no job of it.
    pub fn leader_in_foreground(&self) -> bool {
        let near = self.0.get_ref();
        let group = rustix::termios::tcgetpgrp(near);
        group.is_ok_and(|group| rustix::termios::tcgetsid(near).is_ok_and(|leader| leader == group))
    }

    /// Sends SIGINT to the shell.
    pub fn interrupt_leader(&self) {
        if let Ok(leader) = rustix::termios::tcgetsid(self.0.get_ref()) {
            // It may have ended.
            _ = rustix::process::kill_process(leader, Signal::INT);
        }
    }

    /// Sends a signal to the foreground process group, as the keys of a terminal do.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let group =
            rustix::termios::tcgetpgrp(self.0.get_ref()).map_err(|err| unavailable("no foreground process", err))?;
        rustix::process::kill_process_group(group, signal).map_err(|err| unavailable("cannot signal", err))
    }
}

fn unavailable(what: &str, err: rustix::io::Errno) -> Error {
    Error::unavailable(format!("{what}: {}", std::io::Error::from(err)))
}

/// The signal with this name, with or without `SIG`.
pub fn signal_named(name: &str) -> Result<Signal> {
    let upper = name.to_ascii_uppercase();
    let known = [
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("QUIT", Signal::QUIT),
        ("KILL", Signal::KILL),
        ("USR1", Signal::USR1),
        ("USR2", Signal::USR2),
        ("TERM", Signal::TERM),
        ("CONT", Signal::CONT),
        ("STOP", Signal::STOP),
        ("TSTP", Signal::TSTP),
        ("WINCH", Signal::WINCH),
    ];
    let short = upper.strip_prefix("SIG").unwrap_or(&upper);
    let found = known.iter().find(|(name, _)| *name == short).map(|(_, signal)| *signal);
    found.ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        Error::invalid(format!("unknown signal `{}`; known are {}", name.escape_debug(), names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_known_by_either_name() {
        assert_eq!(signal_named("sigterm").unwrap(), Signal::TERM);
        assert_eq!(signal_named("INT").unwrap(), Signal::INT);
        let refused = signal_named("FOO\n").unwrap_err().message;
        assert_eq!(
            refused,
            "unknown signal `FOO\\n`; known are HUP, INT, QUIT, KILL, USR1, USR2, TERM, CONT, STOP, TSTP, WINCH"
        );
    }

    #[tokio::test]
    async fn what_is_written_at_one_end_is_read_at_the_other() {
        let (pty, far) = Pty::open(TerminalSize { cols: 80, rows: 24 }).unwrap();
        rustix::io::write(&far, b"from there\n").unwrap();
        let mut buffer = [0; 64];
        let count = pty.read(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..count], b"from there\r\n");
        pty.write(b"from here\n").await.unwrap();
        let count = rustix::io::read(&far, &mut buffer).unwrap();
        assert_eq!(&buffer[..count], b"from here\n");
        let size = rustix::termios::tcgetwinsize(&far).unwrap();
        assert_eq!((size.ws_col, size.ws_row), (80, 24));
        pty.read(&mut buffer).await.unwrap();
        drop(far);
        assert_eq!(pty.read(&mut buffer).await.unwrap(), 0);
    }
}
