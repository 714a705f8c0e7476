//! A client's side that remembers nothing: a method for each function, which makes one call.

use super::client::{request, returned};
use super::{recovery, result, signature, CLIENTS};
use crate::text::Text;
use crate::writer::Writer;

pub fn write(writer: &Writer, text: &mut Text) {
    let interface = writer.interface;
    text.line("/// The service, for one client of it. Clones are the same client.");
    text.line("#[derive(Clone)]");
    text.open("pub struct Client {");
    text.line("channel: Channel,");
    text.line("/// What listens ends with it.");
    text.line("_alive: std::sync::Arc<()>,");
    text.close("}");
    text.blank();
    text.open("impl Client {");
    text.open("pub fn new(channel: Channel) -> Self {");
    text.line("let alive = std::sync::Arc::new(());");
    if interface.subtrees() {
        text.line("// It is asked to let go of what is closed; it recovers nothing.");
        text.line("let weak = std::sync::Arc::downgrade(&alive);");
        text.line("channel.listen(move |_| weak.upgrade().map(|_| false));");
    }
    text.line("Self { channel, _alive: alive }");
    text.close("}");
    text.blank();
    text.line("pub fn channel(&self) -> &Channel {");
    text.line("    &self.channel");
    text.line("}");
    for function in &interface.functions {
        text.blank();
        text.open(&format!(
            "pub fn {}(&self{}) -> Result<{}, CallError> {{",
            function.name,
            signature(function, CLIENTS),
            result(function)
        ));
        text.line("let epoch = self.channel.epoch();");
        request(writer, function, None, text);
        text.line("let reply = self.channel.call(&request).map_err(died)?;");
        text.line(&returned(function));
        text.close("}");
    }
    text.close("}");
    text.blank();
    text.open("fn died(interrupted: Interrupted) -> CallError {");
    text.open("match interrupted {");
    text.line("Interrupted::Fault { .. } => CallError::Died,");
    text.line("Interrupted::Failed(error) => error,");
    text.close("}");
    text.close("}");
    text.blank();
    recovery::word(text);
}
