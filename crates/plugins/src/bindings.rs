//! The world, as Rust types.
#![allow(clippy::all, missing_docs)]

wasmtime::component::bindgen!({ path: "wit", world: "module" });
