//! C's types, those that the file defines, and opaque ones.

use crate::diagnostic::Diagnostic;
use crate::model::Type;
use crate::syntax::{self, File};

/// An open file, such as memory that components share; no number, for numbers of files mean nothing to others.
pub const FILE: &str = "fd_t";

/// A shared buffer, which a client lends to the component for a call.
pub const BUFFER: &str = "buffer_t";

/// C's and Rust's name of each type that needs no definition. An enum of C's `char` is a byte.
const KNOWN: [(&str, &str); 33] = [
    ("char", "i8"),
    ("signed char", "i8"),
    ("unsigned char", "u8"),
    ("short", "i16"),
    ("short int", "i16"),
    ("unsigned short", "u16"),
    ("unsigned short int", "u16"),
    ("int", "i32"),
    ("signed int", "i32"),
    ("signed", "i32"),
    ("unsigned", "u32"),
    ("unsigned int", "u32"),
    ("long", "i64"),
    ("long int", "i64"),
    ("signed long", "i64"),
    ("unsigned long", "u64"),
    ("unsigned long int", "u64"),
    ("long long", "i64"),
    ("unsigned long long", "u64"),
    ("size_t", "u64"),
    ("ssize_t", "i64"),
    ("intptr_t", "i64"),
    ("uintptr_t", "u64"),
    ("int8_t", "i8"),
    ("uint8_t", "u8"),
    ("int16_t", "i16"),
    ("uint16_t", "u16"),
    ("int32_t", "i32"),
    ("uint32_t", "u32"),
    ("int64_t", "i64"),
    ("uint64_t", "u64"),
    (BUFFER, "u32"),
    (FILE, "std::sync::Arc<std::os::fd::OwnedFd>"),
];

pub fn typedefs(file: &File, diagnostics: &mut Vec<Diagnostic>) -> Vec<(String, Type)> {
    let mut typedefs: Vec<(String, Type)> = Vec::new();
    for typedef in &file.typedefs {
        if typedef.ty.pointers > 0 {
            let complaint = Diagnostic::error(typedef.ty.span.clone(), "a type that points", "does not reach a server");
            diagnostics.push(complaint.hint("components share no addresses; use a number"));
        }
        if typedefs.iter().any(|(name, _)| *name == typedef.name.text) {
            let complaint = format!("`{}` is defined twice", typedef.name.text);
            diagnostics.push(Diagnostic::error(typedef.name.span.clone(), complaint, "again"));
            continue;
        }
        let ty = resolve(&typedef.ty, &typedefs);
        typedefs.push((typedef.name.text.clone(), ty));
    }
    typedefs
}

/// The type's names in C and Rust, without its pointers.
pub fn resolve(ty: &syntax::Type, typedefs: &[(String, Type)]) -> Type {
    if let Some((_, rust)) = KNOWN.iter().find(|(c, _)| *c == ty.text) {
        return Type { c: ty.text.clone(), rust: (*rust).to_string(), opaque: false };
    }
    let opaque = !typedefs.iter().any(|(name, _)| *name == ty.text);
    Type { c: ty.text.clone(), rust: ty.text.replace(' ', "_"), opaque }
}
