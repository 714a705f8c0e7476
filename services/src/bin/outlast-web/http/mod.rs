//! HTTP/1.1, as far as a server of static files needs it: no state, no input or output.

pub mod request;
pub mod response;
pub mod target;
