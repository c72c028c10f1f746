//! The player's character, read from `pc_current.md`: a table of fields, with the modifiers as JSON.

use std::collections::BTreeMap;

use crate::md;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pc {
    pub name: String,
    pub archetype: String,
    pub drive: String,
    pub weapon: String,
    pub armour: String,
    pub modifiers: BTreeMap<String, i64>,
}

impl Pc {
    pub fn read(page: &str) -> Self {
        let tables = md::tables(page);
        let cell = |name: &str| {
            let rows = tables.iter().flat_map(|table| &table.rows);
            let found = rows.filter(|row| row.cells.len() > 1).find(|row| row.cells[0].eq_ignore_ascii_case(name));
            found
                .map(|row| row.cells[1].as_str())
                .or_else(|| md::field(page, name))
                .filter(|cell| *cell != "-")
                .unwrap_or_default()
        };
        let modifiers: BTreeMap<String, i64> = serde_json::from_str(cell("Modifiers")).unwrap_or_default();
        Pc {
            name: cell("Name").to_owned(),
            archetype: cell("Archetype").to_owned(),
            drive: cell("Drive").to_owned(),
            weapon: cell("Weapon").to_owned(),
            armour: cell("Armour").to_owned(),
            modifiers: modifiers.into_iter().map(|(stat, by)| (stat.to_lowercase(), by.clamp(-5, 10))).collect(),
        }
    }

    pub fn modifier(&self, stat: &str) -> i64 {
        self.modifiers.get(&stat.to_lowercase()).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_69_a_modifier_is_read_from_the_page() {
        let pc = Pc::read("| Field | Value |\n|---|---|\n| Name | Ann |\n| Modifiers | {\"Dex\": 3} |\n");
        assert_eq!((pc.name.as_str(), pc.modifier("dex"), pc.modifier("str")), ("Ann", 3, 0));
    }
}
