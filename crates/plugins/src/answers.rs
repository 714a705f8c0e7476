//! What pins answer to commands, as a component gets it.

use crate::bindings::outlast::module::types as wit;
use crate::looks;
use outlast_core::{Failure, Payload};
use outlast_interfaces::{file, ipc, mem, net, sig};
use wit::{Answer, Command};

/// How to read the answer to this command.
pub fn of(command: &Command) -> fn(&Payload) -> Result<Answer, Failure> {
    use Command as C;
    match command {
        C::DbrWatch(_) => |result| Ok(Answer::Watched(result.read()?)),
        C::SigMasks(_) => |result| list(result, Answer::Masks, |one: sig::Masks| looks::masks(one)),
        C::MemAccount(_) => |result| Ok(Answer::Account(looks::account(result.read()?))),
        C::MemCopy(_) => |result| Ok(Answer::Bytes(result.read()?)),
        C::MemPages(_) => |result| list(result, Answer::Pages, |one: mem::Page| looks::page(one)),
        C::FileList(_) => |result| list(result, Answer::Descriptors, |one: file::Descriptor| looks::descriptor(one)),
        C::NetList(_) => |result| list(result, Answer::Connections, |one: net::Connection| looks::connection(one)),
        C::IpcList(_) => |result| list(result, Answer::Pipes, |one: ipc::Pipe| looks::pipe(one)),
        _ => |_| Ok(Answer::Nothing),
    }
}

fn list<T: serde::de::DeserializeOwned, W>(
    result: &Payload,
    answer: fn(Vec<W>) -> Answer,
    one: fn(T) -> W,
) -> Result<Answer, Failure> {
    let all: Vec<T> = result.read()?;
    Ok(answer(all.into_iter().map(one).collect()))
}
