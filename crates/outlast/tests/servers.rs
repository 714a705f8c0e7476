//! Servers of several processes that share a scoreboard, a listening socket and a log: any of them is killed again and again, and their
//! clients see nothing of it.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use support::tree::{any, harass_until, programs};
use support::{finish, said, until, Home};

const CLIENTS: usize = 4;
/// By each client, on one connection; and then further ones until there were so many kills.
const REQUESTS: usize = 300;
const KILLS: u32 = 9;
/// Longer than what servers read or send at once.
const BODY: usize = 20_000;
/// On average, in microseconds.
const PAUSE: u64 = 15_000;

fn is_root() -> bool {
    // SAFETY: plain system call.
    unsafe { libc::geteuid() == 0 }
}

/// A port that nobody listens at.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn body() -> Vec<u8> {
    (0..BODY).map(|i| b'a' + (i % 23) as u8).collect()
}

/// One request, and its whole answer.
fn ask(connection: &mut BufReader<TcpStream>, path: &str) -> (String, Vec<u8>) {
    write!(connection.get_mut(), "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let (mut status, mut len) = (String::new(), 0);
    connection.read_line(&mut status).unwrap();
    loop {
        let mut line = String::new();
        assert!(connection.read_line(&mut line).unwrap() > 0, "closed after {status:?}");
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            len = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; len];
    connection.read_exact(&mut body).unwrap();
    (status.trim().to_string(), body)
}

fn connect(port: u16) -> BufReader<TcpStream> {
    let connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    BufReader::new(connection)
}

/// Starts the server, which writes a line for each request to `log`, serves the clients under kills, and ends it.
fn serves_under_kills(home: &Home, port: u16, command: &[&str], processes: usize) {
    serve(home, port, command, processes, false);
}

/// The same. `leaves`: it goes on without its first process, as a daemon does.
fn serve(home: &Home, port: u16, command: &[&str], processes: usize, leaves: bool) {
    let mut outlast = home.outlast(["run", "--tree", "--name", "server", "--"]);
    // A server that ends may end its whole process group.
    outlast.args(command).process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server: Child = outlast.spawn().unwrap();
    if leaves {
        let status = server.wait().unwrap();
        assert!(status.success(), "{status}: {:#?}", home.log("server"));
    }
    until("a server that listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    until("all of its processes", || programs(home, "server").len() >= processes);
    let landed = Arc::new(AtomicU32::new(0));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let landed = landed.clone();
            thread::spawn(move || {
                let (mut connection, mut request) = (connect(port), 0);
                while request < REQUESTS || landed.load(Relaxed) < KILLS {
                    let (status, answer) = ask(&mut connection, &format!("/file?{client}-{request}"));
                    assert_eq!((status.as_str(), answer == body()), ("HTTP/1.1 200 OK", true), "{client}-{request}");
                    request += 1;
                }
                request
            })
        })
        .collect();
    harass_until(home, "server", (1, PAUSE), any, |kills| {
        landed.store(kills, Relaxed);
        clients.iter().all(|client| client.is_finished())
    });
    let requests: Vec<_> = clients
        .into_iter()
        .map(|client| client.join().unwrap_or_else(|_| panic!("{:#?}", home.log("server"))))
        .collect();
    let output = match leaves {
        true => home.outlast(["stop", "server"]).output().unwrap(),
        false => {
            assert_eq!(server.try_wait().unwrap().map(|status| status.code()), None, "{:#?}", home.log("server"));
            // SAFETY: plain system call on a child that is not reaped.
            unsafe { libc::kill(server.id() as i32, libc::SIGTERM) };
            finish(server)
        }
    };
    assert!(output.status.success(), "{}: {:#?}", said(&output), home.log("server"));
    // Each request was noted once.
    let log = std::fs::read_to_string(home.file("log")).unwrap();
    for (client, requests) in requests.into_iter().enumerate() {
        for request in 0..requests {
            let line = format!("/file?{client}-{request} ");
            assert_eq!(log.matches(&line).count(), 1, "{line}");
        }
    }
}

/// The folder that is served.
fn folder(home: &Home) -> String {
    let folder = home.file("served");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("file"), body()).unwrap();
    folder.to_str().unwrap().to_string()
}

#[test]
fn nginx_with_two_workers() {
    nginx(false);
}

#[test]
fn nginx_as_a_daemon() {
    nginx(true);
}

fn nginx(leaves: bool) {
    let home = Home::new();
    let (port, served) = (free_port(), folder(&home));
    let (user, own) = (if is_root() { "user root;" } else { "" }, home.file("own"));
    std::fs::create_dir(&own).unwrap();
    let own = own.to_str().unwrap();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|what| format!("{what}_temp_path {own}/{what};\n"))
        .concat();
    let log = home.file("log");
    let text = format!(
        "daemon {daemon}; worker_processes 2; pid {own}/pid; error_log {own}/error; {user}
events {{ worker_connections 64; }}
http {{
    log_format path \"$request_uri \"; access_log {log} path; keepalive_requests 100000;
    {temporary}
    server {{ listen 127.0.0.1:{port}; root {served}; }}
}}",
        daemon = if leaves { "on" } else { "off" },
        log = log.display()
    );
    let configuration = home.file("nginx.conf");
    std::fs::write(&configuration, text).unwrap();
    let command = ["/usr/sbin/nginx", "-p", own, "-c", configuration.to_str().unwrap(), "-e", "stderr"];
    serve(&home, port, &command, 3, leaves);
}

#[test]
fn apache_with_six_workers_that_give_up_root() {
    let home = Home::new();
    let (port, served) = (free_port(), folder(&home));
    let user = if is_root() { "User www-data\nGroup www-data" } else { "" };
    let own = home.file("own");
    std::fs::create_dir(&own).unwrap();
    for folder in [home.file(""), own.clone()] {
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let (own, log) = (own.display(), home.file("log"));
    let text = format!(
        "ServerRoot {own}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {own}/pid
DefaultRuntimeDir {own}
ErrorLog {own}/error
Mutex posixsem
LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
{user}
StartServers 6
MinSpareServers 6
MaxSpareServers 6
MaxRequestWorkers 6
MaxKeepAliveRequests 0
KeepAliveTimeout 60
LogFormat \"%U%q \" path
CustomLog {log} path
DocumentRoot {served}
",
        log = log.display()
    );
    let configuration = home.file("apache.conf");
    std::fs::write(&configuration, text).unwrap();
    let command = ["/usr/sbin/apache2", "-DFOREGROUND", "-f", configuration.to_str().unwrap()];
    serves_under_kills(&home, port, &command, 7);
}
