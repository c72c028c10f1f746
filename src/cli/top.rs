//! `acheron top`: a running host on one screen, live; jobs are cancelled and approvals answered by keys.
//!
//! [`screen`] is what is shown and what a key does (pure), [`draw`] puts it on a terminal, [`feed`] fetches it on a thread of its
//! own, so that a mount that hangs does not keep the keys. The command runs as two processes: one draws, the other waits and
//! puts the terminal back even if the first is killed.

mod approvals;
mod draw;
mod feed;
mod screen;

use std::io::{IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::mpsc::{Sender, channel};

use clap::Args;
use ratatui::crossterm::event;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use super::host_view::HostViewArgs;
use super::{CommandResult, Failure, deadline};
use acheron_base::Error;
use feed::{Feed, TopUpdate};
use screen::{KeyPress, TopAction, TopScreen};

/// Shows the cursor, leaves the other screen, and takes colours back.
const AS_BEFORE: &[u8] = b"\x1b[?1049l\x1b[?25h\x1b[0m";

/// Show agents, jobs, tokens, money, calls per second and the last events, live; cancel and approve by keys.
#[derive(Args)]
pub struct TopArgs {
    #[command(flatten)]
    view: HostViewArgs,
    /// The process that draws
    #[arg(long, hide = true)]
    screen: bool,
}

/// What the screen waits for.
enum TopEvent {
    Key(KeyPress),
    Resized,
    Update(Box<TopUpdate>),
    /// A signal that ends the command.
    Told,
}

impl TopArgs {
    pub fn run(self) -> CommandResult {
        if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
            let hint = "`acheron agents`, `acheron jobs` and `acheron log` print the same";
            return Err(Failure::hint(Error::invalid("top needs a terminal"), hint));
        }
        if !self.screen {
            // Before anything is drawn: a refusal belongs on the screen as it is.
            super::host_view::HostView::of(&self.view.state()?)?.look()?;
            return supervise();
        }
        // The other process must not end alone: it is what puts the terminal back.
        set_parent_process_death_signal(Some(Signal::TERM)).map_err(std::io::Error::from)?;
        let state = self.view.state()?;
        let mut terminal = ratatui::try_init()?;
        let shown = show(&mut terminal, &state);
        ratatui::restore();
        shown
    }
}

/// Runs the process that draws, hands signals on to it, and puts the terminal back if it was killed.
fn supervise() -> CommandResult {
    let before = rustix::termios::tcgetattr(std::io::stdin()).map_err(std::io::Error::from)?;
    let mut command = Command::new(std::env::current_exe()?);
    let mut child = command.args(std::env::args_os().skip(1)).arg("--screen").spawn()?;
    let pid = Pid::from_child(&child);
    on_signals(move || _ = kill_process(pid, Signal::TERM))?;
    let status = child.wait()?;
    if let Some(signal) = status.signal() {
        _ = std::io::stdout().write_all(AS_BEFORE).and_then(|()| std::io::stdout().flush());
        let put = rustix::termios::tcsetattr(std::io::stdin(), rustix::termios::OptionalActions::Flush, &before);
        put.map_err(std::io::Error::from)?;
        return Ok(ExitCode::from(128_u8.saturating_add(u8::try_from(signal).unwrap_or(0))));
    }
    Ok(ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)))
}

/// Calls `then` for each signal that is to end this process, on a thread of its own.
fn on_signals(then: impl Fn() + Send + 'static) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut signals = {
        let _inside = runtime.enter();
        deadline::signals()?
    };
    std::thread::spawn(move || {
        runtime.block_on(async {
            loop {
                deadline::heard(&mut signals).await;
                then();
            }
        });
    });
    Ok(())
}

fn show(terminal: &mut ratatui::DefaultTerminal, state: &Path) -> CommandResult {
    let (tell, told) = channel();
    let on_signal = tell.clone();
    on_signals(move || _ = on_signal.send(TopEvent::Told))?;
    let feed = Feed::start(state, tell.clone(), |update| TopEvent::Update(Box::new(update)))?;
    read_keys(tell);
    let mut screen = TopScreen::default();
    loop {
        terminal.draw(|frame| draw::draw(&mut screen, frame))?;
        let Ok(event) = told.recv() else { return Ok(ExitCode::SUCCESS) };
        let action = match event {
            TopEvent::Told => return Ok(ExitCode::from(143)),
            TopEvent::Resized => TopAction::None,
            TopEvent::Update(update) => match *update {
                TopUpdate::Seen(seen) => {
                    screen.update(*seen);
                    TopAction::None
                }
                TopUpdate::Done(said) => {
                    screen.say(said);
                    TopAction::None
                }
                TopUpdate::Gone(why) => return Err(Error::unavailable(why).into()),
            },
            TopEvent::Key(key) => screen.press(key),
        };
        match action {
            TopAction::None => (),
            TopAction::Quit => return Ok(ExitCode::SUCCESS),
            TopAction::Write { path, text, said } => feed.write(path, text, said),
        }
    }
}

/// Reads keys for as long as the process lives.
fn read_keys(tell: Sender<TopEvent>) {
    std::thread::spawn(move || {
        while let Ok(read) = event::read() {
            let event = match read {
                event::Event::Key(key) => match KeyPress::of(key) {
                    Some(key) => TopEvent::Key(key),
                    None => continue,
                },
                event::Event::Resize(..) => TopEvent::Resized,
                _ => continue,
            };
            if tell.send(event).is_err() {
                return;
            }
        }
        // The terminal is gone.
        _ = tell.send(TopEvent::Told);
    });
}
