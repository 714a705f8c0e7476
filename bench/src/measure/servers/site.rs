//! Servers of several processes, and the small file that they serve.

use crate::failure::{Outcome, Tried};
use std::ffi::OsString;
use std::fs::{create_dir, write, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// A server of Debian's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A master and two workers.
    Nginx,
    /// A master and ten workers, each with one client.
    Apache,
}

/// What it serves, and its folder, which its workers may look into when they have given up root.
pub struct Site {
    folder: TempDir,
}

/// The file that is asked for.
pub const PATH: &str = "/index.html";
pub const BODY: &[u8] = b"a small page, such as most are\n";

const NGINX: &str = "/usr/sbin/nginx";
const APACHE: &str = "/usr/sbin/apache2";
const MODULES: &str = "/usr/lib/apache2/modules";

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Apache => "apache",
        }
    }

    pub fn program(self) -> &'static str {
        match self {
            Self::Nginx => NGINX,
            Self::Apache => APACHE,
        }
    }

    /// How many processes it has when it is ready.
    pub fn processes(self) -> usize {
        match self {
            Self::Nginx => 3,
            Self::Apache => 11,
        }
    }
}

impl Site {
    pub fn make() -> Outcome<Self> {
        let everybody = Permissions::from_mode(0o755);
        let made = tempfile::Builder::new().prefix("outlast-bench-").permissions(everybody).tempdir();
        let site = Self { folder: made.tried("make a folder")? };
        let served = site.folder.path().join("served");
        create_dir(&served).tried_on(&served)?;
        let page = served.join(&PATH[1..]);
        write(&page, BODY).tried_on(page)?;
        Ok(site)
    }

    /// The server's command line; its configuration lies in the folder then.
    pub fn command(&self, kind: Kind, port: u16) -> Outcome<Vec<OsString>> {
        let folder = self.folder.path();
        let text = match kind {
            Kind::Nginx => nginx(folder, port),
            Kind::Apache => apache(folder, port),
        };
        let file = folder.join(format!("{}.conf", kind.name()));
        write(&file, text).tried_on(&file)?;
        let file = file.into_os_string();
        Ok(match kind {
            Kind::Nginx => {
                vec![NGINX.into(), "-p".into(), folder.into(), "-e".into(), "stderr".into(), "-c".into(), file]
            }
            Kind::Apache => vec![APACHE.into(), "-DFOREGROUND".into(), "-f".into(), file],
        })
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn nginx(folder: &Path, port: u16) -> String {
    let own = folder.display();
    let user = if is_root() { "user www-data;" } else { "" };
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|what| format!("{what}_temp_path {own}/{what};\n"))
        .concat();
    format!(
        "daemon off; worker_processes 2; pid {own}/nginx.pid; {user}
events {{ worker_connections 64; }}
http {{
    access_log {own}/nginx.log; keepalive_requests 100000000;
    {temporary}
    server {{ listen 127.0.0.1:{port}; root {own}/served; }}
}}
"
    )
}

fn apache(folder: &Path, port: u16) -> String {
    let own = folder.display();
    let user = if is_root() { "User www-data\nGroup www-data" } else { "" };
    format!(
        "ServerRoot {own}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {own}/apache.pid
DefaultRuntimeDir {own}
ErrorLog {own}/apache.errors
Mutex posixsem
LoadModule mpm_prefork_module {MODULES}/mod_mpm_prefork.so
LoadModule authz_core_module {MODULES}/mod_authz_core.so
{user}
StartServers 10
MinSpareServers 1
MaxSpareServers 10
MaxRequestWorkers 10
MaxKeepAliveRequests 0
KeepAliveTimeout 60
LogFormat \"%h %t \\\"%r\\\" %>s %b\" short
CustomLog {own}/apache.log short
DocumentRoot {own}/served
"
    )
}
