//! The header says the same as the library.

use std::mem::{offset_of, size_of};
use std::process::Command;

use outlast_glue_rt::Point;

use crate::client::{CReply, CRequest, BYTES, WORDS};
use crate::component::{COperation, CService};
use crate::descriptor::{Created, Lost, Note};
use crate::error;

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
fn structures_and_numbers_are_as_the_header_has_them() {
    let all: Vec<Structure> = layout! {
        CRequest "glue_request": operation, flags, epoch, count, wanted, words, bytes, length, file, answer, room;
        CReply "glue_reply": words, length, file, tracked, sequence, epoch;
        Lost "glue_lost": id, parent, epoch, creator, state, file, fields, bytes, length, asked;
        Created "glue_new": id, server, parent, creator, file, fields, bytes, length;
        Note "glue_note": field, add, value;
        COperation "glue_operation": name, words, bytes, file, closes;
        CService "glue_service": operations, count, global, dispatch, reached, born;
    };
    let mut text = String::from("#include \"outlast_glue.h\"\n");
    for (name, fields, size) in &all {
        text.push_str(&format!("_Static_assert(sizeof(struct {name}) == {size}, \"{name}\");\n"));
        for (field, at) in fields {
            text.push_str(&format!("_Static_assert(offsetof(struct {name}, {field}) == {at}, \"{name}.{field}\");\n"));
        }
    }
    let numbers = [
        ("GLUE_UNKNOWN", error::UNKNOWN),
        ("GLUE_REFUSED(1)", error::REFUSED - 1),
        ("GLUE_GIVEN_UP", error::GIVEN_UP),
        ("GLUE_POISONOUS", error::POISONOUS),
        ("GLUE_NO_SLOT", error::NO_SLOT),
        ("GLUE_TOO_LONG", error::TOO_LONG),
        ("GLUE_OUTDATED", error::OUTDATED),
        ("GLUE_SYSTEM(1)", error::SYSTEM - 1),
        ("GLUE_NOT_UP", error::NOT_UP),
        ("GLUE_NO_CHANNEL", error::NO_CHANNEL),
        ("GLUE_FAULT", error::FAULT),
        ("GLUE_TORN", error::TORN),
        ("(int)GLUE_EAGER", outlast_glue_rt::EAGER as i32),
        ("(int)GLUE_TRY", outlast_glue_rt::TRY as i32),
        ("(int)GLUE_RECREATE", outlast_glue_rt::RECREATE as i32),
        ("(int)GLUE_RECOVERED", outlast_glue_rt::RECOVERED as i32),
        ("GLUE_NO_BUFFER", error::NO_BUFFER),
        ("GLUE_IN_A_CALL", error::IN_A_CALL),
        ("GLUE_BUFFER", outlast_glue_rt::Buffer::SIZE as i32),
        ("GLUE_WORDS", WORDS as i32),
        ("GLUE_BYTES", BYTES as i32),
        ("(int)GLUE_PUBLISHED", Point::ALL.iter().position(|point| *point == Point::Published).expect("one") as i32),
    ];
    for (name, value) in numbers {
        text.push_str(&format!("_Static_assert({name} == {value}, \"{name}\");\n"));
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
        include_str!("buffer.rs"),
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
