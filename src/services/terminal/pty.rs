//! A pseudo-terminal: our end of it, asynchronous.

use std::os::fd::OwnedFd;

use rustix::process::Signal;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use tokio::io::unix::AsyncFd;

use acheron_base::{Error, Result};

/// The near end of a terminal.
pub struct Pty(AsyncFd<OwnedFd>);

/// Rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub cols: u16,
    pub rows: u16,
}

impl Pty {
    /// A new terminal: our end, and the end for a program.
    pub fn open(size: Size) -> Result<(Pty, OwnedFd)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let near = rustix::pty::openpt(flags).map_err(|err| unavailable("no terminal can be opened", err))?;
        rustix::pty::grantpt(&near)
            .and_then(|()| rustix::pty::unlockpt(&near))
            .map_err(|err| unavailable("terminal", err))?;
        // By descriptor, not by name: /dev/pts may be someone else's.
        let far = rustix::pty::ioctl_tiocgptpeer(&near, flags).map_err(|err| unavailable("terminal", err))?;
        rustix::io::ioctl_fionbio(&near, true).map_err(|err| unavailable("terminal", err))?;
        // SAFETY: the descriptor is owned, and stays open and the same for as long as it is registered.
        let registered = unsafe { AsyncFd::register(near) };
        let pty = Pty(registered.map_err(|err| Error::unavailable(format!("terminal: {err}")))?);
        pty.resize(size)?;
        Ok((pty, far))
    }

    pub fn resize(&self, size: Size) -> Result<()> {
        let winsize = Winsize { ws_col: size.cols, ws_row: size.rows, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(self.0.get_ref(), winsize).map_err(|err| unavailable("cannot resize", err))
    }

    /// The next bytes; none when nobody holds the far end any more.
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

    /// Ends what runs in the foreground, but never the shell itself, which is the leader of the terminal's session.
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

    /// The shell: the leader of the terminal's session.
    pub fn leader(&self) -> Option<i32> {
        rustix::termios::tcgetsid(self.0.get_ref()).ok().map(|pid| pid.as_raw_nonzero().get())
    }

    /// Tells the shell itself to stop what it was told to do.
    pub fn interrupt_leader(&self) {
        if let Ok(leader) = rustix::termios::tcgetsid(self.0.get_ref()) {
            // It may be gone.
            _ = rustix::process::kill_process(leader, Signal::INT);
        }
    }

    /// Sends a signal to whatever runs in the foreground, as the keys of a terminal do.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let group =
            rustix::termios::tcgetpgrp(self.0.get_ref()).map_err(|err| unavailable("nothing runs there", err))?;
        rustix::process::kill_process_group(group, signal).map_err(|err| unavailable("cannot signal", err))
    }
}

fn unavailable(what: &str, err: rustix::io::Errno) -> Error {
    Error::unavailable(format!("{what}: {}", std::io::Error::from(err)))
}

/// A signal by the name that people use for it.
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
        let (pty, far) = Pty::open(Size { cols: 80, rows: 24 }).unwrap();
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
