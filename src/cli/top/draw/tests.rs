use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::super::screen::tests::seen;
use super::*;

fn drawn(screen: &mut TopScreen, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(screen, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned() + "\n";
    (0..height).map(row).collect()
}

#[test]
fn everything_is_on_one_screen() {
    let mut screen = TopScreen::default();
    screen.update(seen(1000, 0, &[], &[]));
    screen.update(seen(62_000, 61, &["job-1"], &["ap-1"]));
    let text = drawn(&mut screen, 80, 16);
    for part in [
        "/ns  up 62s  1.0 calls/s  jobs 1  tokens 0",
        "eve",
        "running",
        "make deploy",
        "terminal.exec",
        "60s",
        "log",
        "q quit",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

#[test]
fn any_size_of_terminal_will_do() {
    let mut screen = TopScreen::default();
    drawn(&mut screen, 80, 24);
    screen.update(seen(1000, 0, &["job-1", "job-2"], &["ap-1"]));
    for (width, height) in [(1, 1), (3, 2), (40, 10), (40, 24), (300, 3), (200, 100)] {
        drawn(&mut screen, width, height);
    }
    assert!(drawn(&mut screen, 40, 24).contains("eve"));
}
