//! The header says the same as the library.

use std::mem::{offset_of, size_of};
use std::process::Command;

use crate::client::{CReply, CRequest};
use crate::component::{COperation, CService};
use crate::descriptor::{Created, Lost, Note};

/// Its name, its fields with where they lie, and its size.
type Structure = (&'static str, Vec<(&'static str, usize)>, usize);

macro_rules! layout {
    ($($rust:ident $c:literal: $($field:ident),*;)*) => {
        vec![$((
            $c,
            vec![$((stringify!($field), offset_of!($rust, $field))),*],
            size_of::<$rust>(),
        )),*]
    };
}

#[test]
fn structures_lie_in_memory_as_the_header_has_them() {
    let all: Vec<Structure> = layout! {
        CRequest "glue_request": operation, flags, epoch, count, wanted, words, bytes, length, file, answer, room;
        CReply "glue_reply": words, length, file, tracked, sequence, epoch;
        Lost "glue_lost": id, parent, epoch, creator, state, file, fields, bytes, length, asked;
        Created "glue_new": id, server, parent, creator, file, fields, bytes, length;
        Note "glue_note": field, add, value;
        COperation "glue_operation": name, words, bytes, file;
        CService "glue_service": operations, count, global, dispatch, reached;
    };
    let mut text = String::from("#include \"outlast_glue.h\"\n");
    for (name, fields, size) in &all {
        text.push_str(&format!("_Static_assert(sizeof(struct {name}) == {size}, \"{name}\");\n"));
        for (field, at) in fields {
            text.push_str(&format!("_Static_assert(offsetof(struct {name}, {field}) == {at}, \"{name}.{field}\");\n"));
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("layout.c");
    std::fs::write(&file, text).expect("a file");
    for compiler in ["gcc", "clang"] {
        let output = Command::new(compiler)
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", env!("CARGO_MANIFEST_DIR")])
            .arg(&file)
            .output()
            .expect("a compiler");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    // As C++ has it, too.
    let output = Command::new("g++")
        .args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/outlast_glue.h"))
        .output()
        .expect("a compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_function_of_the_header_is_in_the_library_and_none_beside() {
    let header = include_str!("../outlast_glue.h");
    let library = [
        include_str!("call.rs"),
        include_str!("channel.rs"),
        include_str!("client.rs"),
        include_str!("component.rs"),
        include_str!("descriptor.rs"),
        include_str!("error.rs"),
        include_str!("mapping.rs"),
        include_str!("resources.rs"),
        include_str!("system.rs"),
    ]
    .concat();
    let names = |text: &str, before: &[&str]| {
        let mut names: Vec<String> = Vec::new();
        for line in text.lines().filter(|line| line.contains("glue_") && !line.starts_with([' ', '/', '#', '}'])) {
            let Some((start, _)) = line.split_once('(') else { continue };
            let name = start.rsplit([' ', '*']).next().unwrap_or_default().split('<').next().unwrap_or_default();
            if before.iter().any(|word| start.starts_with(word)) {
                names.push(name.to_string());
            }
        }
        names.sort();
        names
    };
    let types = ["int ", "uint", "void ", "const void", "const uint64_t", "size_t ", "pid_t ", "struct "];
    let declared = names(header, &types);
    let defined = names(&library, &["unsafe extern \"C\" fn ", "extern \"C\" fn "]);
    assert!(declared.len() > 60);
    assert_eq!(declared, defined);
}
