//! PostgreSQL as its package has it: a tree of processes that share their buffers and their locks. Any of them is killed again and again
//! while clients change it, and these see no error, and every transaction happens once.

mod support;

use std::fs::Permissions;
use std::os::unix::fs::{chown, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use support::tree::{any, harass_until, NOBODY};
use support::{finish, said, until, Home};

const BINARIES: &str = "/usr/lib/postgresql/15/bin";
const CLIENTS: u32 = 4;
/// Of each client.
const TRANSACTIONS: u32 = 50;
/// Between two kills, on average, in microseconds.
const PAUSE: u64 = 200_000;
const KILLS: u32 = 5;

/// What every transaction changes by the same amount, and how many there were.
const LEDGER: &str = "select (select sum(abalance) from pgbench_accounts), (select sum(tbalance) from pgbench_tellers),
    (select sum(bbalance) from pgbench_branches), (select sum(delta) from pgbench_history), (select count(*) from pgbench_history)";

struct Database {
    home: Home,
    /// Root may not run it.
    user: Option<u32>,
}

impl Database {
    fn new() -> Self {
        // SAFETY: plain system call.
        let user = (unsafe { libc::geteuid() } == 0).then_some(NOBODY);
        let home = user.map_or_else(Home::new, Home::of);
        std::fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
        std::fs::create_dir(home.file("own")).unwrap();
        if let Some(user) = user {
            chown(home.file("own"), Some(user), Some(user)).unwrap();
        }
        let database = Self { home, user };
        let made = database.call("initdb", &["-D", &database.path("own/data"), "-A", "trust", "-U", "it", "-N"]);
        assert!(made.status.success(), "{}", said(&made));
        database
    }

    fn path(&self, name: &str) -> String {
        self.home.file(name).to_str().unwrap().into()
    }

    /// One of its programs, with where the server is to be found.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(format!("{BINARIES}/{program}"));
        command.args(arguments).env("PGHOST", self.path("own")).env("PGUSER", "it").env("PGDATABASE", "postgres");
        command.stdin(Stdio::null()).current_dir(self.home.file("own"));
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    fn call(&self, program: &str, arguments: &[&str]) -> Output {
        self.command(program, arguments).output().unwrap()
    }

    fn ask(&self, question: &str) -> Output {
        self.call("psql", &["-At", "-c", question])
    }

    /// The server's own arguments.
    fn server(&self) -> [String; 7] {
        let sockets = format!("unix_socket_directories={}", self.path("own"));
        let [c, data] = ["-c".to_string(), self.path("own/data")];
        [c.clone(), sockets, c.clone(), "listen_addresses=".into(), c + "shared_buffers=16MB", "-D".into(), data]
    }

    fn await_server(&self, server: Child) -> Child {
        until("a server that answers", || self.ask("select 1").status.success());
        server
    }

    /// Ends it as an administrator does: clients are not waited for.
    fn end(&self, server: Child) {
        // SAFETY: plain system call on a child that is not reaped.
        unsafe { libc::kill(server.id() as i32, libc::SIGINT) };
        let output = finish(server);
        assert!(output.status.success(), "{}", said(&output));
    }
}

#[test]
fn postgresql_makes_every_transaction_once_whoever_of_it_is_killed() {
    let database = Database::new();
    let arguments = database.server();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut native = database.command("postgres", &arguments);
    let server = database.await_server(native.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let made = database.call("pgbench", &["-i", "-q"]);
    assert!(made.status.success(), "{}", said(&made));
    database.end(server);

    let postgres = format!("{BINARIES}/postgres");
    let mut outlast = database.home.outlast(["run", "--tree", "--name", "it", "--", &postgres]);
    outlast.args(&arguments).current_dir(database.home.file("own")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let server = database.await_server(outlast.process_group(0).spawn().unwrap());
    let log = || format!("{:#?}", database.home.log("it"));

    let [clients, transactions] = [CLIENTS, TRANSACTIONS].map(|number| number.to_string());
    let (mut rounds, mut kills) = (0, 0);
    while kills < KILLS {
        let mut clients = database.command("pgbench", &["-n", "-c", &clients, "-t", &transactions]);
        let mut clients = clients.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let is_over = |_| clients.try_wait().unwrap().is_some();
        kills += harass_until(&database.home, "it", (rounds, PAUSE), any, is_over);
        rounds += 1;
        let output = finish(clients);
        assert!(output.status.success() && output.stderr.is_empty(), "{}: {}", said(&output), log());
    }
    let ledger = String::from_utf8(database.ask(LEDGER).stdout).unwrap();
    let ledger: Vec<&str> = ledger.trim().split('|').collect();
    let wanted = (CLIENTS * TRANSACTIONS) as u64 * rounds;
    let is_balanced = ledger.len() == 5 && ledger[..4].iter().all(|sum| *sum == ledger[0]);
    assert!(is_balanced && ledger[4] == wanted.to_string(), "{wanted}: {ledger:?}, {kills} kills: {}", log());
    database.end(server);
}
