//! Writes heads of responses, and bodies of those that are not a file.

use std::fmt::Write;
use std::time::SystemTime;

/// What is in a head beside its status.
#[derive(Default)]
pub struct Head<'a> {
    /// Bytes of the body, whether or not it follows.
    pub length: u64,
    pub kind: &'a str,
    pub modified: Option<SystemTime>,
    pub location: Option<&'a str>,
    pub keep: bool,
}

pub fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 => "Moved Permanently",
        304 => "Not Modified",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        414 => "URI Too Long",
        417 => "Expectation Failed",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Internal Server Error",
    }
}

pub fn head(to: &mut Vec<u8>, status: u16, head: &Head<'_>) {
    let mut text = String::with_capacity(256);
    let date = httpdate::HttpDate::from(SystemTime::now());
    // Writing to a string does not fail.
    let _ = write!(text, "HTTP/1.1 {status} {}\r\nDate: {date}\r\nServer: outlast-web\r\n", reason(status));
    if status != 304 {
        let _ = write!(text, "Content-Type: {}\r\nContent-Length: {}\r\n", head.kind, head.length);
    }
    if let Some(modified) = head.modified {
        let _ = write!(text, "Last-Modified: {}\r\n", httpdate::HttpDate::from(modified));
    }
    if let Some(location) = head.location {
        let _ = write!(text, "Location: {location}\r\n");
    }
    if status == 405 {
        text.push_str("Allow: GET, HEAD\r\n");
    }
    let _ = write!(text, "Connection: {}\r\n\r\n", if head.keep { "keep-alive" } else { "close" });
    to.extend_from_slice(text.as_bytes());
}

/// A whole response that says its status in words. `only_head`: without them.
pub fn plain(to: &mut Vec<u8>, status: u16, location: Option<&str>, keep: bool, only_head: bool) {
    let body = format!("{status} {}\n", reason(status));
    let about = Head { length: body.len() as u64, kind: "text/plain; charset=utf-8", location, keep, modified: None };
    head(to, status, &about);
    if !only_head {
        to.extend_from_slice(body.as_bytes());
    }
}
