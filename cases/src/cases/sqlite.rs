//! sqlite3 in transactions, committed and rolled back; the database file is compared byte by byte.

use crate::case::{Case, Program, Stage};
use crate::drive::{Drive, Input};

pub const CASES: &[Case] =
    &[Case::new("sqlite", |_| Ok(Program::new(&["/usr/bin/sqlite3", "-batch", "bank.db"])), statements)
        .needs(&["/usr/bin/sqlite3"])];

fn statements(_: &Stage) -> Drive {
    let mut sql = String::from(
        "CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT, balance INTEGER);\n\
         CREATE INDEX by_owner ON account (owner);\n",
    );
    for round in 0..60 {
        sql.push_str("BEGIN;\n");
        for i in 0..10 {
            let id = round * 10 + i;
            sql.push_str(&format!("INSERT INTO account VALUES ({id}, 'owner {}', {});\n", id % 37, id * 7));
        }
        sql.push_str("UPDATE account SET balance = balance + 1 WHERE id % 3 = 0;\n");
        sql.push_str("SELECT count(*), sum(balance), max(owner) FROM account;\n");
        sql.push_str(if round % 4 == 3 { "ROLLBACK;\n" } else { "COMMIT;\n" });
        if round % 4 == 3 {
            sql.push_str(&format!("DELETE FROM account WHERE id < {};\n", round * 2));
        }
    }
    sql.push_str("PRAGMA integrity_check;\nSELECT owner, sum(balance) FROM account GROUP BY owner;\n");
    Drive::Pipes(Input::pieces(sql.into_bytes(), 400))
}
