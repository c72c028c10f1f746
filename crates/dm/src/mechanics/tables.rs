//! Random tables: `## TABLES::Street d10` and ten numbered rows.

use super::sides;
use crate::dice::Dice;
use crate::md;
use crate::world::Fault;
use acheron_base::{Error, Result};

#[derive(Clone, Debug, PartialEq)]
pub struct RandomTable {
    pub name: String,
    pub sides: u32,
    /// Row n is what a throw of n gives.
    pub rows: Vec<Vec<String>>,
}

/// The tables of a page, and what is wrong with the others.
pub fn read(path: &str, text: &str) -> (Vec<RandomTable>, Vec<Fault>) {
    let (mut tables, mut faults) = (Vec::new(), Vec::new());
    for table in md::tables(text) {
        let Some(title) = table.heading.strip_prefix("TABLES::") else { continue };
        let mut fault = |line, message| faults.push(Fault { path: path.to_owned(), line, message });
        let Some((name, sides)) = title.rsplit_once(' ').and_then(|(name, die)| Some((name.trim(), sides(die)?)))
        else {
            fault(table.line, format!("`{title}` does not end in a die like d8"));
            continue;
        };
        if table.rows.len() != sides as usize {
            fault(table.line, format!("table {name} is a d{sides} and has {} rows", table.rows.len()));
            continue;
        }
        let wrong = table.rows.iter().zip(1..).find(|(row, n)| row.cells.first() != Some(&format!("{n}")));
        if let Some((row, n)) = wrong {
            fault(row.line, format!("table {name} must number this row {n}"));
            continue;
        }
        let rows = table.rows.into_iter().map(|row| row.cells[1..].to_vec()).collect();
        tables.push(RandomTable { name: name.to_owned(), sides, rows });
    }
    (tables, faults)
}

impl RandomTable {
    pub fn row(&self, thrown: u32) -> Result<&[String]> {
        let at = thrown.checked_sub(1).map(|at| at as usize);
        let found = at.and_then(|at| self.rows.get(at));
        let range = || Error::invalid(format!("table {} has no row {thrown}: it is a d{}", self.name, self.sides));
        found.map(Vec::as_slice).ok_or_else(range)
    }

    pub fn throw(&self, dice: &mut Dice) -> (u32, &[String]) {
        let thrown = dice.throw(self.sides, &format!("table {}", self.name));
        (thrown, self.row(thrown).unwrap_or_default())
    }

    /// The row that is thrown, or the next one after it that fits; the thrown one where none does.
    pub fn throw_fitting(&self, dice: &mut Dice, fits: impl Fn(&[String]) -> bool) -> &[String] {
        let (thrown, row) = self.throw(dice);
        let from = thrown.saturating_sub(1) as usize;
        let mut rows = self.rows.iter().cycle().skip(from).take(self.rows.len());
        rows.find(|row| fits(row)).map_or(row, Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(sides: u32, rows: u32) -> String {
        let rows: String = (1..=rows).map(|n| format!("| {n} | event {n} | omen | - |\n")).collect();
        format!("# Tables\n\n## TABLES::Street d{sides}\n\n| Die | Event | Type | Notes |\n|---|---|---|---|\n{rows}")
    }

    #[test]
    fn row_75_a_throw_gives_its_row_and_no_other() {
        let (tables, faults) = read("T.md", &page(10, 10));
        assert!(faults.is_empty());
        assert_eq!(tables[0].row(10).unwrap()[0], "event 10");
        assert_eq!(tables[0].row(11).unwrap_err().message, "table Street has no row 11: it is a d10");
        assert!(tables[0].row(0).is_err());
        assert_eq!(tables[0].throw(&mut Dice::loaded(&[3])).1[0], "event 3");
    }

    #[test]
    fn row_76_a_table_that_lacks_a_row_is_named() {
        let faults = read("T.md", &page(8, 7)).1;
        assert_eq!(faults[0].to_string(), "T.md:5: table Street is a d8 and has 7 rows");
    }
}
