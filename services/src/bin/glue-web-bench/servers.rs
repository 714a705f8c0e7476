//! The servers that are measured, each with the same page.

use std::fs::Permissions;
use std::io::{self, BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Server {
    /// Ours, by stubs without tracking and recovery.
    Base,
    /// Ours, by stubs of which those of locks, events and files are written by hand, in the manner of C3.
    Hand,
    /// Ours, by those that glue writes for applications.
    Glue,
    /// The same two while their components are killed.
    HandCrashes,
    Crashes,
    Apache,
    Nginx,
}

impl Server {
    /// Whether its components are killed.
    pub fn crashes(self) -> bool {
        matches!(self, Self::HandCrashes | Self::Crashes)
    }

    /// The stubs that ours calls by.
    fn stubs(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Hand | Self::HandCrashes => "hand",
            _ => "glue",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Hand => "base + by hand",
            Self::Glue => "base + glue",
            Self::HandCrashes => "base + by hand, with crashes",
            Self::Crashes => "base + glue, with crashes",
            Self::Apache => "Apache",
            Self::Nginx => "nginx",
        }
    }

    fn program(self) -> Option<&'static str> {
        match self {
            Self::Apache => Some("/usr/sbin/apache2"),
            Self::Nginx => Some("/usr/sbin/nginx"),
            _ => None,
        }
    }

    /// Whether there is one here.
    pub fn installed(self) -> bool {
        self.program().is_none_or(|program| Path::new(program).exists())
    }
}

/// One that runs, until this is dropped.
pub struct Running {
    child: Child,
    pub address: SocketAddr,
    _folder: TempDir,
}

impl Running {
    pub fn process(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // SAFETY: plain call; the child has not been waited for. Its own children are ended by it, which SIGKILL would not let it.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
        let _ = self.child.wait();
    }
}

/// Starts a server with this as `/page`; it answers when this returns.
pub fn start(server: Server, page: &[u8], workers: u32) -> io::Result<Running> {
    let folder = tempfile::tempdir()?;
    let root = folder.path().join("root");
    std::fs::create_dir(&root)?;
    std::fs::write(root.join("page"), page)?;
    // Others serve as users of their own.
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
    let mut command = match server.program() {
        None => {
            let mut command = Command::new(std::env::current_exe()?.with_file_name("outlast-web"));
            command.args([
                "--listen",
                "127.0.0.1:0",
                "--stubs",
                server.stubs(),
                "--workers",
                &workers.to_string(),
                "--root",
            ]);
            command.arg(&root).stdout(Stdio::piped());
            let mut child = command.spawn()?;
            let mut line = String::new();
            if let Some(output) = child.stdout.take() {
                BufReader::new(output).read_line(&mut line)?;
            }
            let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()?.parse().ok());
            return match address {
                Some(address) => Ok(Running { child, address, _folder: folder }),
                None => {
                    child.wait()?;
                    Err(io::Error::other("outlast-web does not start"))
                }
            };
        }
        Some(program) => Command::new(program),
    };
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let at = folder.path().display();
    let file = folder.path().join("configuration");
    let text = match server {
        Server::Apache => apache(&at.to_string(), address, workers),
        _ => nginx(&at.to_string(), address, workers),
    };
    std::fs::write(&file, text)?;
    match server {
        Server::Apache => command.args(["-D", "FOREGROUND", "-f"]).arg(&file),
        _ => command.args(["-e", "stderr", "-p"]).arg(folder.path()).arg("-c").arg(&file),
    };
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let running = Running { child, address, _folder: folder };
    let begun = Instant::now();
    while TcpStream::connect(address).is_err() {
        if begun.elapsed() > Duration::from_secs(20) {
            return Err(io::Error::other(format!("{} does not answer", server.name())));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(running)
}

/// Processes with threads that wait for events, no log, connections that stay as long as the client likes.
fn apache(folder: &str, address: SocketAddr, workers: u32) -> String {
    let modules = ["mpm_event", "authz_core"];
    let modules: String = modules
        .iter()
        .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"))
        .collect();
    format!(
        "{modules}ServerRoot {folder}\nServerName localhost\nListen {address}\nPidFile {folder}/pid\nErrorLog /dev/null\n\
         User www-data\nGroup www-data\nDocumentRoot {folder}/root\nMaxKeepAliveRequests 0\nThreadsPerChild 25\n\
         StartServers {workers}\n<Directory {folder}/root>\nRequire all granted\n</Directory>\n"
    )
}

fn nginx(folder: &str, address: SocketAddr, workers: u32) -> String {
    format!(
        "daemon off;\nworker_processes {workers};\npid {folder}/pid;\nerror_log /dev/null;\n\
         events {{ worker_connections 1000; }}\nhttp {{ access_log off; keepalive_requests 100000000;\n\
         client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;\n\
         uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;\n\
         server {{ listen {address}; root {folder}/root; }} }}\n"
    )
}
