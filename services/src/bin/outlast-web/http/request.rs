//! Reads the head of a request (RFC 9112), and refuses what is wrong with it.

use std::time::SystemTime;

use httparse::{Error, Status, EMPTY_HEADER};

/// Bytes of a head, all lines together.
pub const HEAD: usize = 8192;
/// Bytes of a request target.
pub const TARGET: usize = 2048;
const HEADERS: usize = 64;
/// Bytes of a body that is skipped for the connection's sake.
const BODY: usize = 65_536;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Head,
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: Method,
    pub target: String,
    /// The connection stays.
    pub keep: bool,
    /// What is newer is wanted, nothing else.
    pub since: Option<SystemTime>,
    /// Bytes of a body, which follow and mean nothing here.
    pub body: usize,
    /// Bytes of the head.
    pub length: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// More is to come.
    Partial,
    Request(Request),
    /// The status to answer with; the connection is of no use afterwards.
    Refused(u16),
}

pub fn parse(bytes: &[u8]) -> Parsed {
    let mut headers = [EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(&bytes[..bytes.len().min(HEAD)]) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) if bytes.len() < HEAD => return Parsed::Partial,
        Ok(Status::Partial) => return Parsed::Refused(too_long(bytes)),
        Err(Error::TooManyHeaders) => return Parsed::Refused(431),
        Err(Error::Version) => return Parsed::Refused(505),
        Err(_) => return Parsed::Refused(400),
    };
    match understand(&request, length) {
        Ok(request) => Parsed::Request(request),
        Err(status) => Parsed::Refused(status),
    }
}

/// The request line is too long, or the rest.
fn too_long(bytes: &[u8]) -> u16 {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) if end < TARGET => 431,
        _ => 414,
    }
}

fn understand(request: &httparse::Request<'_, '_>, length: usize) -> Result<Request, u16> {
    let method = match request.method {
        Some("GET") => Method::Get,
        Some("HEAD") => Method::Head,
        _ => Method::Other,
    };
    let target = request.path.ok_or(400u16)?;
    if target.len() > TARGET {
        return Err(414);
    }
    let newest = request.version == Some(1);
    let values = |name: &'static str| {
        let named = request.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
        named.map(|header| header.value.trim_ascii())
    };
    if values("host").count() > 1 || (newest && values("host").count() == 0) {
        return Err(400);
    }
    let mut body = None;
    for value in values("content-length").flat_map(|value| value.split(|byte| *byte == b',')) {
        let length = decimal(value.trim_ascii())?;
        // Those who count differently would see other requests in the same bytes.
        if body.is_some_and(|body| body != length) {
            return Err(400);
        }
        body = Some(length);
    }
    if values("transfer-encoding").next().is_some() {
        return Err(if body.is_some() || !newest { 400 } else { 411 });
    }
    if values("expect").next().is_some() {
        return Err(417);
    }
    let body = body.unwrap_or(0);
    if body > BODY {
        return Err(413);
    }
    let says = |token: &str| {
        let mut all = values("connection").flat_map(|value| value.split(|byte| *byte == b','));
        all.any(|word| word.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
    };
    let keep = !says("close") && (newest || says("keep-alive"));
    let since = values("if-modified-since").next();
    let since = since.and_then(|value| httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok());
    Ok(Request { method, target: target.to_string(), keep, since, body, length })
}

/// Digits and nothing else; a number without an end is one that is too large.
fn decimal(value: &[u8]) -> Result<usize, u16> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(400);
    }
    Ok(std::str::from_utf8(value).ok().and_then(|value| value.parse().ok()).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::{parse, Method, Parsed, Request, HEAD};

    fn request(text: &str) -> Request {
        match parse(text.as_bytes()) {
            Parsed::Request(request) => request,
            other => panic!("{text:?}: {other:?}"),
        }
    }

    #[test]
    fn a_request_is_read_up_to_its_end_and_not_before() {
        let text = "GET /a%20b?c HTTP/1.1\r\nHost: here\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\nGET";
        let end = text.len() - 3;
        for cut in 0..end {
            assert_eq!(parse(&text.as_bytes()[..cut]), Parsed::Partial, "{cut}");
        }
        let read = request(text);
        assert_eq!((read.method, read.target.as_str(), read.keep, read.length), (Method::Get, "/a%20b?c", true, end));
        assert_eq!(read.since.map(httpdate::fmt_http_date), Some("Sun, 06 Nov 1994 08:49:37 GMT".into()));
    }

    #[test]
    fn a_connection_stays_as_its_version_and_headers_say() {
        for (text, keep) in [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", true),
            ("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n", false),
            ("GET / HTTP/1.0\r\n\r\n", false),
            ("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true),
        ] {
            assert_eq!(request(text).keep, keep, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_refused_each_by_its_status() {
        let long = |length| "x".repeat(length);
        for (text, status) in [
            ("\u{1}\u{2}\r\n\r\n".to_string(), 400),
            ("GET /\r\n\r\n".into(), 400),
            ("GET / HTTP/1.1\r\n\r\n".into(), 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".into(), 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n".into(), 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 2\r\n\r\n".into(), 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n".into(), 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".into(), 411),
            (format!("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", "9".repeat(40)), 413),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 65537\r\n\r\n".into(), 413),
            (format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", long(2048)), 414),
            (format!("GET /{}", long(HEAD)), 414),
            ("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n".into(), 417),
            (format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", long(HEAD)), 431),
            (format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(64)), 431),
            ("GET / HTTP/2.0\r\nHost: a\r\n\r\n".into(), 505),
        ] {
            assert_eq!(parse(text.as_bytes()), Parsed::Refused(status), "{text:.60}");
        }
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let text = b"GET /a HTTP/1.1\r\nHost: here\r\nContent-Length: 5\r\nConnection: close\r\n\r\n";
        let mut state = 7u32;
        for _ in 0..20_000 {
            let mut bytes = text.to_vec();
            for _ in 0..3 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let at = (state >> 8) as usize % bytes.len();
                bytes[at] = (state >> 24) as u8;
            }
            let _ = parse(&bytes);
        }
    }
}
