//! What payers have used up, and what is held for requests to models that are under way. Used by `agent`.

use acheron_base::Result;
use acheron_store::{Connection, OptionalExtension as _, Tx, params};

/// The row of one payer, or an addition to it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SpendingRow {
    pub rounds: u64,
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub ms: u64,
    pub money: f64,
}

/// What a payer has used up; `None` if it is not known yet.
pub fn of(conn: &Connection, payer: &str) -> Result<Option<SpendingRow>> {
    let mut select = conn.prepare_cached(
        "SELECT rounds, input, output, cache_read, cache_write, ms, money FROM spending WHERE payer = ?1",
    )?;
    let row = select.query_row([payer], |row| {
        Ok(SpendingRow {
            rounds: row.get(0)?,
            input: row.get(1)?,
            output: row.get(2)?,
            cache_read: row.get(3)?,
            cache_write: row.get(4)?,
            ms: row.get(5)?,
            money: row.get(6)?,
        })
    });
    Ok(row.optional()?)
}

/// Adds to what a payer has used up.
pub fn add(tx: &Tx<'_>, payer: &str, more: &SpendingRow) -> Result<()> {
    let mut upsert = tx.prepare_cached(
        "INSERT INTO spending (payer, rounds, input, output, cache_read, cache_write, ms, money) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (payer) DO UPDATE SET rounds = rounds + excluded.rounds, \
         input = input + excluded.input, output = output + excluded.output, \
         cache_read = cache_read + excluded.cache_read, cache_write = cache_write + excluded.cache_write, \
         ms = ms + excluded.ms, money = money + excluded.money",
    )?;
    let SpendingRow { rounds, input, output, cache_read, cache_write, ms, money } = *more;
    upsert.execute(params![payer, rounds, input, output, cache_read, cache_write, ms, money])?;
    Ok(())
}

/// Notes a request that is about to be sent: what it costs at least, for each payer.
pub fn reserve(tx: &Tx<'_>, id: u64, payers: &[String], input: u64, money: f64) -> Result<()> {
    let mut insert = tx.prepare_cached("INSERT INTO reservations (id, payer, input, money) VALUES (?1, ?2, ?3, ?4)")?;
    for payer in payers {
        insert.execute(params![id, payer, input, money])?;
    }
    Ok(())
}

/// Notes what has come of the answer to a request so far, and what the request costs with it.
pub fn progress(tx: &Tx<'_>, id: u64, input: u64, output: u64, money: f64) -> Result<()> {
    let mut update = tx.prepare_cached("UPDATE reservations SET input = ?2, output = ?3, money = ?4 WHERE id = ?1")?;
    update.execute(params![id, input, output, money])?;
    Ok(())
}

/// Ends a request: it has cost its payers so much.
pub fn settle(tx: &Tx<'_>, id: u64, payers: &[String], cost: &SpendingRow) -> Result<()> {
    tx.prepare_cached("DELETE FROM reservations WHERE id = ?1")?.execute([id])?;
    payers.iter().try_for_each(|payer| add(tx, payer, cost))
}

/// Charges the requests that a host left behind: what was sent has been paid for, and of the answer what was noted of it. Returns
/// how many there were.
pub fn settle_left(tx: &Tx<'_>) -> Result<usize> {
    let mut select = tx.prepare("SELECT payer, input, output, money FROM reservations")?;
    let left = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let left: Vec<(String, u64, u64, f64)> = left.collect::<Result<_, _>>()?;
    for (payer, input, output, money) in &left {
        let cost = SpendingRow { rounds: 1, input: *input, output: *output, money: *money, ..SpendingRow::default() };
        add(tx, payer, &cost)?;
    }
    if !left.is_empty() {
        tx.execute("DELETE FROM reservations", [])?;
    }
    Ok(left.len())
}
