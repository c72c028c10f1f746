//! Tables for people: columns as wide as their widest cell; where the terminal is too narrow for a row, its cells stand below
//! each other. Pure but for the width of the terminal.

use std::io::IsTerminal;

use super::plain_text::one_line;

/// The width of the terminal that standard output is; none if it is something else.
pub fn terminal_width() -> Option<usize> {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// The lines of a table: the head, then the rows.
pub fn render(head: &[&str], rows: &[Vec<String>], width: Option<usize>) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| one_line(cell)).collect()).collect();
    let wide = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
        cells.chain([head[at].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(wide).collect();
    let total = widths.iter().sum::<usize>() + 2 * (head.len() - 1);
    if width.is_some_and(|width| width < total) {
        return stacked(head, &rows);
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded = cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect::<Vec<_>>();
        format!("{}\n", padded.join("  ").trim_end())
    };
    let mut text = line(&mut head.iter().copied());
    for row in &rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}

/// One cell per line: the first as it is, the others below it with their names.
fn stacked(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    for row in rows {
        for (at, (name, cell)) in head.iter().zip(row).enumerate().filter(|(_, (_, cell))| !cell.is_empty()) {
            match at {
                0 => text.push_str(&format!("{cell}\n")),
                _ => text.push_str(&format!("  {} {cell}\n", name.to_lowercase())),
            }
        }
    }
    text
}

/// A time span in a few letters.
pub fn span(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..=99 => format!("{seconds}s"),
        100..=5999 => format!("{}m", seconds / 60),
        6000..=172_799 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A number of tokens in a few letters.
pub fn short_count(count: u64) -> String {
    match count {
        0..=9_999 => count.to_string(),
        10_000..=9_999_999 => format!("{}k", count / 1000),
        _ => format!("{}M", count / 1_000_000),
    }
}

/// An amount of money; nothing if nothing was paid.
pub fn money(amount: f64) -> String {
    if amount > 0.0 { format!("{amount:.4}") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_does_not_fit_stands_below_itself() {
        let rows = [
            vec!["job-1".to_owned(), "eve".to_owned(), "x\ny".to_owned()],
            vec!["job-22".to_owned(), String::new(), "z".to_owned()],
        ];
        let shown = |width| render(&["JOB", "AGENT", "WHAT"], &rows, width);
        assert_eq!(shown(None), "JOB     AGENT  WHAT\njob-1   eve    x\\ny\njob-22         z\n");
        assert_eq!(shown(Some(80)), shown(None));
        assert_eq!(shown(Some(10)), "job-1\n  agent eve\n  what x\\ny\njob-22\n  what z\n");
    }

    #[test]
    fn amounts_are_short() {
        assert_eq!([0, 99_999, 100_000, 6_000_000, 172_800_000].map(span), ["0s", "99s", "1m", "1h", "2d"]);
        assert_eq!([7, 12_345, 12_000_000].map(short_count), ["7", "12k", "12M"]);
        assert_eq!([0.0, 0.5].map(money), ["", "0.5000"]);
    }
}
