//! The schema of the database, as a list of migrations. A released step is never changed; new ones are appended.
//! `user_version` counts the steps taken. The store uses it.

use rusqlite::Connection;

use acheron_base::{Error, Result};

/// Applies the missing steps, each in a transaction of its own.
pub(super) fn migrate(conn: &mut Connection, steps: &[&str]) -> Result<()> {
    let taken = version(conn)?;
    if taken > steps.len() {
        return Err(Error::unavailable(format!(
            "the database has schema version {taken}, and this acheron knows {}: use a newer acheron, or another state directory",
            steps.len()
        )));
    }
    for (done, step) in steps.iter().enumerate().skip(taken) {
        let tx = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        tx.execute_batch(step)?;
        tx.pragma_update(None, "user_version", done + 1)?;
        tx.commit()?;
    }
    Ok(())
}

pub(super) fn version(conn: &Connection) -> Result<usize> {
    Ok(conn.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(conn: &Connection) -> Vec<String> {
        let mut names = conn.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").unwrap();
        names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn only_the_missing_steps_are_taken() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, &["CREATE TABLE a (x)"]).unwrap();
        migrate(&mut conn, &["CREATE TABLE a (x)", "CREATE TABLE b (x)"]).unwrap();
        migrate(&mut conn, &["CREATE TABLE a (x)", "CREATE TABLE b (x)"]).unwrap();
        assert_eq!((version(&conn).unwrap(), tables(&conn)), (2, vec!["a".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn a_step_that_fails_leaves_nothing() {
        let mut conn = Connection::open_in_memory().unwrap();
        assert!(migrate(&mut conn, &["CREATE TABLE a (x)", "CREATE TABLE b (x); CREATE TABLE a (x)"]).is_err());
        assert_eq!((version(&conn).unwrap(), tables(&conn)), (1, vec!["a".to_owned()]));
    }

    #[test]
    fn a_newer_database_is_refused_in_words() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, &["CREATE TABLE a (x)", "CREATE TABLE b (x)"]).unwrap();
        let refused = migrate(&mut conn, &["CREATE TABLE a (x)"]).unwrap_err();
        assert!(refused.message.contains("schema version 2, and this acheron knows 1"), "{refused}");
    }
}
