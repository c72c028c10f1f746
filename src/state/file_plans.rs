//! Changes of plain files that running jobs have decided. Once a row is here the job has happened: the host makes the
//! changes, or the next one does.

use serde_json::Value;

use acheron_base::Result;
use acheron_base::confined_dir::FilePlan;
use acheron_store::{Connection, Tx, json, params};

/// The decided changes of one job.
pub struct PlannedFiles {
    pub job: String,
    pub plan: FilePlan,
    pub result: Value,
}

/// Decides the changes of a job. Returns false if the job is not running: then it must not change anything.
pub fn insert(tx: &Tx<'_>, job: &str, plan: &str, result: &Value) -> Result<bool> {
    let mut insert = tx.prepare_cached(
        "INSERT INTO file_plans (job, plan, result) \
         SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM jobs WHERE id = ?1 AND state = 'running')",
    )?;
    Ok(insert.execute(params![job, plan, result.to_string()])? == 1)
}

pub fn delete(tx: &Tx<'_>, job: &str) -> Result<()> {
    tx.prepare_cached("DELETE FROM file_plans WHERE job = ?1")?.execute([job])?;
    Ok(())
}

/// Every row.
pub fn all(conn: &Connection) -> Result<Vec<PlannedFiles>> {
    let mut select = conn.prepare("SELECT job, plan, result FROM file_plans ORDER BY job")?;
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let read = |row: Result<(String, String, String), _>| {
        let (job, plan, result) = row?;
        Ok(PlannedFiles { job, plan: json::read(&plan)?, result: json::read(&result)? })
    };
    rows.map(read).collect()
}
