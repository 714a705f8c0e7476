//! Recovery of a descriptor: what is done when the component that knew it has died.

use crate::mechanism::Mechanism;
use crate::model::{Kind, Parameter};

use super::{constant, mark, rust_name};
use crate::text::Text;
use crate::writer::Writer;

pub fn write(writer: &Writer, text: &mut Text) {
    let interface = writer.interface;
    word(text);
    text.open("impl Tracked {");
    text.line("/// The component's epoch, and its id for the descriptor in it. `asked`: the epoch in which the component wants it.");
    text.open(
        "fn current(&self, descriptor: &Descriptor<Data>, asked: Option<u32>) -> Result<(u32, u64), CallError> {",
    );
    text.line("let epoch = self.channel.epoch();");
    text.open("match descriptor.valid(epoch) {");
    text.line("Some(server) => Ok((epoch, server)),");
    text.line("None => self.recover(descriptor, asked),");
    text.close("}");
    text.close("}");
    text.blank();
    text.line("#[cold]");
    text.open(
        "fn recover(&self, descriptor: &Descriptor<Data>, asked: Option<u32>) -> Result<(u32, u64), CallError> {",
    );
    text.open("descriptor.recover(&self.channel, asked, |inner, epoch| {");
    if writer.has(Mechanism::D1) {
        mark(writer, Mechanism::D1, text);
        text.open("let parent = match self.descriptors.get(inner.parent) {");
        text.line("Ok(parent) => Some(self.current(&parent, asked).map_err(Interrupted::Failed)?.1),");
        text.line("Err(_) => None,");
        text.close("};");
    } else {
        text.line("let parent = self.descriptors.get(inner.parent).ok().map(|parent| parent.server());");
    }
    text.line("self.walk(descriptor.id, inner, epoch, parent)");
    text.close("})");
    text.close("}");
    text.blank();
    if interface.properties.global && interface.subtrees() {
        text.line("/// Another client has closed the descriptor, or what it was below: nothing of it is left to be remembered.");
        text.open("fn forget(&self, id: u64, error: &CallError) {");
        text.open("if *error == CallError::Refused(9) {");
        text.line("self.descriptors.close(id, true, false);");
        text.close("}");
        text.close("}");
        text.blank();
    }
    if writer.has(Mechanism::D0) {
        text.open("fn subtree(&self, descriptor: &Descriptor<Data>) -> Result<(), CallError> {");
        text.open("for child in self.descriptors.children(descriptor) {");
        match interface.properties.global {
            true => {
                text.open("match self.current(&child, None) {");
                text.line("Ok(_) => self.subtree(&child)?,");
                text.line("// Another client has closed it.");
                text.line("Err(CallError::Refused(9)) => {}");
                text.line("Err(error) => return Err(error),");
                text.close("}");
            }
            false => {
                text.line("self.current(&child, None)?;");
                text.line("self.subtree(&child)?;");
            }
        }
        text.close("}");
        text.line("Ok(())");
        text.close("}");
        text.blank();
    }
    walk(writer, text);
    text.close("}");
}

pub(super) fn word(text: &mut Text) {
    text.line("/// A word of a reply; a server that sends one that cannot be has gone mad.");
    text.open("fn word<W: Word>(words: &[u64], at: usize) -> Result<W, CallError> {");
    text.line("words.get(at).copied().and_then(W::from_word).ok_or(CallError::Service(74))");
    text.close("}");
    text.blank();
}

