//! The mechanics: each a file of pure functions over typed tables. The tables stand in the engine's own pages
//! (`global-library/dm/engine/mechanics/*.md`), so that the pages and the computation cannot differ.

pub mod combat;
pub mod governance;
pub mod maps;
pub mod social;
pub mod survival;
pub mod tables;

use crate::md::{self, Table};
use crate::world::Fault;

/// The table under a heading such as `COMBAT::weapons`.
pub(super) fn table(path: &str, text: &str, anchor: &str, columns: &[&str]) -> Result<Table, Fault> {
    let fault = |line: usize, message: String| Fault { path: path.to_owned(), line, message };
    let found = md::tables(text).into_iter().find(|table| table.heading.eq_ignore_ascii_case(anchor));
    let table = found.ok_or_else(|| fault(1, format!("there is no table under the heading {anchor}")))?;
    match columns.iter().find(|column| !table.has(column)) {
        Some(missing) => Err(fault(table.line, format!("{anchor} has no column `{missing}`"))),
        None => Ok(table),
    }
}

/// A cell as a number.
pub(super) fn number(path: &str, table: &Table, row: &md::Row, column: &str) -> Result<i64, Fault> {
    let cell = table.get(row, column);
    let cell = cell.strip_prefix('+').unwrap_or(cell);
    cell.parse().map_err(|_| Fault {
        path: path.to_owned(),
        line: row.line,
        message: format!("`{cell}` in column {column} of {} is not a number", table.heading),
    })
}

/// `d6` → 6.
pub(super) fn sides(text: &str) -> Option<u32> {
    text.trim().strip_prefix('d')?.parse().ok().filter(|sides| (1..=100).contains(sides))
}
