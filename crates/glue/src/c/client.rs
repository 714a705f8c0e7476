//! The client's side: a function for each of the interface's, which tracks what it does to descriptors.

use crate::mechanism::Mechanism;
use crate::model::Function;
use crate::text::Text;
use crate::writer::Writer;

use super::names::{c_name, type_name, Names};
use super::{call, creation, extern_c, mark, recovery};

pub fn header(writer: &Writer, text: &mut Text) {
    let (interface, service) = (writer.interface, &writer.interface.service);
    text.line(&format!("#include \"{service}_types.h\""));
    text.blank();
    extern_c(text, |text| {
        text.line("/* The service, for one client of it, which may have any number of threads. */");
        text.open(&format!("struct {service}_client {{"));
        text.line("struct glue_client *glue;");
        text.close("};");
        text.blank();
        text.line("/* The channel stays the caller's; what is open at the component stays open there. */");
        for (at, line) in own(service).iter().enumerate() {
            if at == 2 {
                text.line("/* How many descriptors are tracked. */");
            }
            text.line(&format!("{line};"));
        }
        text.blank();
        text.line("/* The interface's functions. They return 0 or an error, see outlast_glue.h; what comes back goes where arguments");
        text.line(
            " * point to, unless these are NULL. Lengths are those of bytes; files that come back are the caller's. */",
        );
        for function in &interface.functions {
            text.line(&format!("{};", declaration(writer, function)));
        }
    });
}

/// What each client has beside the interface's functions.
fn own(service: &str) -> [String; 3] {
    [
        format!("void {service}_client_open(struct {service}_client *client, const struct glue_channel *channel)"),
        format!("void {service}_client_close(struct {service}_client *client)"),
        format!("size_t {service}_client_count(const struct {service}_client *client)"),
    ]
}

fn declaration(writer: &Writer, function: &Function) -> String {
    let names = Names(writer.interface);
    let mut parameters = vec![format!("const struct {}_client *client", writer.interface.service)];
    parameters.extend(names.parameters(function));
    parameters.push(format!("{} *{}", type_name(&function.returns), names.result(function)));
    format!("int call_{}({})", function.name, parameters.join(", "))
}

pub fn write(writer: &Writer, text: &mut Text) {
    let (interface, service) = (writer.interface, &writer.interface.service);
    let names = Names(interface);
    text.line(&format!("#include \"{service}_client.h\""));
    text.blank();
    text.line("#include <errno.h>");
    if interface.functions.iter().any(|f| f.file().is_some()) {
        text.line("#include <unistd.h>");
    }
    text.blank();
    let fields = names.fields();
    if !fields.is_empty() {
        text.line("/* What is remembered of a descriptor. */");
        text.open(&format!("enum {service}_field {{"));
        for field in &fields {
            text.line(&format!("{},", names.field(field)));
        }
        text.close("};");
        text.blank();
    }
    recovery::write(writer, text);
    let [open, close, count] = own(service);
    text.line(&open);
    text.open("{");
    text.line(&format!("client->glue = glue_client_new(channel, {});", fields.len()));
    if writer.has(Mechanism::U0) {
        mark(writer, Mechanism::U0, text);
        text.line("glue_listen(client->glue, upcall);");
    }
    text.close("}");
    text.blank();
    text.line(&close);
    text.open("{");
    text.line("glue_client_end(client->glue);");
    text.line("client->glue = NULL;");
    text.close("}");
    text.blank();
    text.line(&count);
    text.open("{");
    text.line("return glue_client_count(client->glue);");
    text.close("}");
    for function in &interface.functions {
        text.blank();
        text.line(&declaration(writer, function));
        text.open("{");
        match (function.id(), &function.creates) {
            (Some(id), None) => call::about(writer, function, &c_name(&id.name), text),
            (_, Some(_)) => creation::creation(writer, function, text),
            _ => call::plain(writer, function, text),
        }
        text.close("}");
    }
}
