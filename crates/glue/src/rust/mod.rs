//! Stubs in Rust: types, client and server of an interface, in one file.

mod client;
mod recovery;
mod server;
mod untracked;

use crate::mechanism::Mechanism;
use crate::model::{Function, Interface, Kind, Parameter};

use crate::text::Text;
use crate::writer::Writer;

/// The generated file. `without`: mechanisms that are left out, to see what they are for.
pub fn generate(interface: &Interface, source: &str, without: &[Mechanism]) -> String {
    let mut text = Text::default();
    let writer = Writer { interface, without, tracks: true };
    head(&writer, source, &mut text);
    server::write(&writer, &mut text);
    client::write(&writer, &mut text);
    text.done()
}

/// Stubs of the same interface that carry calls and do nothing else: what tracking and recovery cost is measured beside them. A
/// call that the component dies over ends with `CallError::Died`, and so does every later one about what it knew.
pub fn generate_untracked(interface: &Interface, source: &str) -> String {
    let mut text = Text::default();
    let writer = Writer { interface, without: &Mechanism::ALL, tracks: false };
    head(&writer, source, &mut text);
    server::write(&writer, &mut text);
    untracked::write(&writer, &mut text);
    text.done()
}

fn head(writer: &Writer, source: &str, text: &mut Text) {
    let interface = writer.interface;
    text.line(&format!("// Stubs of the service `{}`, written by glue from {source}.", interface.service));
    for line in writer.summary() {
        text.line(&format!("// {line}"));
    }
    text.blank();
    types(interface, text);
}

/// The comment before a mechanism's block.
fn mark(writer: &Writer, mechanism: Mechanism, text: &mut Text) {
    text.line(&format!("// {}", writer.mark(mechanism)));
}

/// The operation's constant.
fn constant(function: &Function) -> String {
    function.name.trim_start_matches('_').to_uppercase()
}

/// A name that Rust lets through.
fn rust_name(name: &str) -> String {
    const KEYWORDS: [&str; 12] =
        ["type", "match", "move", "ref", "fn", "in", "impl", "loop", "mod", "use", "where", "self"];
    match KEYWORDS.contains(&name) {
        true => format!("{name}_"),
        false => name.to_string(),
    }
}

/// `spdid: spdid_t, name: &[u8]`; `buffer`: what a shared buffer is.
fn signature(function: &Function, buffer: &str) -> String {
    let one = |p: &Parameter| match p.kind {
        Kind::Bytes(_) => format!(", {}: &[u8]", rust_name(&p.name)),
        Kind::Buffer => format!(", {}: {buffer}", rust_name(&p.name)),
        _ => format!(", {}: {}", rust_name(&p.name), p.ty.rust),
    };
    function.given().map(one).collect()
}

/// A buffer as a client has it, and as the service does.
const CLIENTS: &str = "&outlast_glue_rt::Buffer";
const LENT: &str = "&mut outlast_glue_rt::Lent<'_>";

/// What a function gives back: its value alone, or a tuple with what came back beside it.
fn result(function: &Function) -> String {
    let ty = |p: &Parameter| match p.kind {
        Kind::OutBytes(_) => "Vec<u8>".to_string(),
        _ => p.ty.rust.clone(),
    };
    let outs: Vec<String> = function.outs().map(ty).collect();
    match outs.is_empty() {
        true => function.returns.rust.clone(),
        false => format!("({}, {})", function.returns.rust, outs.join(", ")),
    }
}

fn types(interface: &Interface, text: &mut Text) {
    text.line(
        "use outlast_glue_rt::{Call, CallError, Channel, Component, Descriptor, Descriptors, Inner, Interrupted};",
    );
    text.line(
        "use outlast_glue_rt::{Operation, Reply, Request, Resources, Restorer, Stop, Word, EAGER, RECOVERED, RECREATE, TRY};",
    );
    text.blank();
    for (name, ty) in &interface.typedefs {
        text.line(&format!("pub type {name} = {};", ty.rust));
    }
    for ty in interface.opaque() {
        text.line("/// Opaque: the interface does not say what it is.");
        text.line(&format!("pub type {} = i64;", ty.rust));
    }
    text.blank();
    text.line("/// Numbers of the operations; the one that brought a descriptor to its state is the state's.");
    text.open("pub mod operation {");
    for (at, function) in interface.functions.iter().enumerate() {
        text.line(&format!("pub const {}: u32 = {at};", constant(function)));
    }
    text.close("}");
    text.blank();
}
