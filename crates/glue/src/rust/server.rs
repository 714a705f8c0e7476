//! The server's side: what a service implements, and the stub that serves calls with it.

use crate::mechanism::Mechanism;
use crate::model::{Function, Kind};

use super::{constant, mark, result, rust_name, signature, LENT};
use crate::text::Text;
use crate::writer::Writer;

pub fn write(writer: &Writer, text: &mut Text) {
    let interface = writer.interface;
    let resources = if interface.has_resources() { ", resources: &mut Resources" } else { "" };
    text.line("/// What the service does. It runs one call at a time; an error leaves it as it was.");
    text.open("pub trait Service: Clone + Send + 'static {");
    for function in &interface.functions {
        if function.creates.is_some() {
            text.line("/// Creates a descriptor, or creates it again after a failure.");
        }
        if function.block {
            text.line("/// Has the thread wait by `Err(Stop::Wait { until })`; it is then called again.");
        }
        let extra = extra(writer, function);
        let signature = signature(function, LENT);
        text.line(&format!(
            "fn {}(&mut self{resources}, client: u32{signature}{extra}) -> Result<{}, Stop>;",
            function.name,
            result(function)
        ));
    }
    text.line("/// Called in each new process before it serves: here channels to other components are opened.");
    text.open("fn born(&mut self) -> std::io::Result<()> {");
    text.line("Ok(())");
    text.close("}");
    if interface.subtrees() {
        text.line("/// What is closed with the descriptor, and which clients are to let go of it first.");
        text.open("fn held(&mut self, client: u32, id: u64) -> Result<Vec<(u32, u64)>, Stop> {");
        text.line("let _ = (client, id);");
        text.line("Ok(Vec::new())");
        text.close("}");
    }
    if interface.wakes() {
        text.line("/// Descriptors other than the call's own whose threads are to be called again, since this was asked last.");
        text.open("fn woken(&mut self) -> Vec<u64> {");
        text.line("Vec::new()");
        text.close("}");
    }
    text.close("}");
    text.blank();
    text.line("/// Serves calls by a service.");
    text.line("#[derive(Clone)]");
    text.line("pub struct Server<S>(pub S);");
    text.blank();
    if !writer.tracks
        || interface.functions.iter().all(|f| f.terminal || f.creates.is_some() || !f.state || f.id().is_none())
    {
        text.line("#[allow(dead_code)]");
    }
    text.line("/// Whether `operation`, done to a descriptor in `state`, changes its state.");
    text.open("fn follows(state: u32, operation: u32) -> bool {");
    let mut pairs = Vec::new();
    for (from, a) in interface.states() {
        for (_, b) in interface.states().filter(|&(to, _)| interface.follows(from, to)) {
            pairs.push(format!("(operation::{}, operation::{})", constant(a), constant(b)));
        }
    }
    if pairs.is_empty() {
        text.line("let _ = (state, operation);");
        text.line("false");
    } else {
        text.open("matches!(");
        text.line("(state, operation),");
        for (at, pair) in pairs.iter().enumerate() {
            text.line(&format!("{}{pair}", if at == 0 { "" } else { "| " }));
        }
        text.close(")");
    }
    text.close("}");
    text.blank();
    text.open("impl<S: Service> Component for Server<S> {");
    text.open("fn operations(&self) -> &'static [Operation] {");
    text.open("&[");
    for function in &interface.functions {
        let sums = if function.creates.is_some() { interface.sums().len() } else { 0 };
        text.line(&format!(
            "Operation {{ name: {:?}, words: {}, bytes: {}, file: {}, closes: {:?} }},",
            function.name,
            function.words().count() + sums,
            function.bytes().is_some(),
            function.creates.is_some() && !interface.files().is_empty(),
            function.closes()
        ));
    }
    text.close("]");
    text.close("}");
    text.blank();
    text.open("fn is_global(&self) -> bool {");
    text.line(&interface.properties.global.to_string());
    text.close("}");
    text.blank();
    text.open("fn born(&mut self) -> std::io::Result<()> {");
    text.line("self.0.born()");
    text.close("}");
    text.blank();
    text.open("fn dispatch(&mut self, call: &mut Call<'_>) -> Result<(), Stop> {");
    text.open("match call.operation() {");
    for function in &interface.functions {
        arm(writer, function, text);
    }
    text.line("_ => Err(Stop::Refused(22)),");
    text.close("}");
    text.close("}");
    text.close("}");
    text.blank();
}

/// Arguments of a creation beyond those of the interface: sums that were remembered, and the id of a global descriptor.
fn extra(writer: &Writer, function: &Function) -> String {
    if function.creates.is_none() {
        return String::new();
    }
    let mut extra: String = writer.interface.sums().iter().map(|sum| format!(", {sum}: i64")).collect();
    for file in writer.interface.files() {
        extra.push_str(&format!(", {}: Option<std::sync::Arc<std::os::fd::OwnedFd>>", rust_name(file)));
    }
    if writer.interface.properties.global {
        extra.push_str(", id: u64");
    }
    extra
}