fn walk(writer: &Writer, text: &mut Text) {
    let interface = writer.interface;
    mark(writer, Mechanism::R0, text);
    text.open(
        "fn walk(&self, id: u64, inner: &Inner<Data>, epoch: u32, parent: Option<u64>) -> Result<u64, Interrupted> {",
    );
    text.line("let (data, wanted) = (&inner.data, id);");
    text.line("let _ = (data, parent);");
    text.open("let (operation, words, bytes): (u32, Vec<u64>, &[u8]) = match inner.creator {");
    for (_, function) in interface.creators() {
        let mut list: Vec<String> = function.words().map(|p| argument(writer, p)).collect();
        list.extend(interface.sums().iter().map(|sum| format!("data.{sum} as u64")));
        let bytes = function.bytes().map_or("&[]".to_string(), |p| format!("&data.{}", rust_name(&p.name)));
        let operation = constant(function);
        text.line(&format!("operation::{operation} => (operation::{operation}, vec![{}], {bytes}),", list.join(", ")));
    }
    text.line("_ => return Err(Interrupted::Failed(CallError::Unknown(id))),");
    text.close("};");
    let file = match interface.files().first() {
        Some(file) => format!("data.{}.as_deref().map(std::os::fd::AsFd::as_fd)", rust_name(file)),
        None => "None".to_string(),
    };
    text.line(&format!(
        "let again = Request {{ operation, flags: RECREATE, epoch, wanted, words: &words, bytes, file: {file} }};"
    ));
    text.line("let reply = self.channel.call(&again)?;");
    text.line("let server = reply.words[0];");
    if !writer.has(Mechanism::R0) {
        text.line("let _ = TRY;");
        text.line("Ok(server)");
        text.close("}");
        return;
    }
    match interface.properties.global {
        true => text.line("// Several clients move a global descriptor: its state is on record with the component."),
        false => text.line("// Then the calls that lead to its state; none is waited for."),
    }
    let state = if interface.properties.global { "reply.words[7] as u32" } else { "inner.state" };
    if interface.states().any(|(_, f)| f.replayed()) {
        steps(writer, state, text);
    }
    if interface.properties.global {
        text.line("// Others may see it now.");
        text.line("let known = Request { operation: RECOVERED, epoch, wanted: id, ..Request::default() };");
        text.line("self.channel.call(&known)?;");
    }
    text.line("Ok(server)");
    text.close("}");
}

/// The calls that lead to the descriptor's state, made again.
fn steps(writer: &Writer, state: &str, text: &mut Text) {
    let interface = writer.interface;
    text.open(&format!("let steps: &[u32] = match {state} {{"));
    for (at, function) in interface.states() {
        let steps: Vec<String> = interface
            .walk(at)
            .into_iter()
            .map(|step| &interface.functions[step])
            .filter(|step| step.replayed())
            .map(|step| format!("operation::{}", constant(step)))
            .collect();
        if !steps.is_empty() {
            text.line(&format!("operation::{} => &[{}],", constant(function), steps.join(", ")));
        }
    }
    text.line("_ => &[],");
    text.close("};");
    text.open("for &operation in steps {");
    text.open("let words: Vec<u64> = match operation {");
    for (_, function) in interface.states().filter(|(_, f)| f.replayed()) {
        let list: Vec<String> = function.words().map(|p| argument(writer, p)).collect();
        text.line(&format!("operation::{} => vec![{}],", constant(function), list.join(", ")));
    }
    text.line("_ => continue,");
    text.close("};");
    text.line("let step = Request { operation, flags: TRY | RECREATE, epoch, wanted: id, words: &words, ..Request::default() };");
    text.open("match self.channel.call(&step) {");
    text.line("Ok(_) | Err(Interrupted::Failed(CallError::Service(_))) => {}");
    text.line("Err(interrupted) => return Err(interrupted),");
    text.close("}");
    text.close("}");
}

/// An argument out of what is remembered.
fn argument(writer: &Writer, parameter: &Parameter) -> String {
    let name = rust_name(&parameter.name);
    match parameter.kind {
        Kind::Id => "server".to_string(),
        // Another client's: it is recovered by that one.
        Kind::Parent if writer.interface.subtrees() => "parent.unwrap_or(inner.parent)".to_string(),
        Kind::Parent => "parent.unwrap_or(0)".to_string(),
        _ if writer.interface.fields().iter().any(|f| f.name == parameter.name) => format!("data.{name}.into_word()"),
        _ => "0".to_string(),
    }
}
