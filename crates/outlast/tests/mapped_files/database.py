"""A database whose index is mapped shared (sqlite3, WAL): one row for each line that is read, in a transaction that changes others as
well; then a line that says what all of it comes to."""
import sqlite3
import sys

db = sqlite3.connect(sys.argv[1], isolation_level=None)
assert db.execute("pragma journal_mode = wal").fetchone() == ("wal",)
db.execute("pragma wal_autocheckpoint = 7")
db.execute("create table t(number integer primary key, line text, later int)")
for n, line in enumerate(sys.stdin, 1):
    db.execute("begin")
    db.execute("insert into t values(?, ?, 0)", (n, line))
    db.execute("update t set later = later + number where number % 3 = ?", (n % 3,))
    db.execute("commit")
    total = db.execute("select count(*), sum(later) from t").fetchone()
    print(n, *total, flush=True)
print(db.execute("pragma integrity_check").fetchone()[0], flush=True)