fn arm(writer: &Writer, function: &Function, text: &mut Text) {
    let interface = writer.interface;
    text.open(&format!("operation::{} => {{", constant(function)));
    for (at, parameter) in function.words().enumerate() {
        let name = rust_name(&parameter.name);
        text.line(&match parameter.kind {
            Kind::Buffer => format!("let mut {name} = call.lent(call.word({at})?)?;"),
            _ => format!("let {name}: {} = call.word({at})?;", parameter.ty.rust),
        });
    }
    if let Some(id) = function.id() {
        if interface.properties.global && !writer.has(Mechanism::G0) {
            text.line(&format!("call.known({}.into_word())?;", rust_name(&id.name)));
        } else {
            if interface.properties.global {
                mark(writer, Mechanism::G0, text);
            }
            text.line(&format!("call.capability({}.into_word())?;", rust_name(&id.name)));
        }
    }
    if let Some(parent) = function.parent() {
        let name = rust_name(&parent.name);
        text.open(&format!("if {name} != 0 {{"));
        text.line(&format!("call.capability({name}.into_word())?;"));
        text.close("}");
    }
    let mut arguments: Vec<String> = function
        .given()
        .map(|p| match p.kind {
            Kind::Bytes(_) if interface.has_resources() => "bytes".to_string(),
            Kind::Bytes(_) => "call.bytes()".to_string(),
            Kind::Buffer => format!("&mut {}", rust_name(&p.name)),
            _ => rust_name(&p.name),
        })
        .collect();
    if function.creates.is_some() {
        let first = function.words().count();
        for (at, sum) in interface.sums().iter().enumerate() {
            text.line(&format!("let {sum}: i64 = call.word({})?;", first + at));
            arguments.push((*sum).to_string());
        }
        for _ in interface.files() {
            arguments.push("call.file()".to_string());
        }
        if interface.properties.global {
            text.line("let id = call.global_id()?;");
            arguments.push("id".to_string());
        }
    }
    if let (Some(id), true, true) = (function.id(), function.terminal, interface.subtrees()) {
        let name = rust_name(&id.name);
        if writer.has(Mechanism::D0) {
            mark(writer, Mechanism::D0, text);
            text.line(&format!("call.subtree({name}.into_word())?;"));
        }
        text.open(&format!("for (client, held) in self.0.held(call.client(), {name})? {{"));
        text.line("call.release(client, held)?;");
        text.close("}");
    }
    let mut kept = "";
    if interface.has_resources() {
        if writer.has(Mechanism::G1) {
            mark(writer, Mechanism::G1, text);
            text.line("call.keep();");
        }
        text.line("let client = call.client();");
        if function.bytes().is_some() {
            text.line("let bytes = call.bytes();");
        }
        kept = "call.resources(), ";
    }
    let outs: Vec<String> = function.outs().map(|p| rust_name(&p.name)).collect();
    let pattern = match outs.is_empty() {
        true => "value".to_string(),
        false => format!("(value, {})", outs.join(", ")),
    };
    let arguments = arguments.iter().map(|argument| format!(", {argument}")).collect::<String>();
    let client = if kept.is_empty() { "call.client()" } else { "client" };
    text.line(&format!("let {pattern} = self.0.{}({kept}{client}{arguments})?;", function.name));
    text.line("call.answer(0, value);");
    for (at, out) in function.out_words().enumerate() {
        text.line(&format!("call.answer({}, {});", at + 1, rust_name(&out.name)));
    }
    for out in function.outs().filter(|out| matches!(out.kind, Kind::OutBytes(_))) {
        text.line(&format!("call.answer_bytes({});", rust_name(&out.name)));
    }
    for out in function.outs().filter(|out| out.kind == Kind::OutFile) {
        text.line(&format!("call.answer_file({});", rust_name(&out.name)));
    }
    if function.creates.is_some() {
        let parent = match (function.parent(), interface.subtrees()) {
            (Some(parent), true) => format!("{}.into_word()", rust_name(&parent.name)),
            _ => "0".to_string(),
        };
        let operation = constant(function);
        text.line(&format!("call.created(value.into_word(), operation::{operation}, {parent});"));
        if interface.properties.global {
            text.open("if call.recreates() {");
            text.line("call.answer(7, call.recorded(value.into_word()).unwrap_or(0));");
            text.close("}");
        }
    } else if let Some(id) = function.id() {
        let id = rust_name(&id.name);
        if function.terminal {
            text.line(&format!("call.closed({id}.into_word(), {});", interface.subtrees()));
        } else if function.state && writer.tracks {
            let id = format!("{id}.into_word()");
            text.open(&format!("if call.state({id}).is_some_and(|state| follows(state, call.operation())) {{"));
            text.line(&format!("call.moved({id});"));
            text.close("}");
        }
        if function.wakeup || function.terminal {
            text.line(&format!("call.wake({id}.into_word());"));
        }
        if function.wakeup {
            text.open("for other in self.0.woken() {");
            text.line("call.wake(other);");
            text.close("}");
        }
    }
    text.line("Ok(())");
    text.close("}");
}
