//! A function of the client's that creates a descriptor, and what is remembered of that.

use crate::model::{Function, Kind};
use crate::text::Text;
use crate::writer::Writer;

use super::call::{bytes, call, locals, returned, valid};
use super::names::{c_name, Names};

pub fn creation(writer: &Writer, function: &Function, text: &mut Text) {
    let interface = writer.interface;
    let names = Names(interface);
    let parent = function.parent().map(|p| c_name(&p.name));
    locals(text);
    if let Some(parent) = &parent {
        text.line("/* A parent that is not tracked is a root, or somebody else's. */");
        text.line(&format!("struct glue_descriptor *above = glue_open(glue, GLUE_WORD({parent}));"));
        text.line("uint64_t server;");
    }
    text.blank();
    text.open("for (;;) {");
    match &parent {
        Some(parent) => valid(writer, "above", parent, true, text),
        None => text.line("epoch = glue_epoch(glue);"),
    }
    call(writer, function, parent.as_deref(), text, |text| {
        let fields: Vec<String> = names.fields().iter().map(|field| remembered(function, field)).collect();
        let list = match fields.is_empty() {
            true => "NULL",
            false => {
                text.line(&format!("const uint64_t fields[] = {{ {} }};", fields.join(", ")));
                "fields"
            }
        };
        let above = match &parent {
            // Another client's, too: it is recovered before this one.
            Some(_) if interface.subtrees() => "server",
            Some(_) => "above == NULL ? 0 : glue_id(above)",
            None => "0",
        };
        let file = function.file().is_some_and(|file| file.remembered);
        let (bytes, length) = bytes(function);
        text.open("const struct glue_new made = {");
        text.line(&format!(".id = {},", if interface.properties.global { "&reply.words[0]" } else { "NULL" }));
        text.line(".server = reply.words[0],");
        text.line(&format!(".parent = {above},"));
        text.line(&format!(".creator = {},", names.operation(function)));
        text.line(&format!(".file = {},", if file { "reply.file" } else { "-1" }));
        text.line(&format!(".fields = {list},"));
        text.line(&format!(".bytes = {bytes},"));
        text.line(&format!(".length = {length},"));
        text.close("};");
        text.line("reply.words[0] = glue_insert(glue, &made, &reply);");
        returned(writer, function, text);
    });
    text.close("}");
    if parent.is_some() {
        text.line("glue_put(above);");
    }
    text.line("return error;");
}

/// What a field of a new descriptor begins with.
fn remembered(function: &Function, field: &str) -> String {
    if let Some(own) = function.words().find(|p| p.name == field) {
        return format!("GLUE_WORD({})", c_name(&own.name));
    }
    let sum = function.out_words().position(|p| p.kind == Kind::OutAdd(field.to_string()));
    sum.map_or("0".to_string(), |at| format!("reply.words[{}]", at + 1))
}
