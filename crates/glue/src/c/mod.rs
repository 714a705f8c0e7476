//! Stubs in C: types, client and server of an interface, a file each, C11.

mod call;
mod client;
mod creation;
mod dispatch;
mod names;
mod recovery;
mod server;
mod types;

use crate::mechanism::Mechanism;
use crate::model::Interface;
use crate::text::Text;
use crate::writer::Writer;

/// A generated file.
pub struct File {
    pub name: String,
    pub text: String,
}

/// The generated files. `without`: mechanisms that are left out, to see what they are for.
pub fn generate(interface: &Interface, source: &str, without: &[Mechanism]) -> Vec<File> {
    let writer = Writer { interface, without, tracks: true };
    let service = &interface.service;
    let file = |part: &str, about: &str, write: &dyn Fn(&Writer, &mut Text)| {
        let mut text = Text::wrapped(120);
        text.line(&format!("/* {about} of the service `{service}`, written by glue from {source}."));
        let summary = writer.summary();
        for (at, line) in summary.iter().enumerate() {
            text.line(&format!(" * {line}{}", if at + 1 == summary.len() { " */" } else { "" }));
        }
        let guard = part.ends_with(".h").then(|| format!("GLUE_{}_{}", service, part.replace('.', "_")).to_uppercase());
        if let Some(guard) = &guard {
            text.line(&format!("#ifndef {guard}"));
            text.line(&format!("#define {guard}"));
            text.blank();
        }
        write(&writer, &mut text);
        if guard.is_some() {
            text.blank();
            text.line("#endif");
        }
        File { name: format!("{service}_{part}"), text: text.done() }
    };
    vec![
        file("types.h", "Types", &types::write),
        file("client.h", "Client's stub", &client::header),
        file("client.c", "Client's stub", &client::write),
        file("server.h", "Server's stub", &server::header),
        file("server.c", "Server's stub", &server::write),
    ]
}

/// The comment before a mechanism's block.
fn mark(writer: &Writer, mechanism: Mechanism, text: &mut Text) {
    text.line(&format!("/* {} */", writer.mark(mechanism)));
}

/// For C++, too.
fn extern_c(text: &mut Text, write: impl FnOnce(&mut Text)) {
    text.line("#ifdef __cplusplus");
    text.line("extern \"C\" {");
    text.line("#endif");
    text.blank();
    write(text);
    text.blank();
    text.line("#ifdef __cplusplus");
    text.line("}");
    text.line("#endif");
}
