//! Reads a campaign file and says, with file and line, what is wrong with it.

use crate::campaign::{Campaign, Fault, Kind};
use crate::error::{on, Error};
use crate::{call_numbers, registers};
use std::path::Path;

/// Reads and checks a campaign; returns its text, too.
pub fn read(path: &Path) -> Result<(Campaign, String), Error> {
    let text = std::fs::read_to_string(path).map_err(on("read", path))?;
    let campaign = parse(&text).map_err(|(at, why)| {
        let line = text.get(..at).map_or(1, |before| before.matches('\n').count() + 1);
        Error::Campaign(format!("{}:{line}: {why}", path.display()))
    })?;
    Ok((campaign, text))
}

/// The campaign, or at which byte something is wrong, and what.
fn parse(text: &str) -> Result<Campaign, (usize, String)> {
    let campaign: Campaign =
        toml::from_str(text).map_err(|e| (e.span().map_or(0, |span| span.start), e.message().to_string()))?;
    // The first line that begins so.
    let named = |key: &str| {
        let mut at = 0;
        text.split_inclusive('\n').find_map(|line| {
            let begins = line.trim_start().starts_with(key).then_some(at);
            at += line.len();
            begins
        })
    };
    let named = |key: &str| named(key).unwrap_or(0);
    let wrong = |key: &str, why: &str| Err((named(key), why.to_string()));
    if campaign.count == 0 || campaign.count > 1_000_000 {
        return wrong("count", "count: from 1 to 1000000 faults");
    }
    if campaign.jobs == 0 || campaign.jobs > 256 {
        return wrong("jobs", "jobs: from 1 to 256 at the same time");
    }
    if campaign.references == 0 || campaign.references > 100 {
        return wrong("references", "references: from 1 to 100 unharmed runs");
    }
    if campaign.target.command.is_empty() {
        return wrong("command", "command: a program and its arguments are needed");
    }
    if [&campaign.target.prepare, &campaign.target.drive, &campaign.target.check]
        .into_iter()
        .any(|words| words.as_ref().is_some_and(Vec::is_empty))
    {
        return wrong("[target]", "prepare, drive and check are commands, and none may be empty");
    }
    if campaign.settings.is_empty() {
        return wrong("name", "no [[setting]]: say whether the target runs by itself, protected, or both");
    }
    for (at, setting) in campaign.settings.iter().enumerate() {
        if campaign.settings[..at].iter().any(|other| other.name == setting.name) {
            return Err((named("[[setting]]"), format!("two settings are called {:?}", setting.name)));
        }
        if !is_name(&setting.name) {
            return Err((named("[[setting]]"), format!("setting {:?}: use 1 to 24 of a-z 0-9 -", setting.name)));
        }
        if !setting.protected && !setting.options.is_empty() {
            let why = format!("setting {:?} has options of outlast run, but is not protected", setting.name);
            return Err((named("[[setting]]"), why));
        }
    }
    if campaign.faults.is_empty() {
        return wrong("name", "no [[fault]]: nothing would be injected");
    }
    if campaign.target.process.is_some() && campaign.settings.iter().any(|setting| setting.protected) {
        return wrong(
            "process",
            "process: descendants of a protected program are not looked for; leave it out or protected",
        );
    }
    for fault in &campaign.faults {
        check(fault.get_ref()).map_err(|why| (fault.span().start, why))?;
        if campaign.target.process.is_some() && (fault.get_ref().symbol.is_some() || fault.get_ref().call.is_some()) {
            let why = "a descendant (process) is struck at moments only: nobody traces it from its start";
            return Err((fault.span().start, why.into()));
        }
    }
    if campaign.faults.iter().all(|fault| fault.get_ref().weight == 0) {
        return wrong("[[fault]]", "all faults have weight 0: nothing would be injected");
    }
    Ok(campaign)
}

fn is_name(name: &str) -> bool {
    (1..=24).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// What the fields of a fault must be for its kind.
pub fn check(fault: &Fault) -> Result<(), String> {
    let kind = fault.kind;
    let name = kind.name();
    let needs = |there: bool, what: &str| if there { Ok(()) } else { Err(format!("{name} needs {what}")) };
    let only = |there: bool, may: bool, what: &str| match there && !may {
        true => Err(format!("{what} means nothing for {name}")),
        false => Ok(()),
    };
    only(!fault.registers.is_empty(), kind == Kind::Register, "registers")?;
    only(fault.each, !fault.registers.is_empty(), "each without registers")?;
    only(fault.each, fault.bits == 1, "each with bits")?;
    only(fault.area.is_some(), kind == Kind::Memory, "area")?;
    only(fault.object.is_some(), kind == Kind::Memory, "object")?;
    only(fault.bit.is_some(), fault.object.is_some(), "bit without object")?;
    only(fault.signal.is_some(), kind == Kind::Signal, "signal")?;
    only(fault.error.is_some(), kind == Kind::FailedCall, "error")?;
    only(fault.delay.is_some(), matches!(kind, Kind::SlowCall | Kind::Limit), "delay")?;
    only(fault.call.is_some(), kind.is_of_calls(), "call")?;
    only(fault.symbol.is_some(), !kind.is_of_calls() && kind != Kind::Limit, "symbol")?;
    only(fault.nth.is_some(), fault.symbol.is_some() || fault.call.is_some(), "nth without symbol or call")?;
    if kind.is_of_calls() {
        needs(fault.call.is_some(), "call")?;
    }
    if kind == Kind::Skip {
        needs(fault.symbol.is_some(), "symbol, the function that is to return at once")?;
    }
    if kind == Kind::Memory {
        needs(fault.area.is_some() != fault.object.is_some(), "either area or object")?;
    }
    if !(0.0..=1.0).contains(&fault.from) || !(fault.from..=1.0).contains(&fault.to) {
        return Err("from and to are shares of a run: 0.0 <= from <= to <= 1.0".into());
    }
    if fault.bits == 0 || fault.bits > 64 {
        return Err("bits: from 1 to 64".into());
    }
    if let Some([first, last]) = fault.nth.map(|nth| nth.bounds()) {
        if first == 0 || last < first {
            return Err("nth counts from 1, and a range has its first number first".into());
        }
    }
    for register in &fault.registers {
        registers::numbered(register).ok_or_else(|| {
            format!("no register {register:?}; there are {} and rip, eflags", registers::GENERAL.join(", "))
        })?;
    }
    if let Some(signal) = &fault.signal {
        call_numbers::signal(signal).ok_or_else(|| format!("no signal {signal:?}; SIGSEGV, SIGKILL, SIGSTOP …"))?;
    }
    if let Some(call) = &fault.call {
        call_numbers::call(call).ok_or_else(|| format!("call {call:?} is none of {}", call_numbers::names()))?;
    }
    if let Some(error) = &fault.error {
        call_numbers::error(error).ok_or_else(|| format!("no error {error:?}; EIO, ENOSPC, EINTR …"))?;
    }
    if kind == Kind::ShortCall && !fault.call.as_deref().is_some_and(call_numbers::has_length) {
        return Err("short-call: only read, write, pread64, pwrite64, recvfrom and sendto have a length".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "name = 'x'\ncount = 3\n[target]\ncommand = ['true']\n[[setting]]\nname = 'native'\n";

    fn line_and_reason(fault: &str) -> (usize, String) {
        let text = format!("{GOOD}{fault}");
        let (at, why) = parse(&text).unwrap_err();
        (text[..at].matches('\n').count() + 1, why)
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        assert_eq!(line_and_reason("[[fault]]\nkind = 'regster'\n").0, 8);
        assert!(line_and_reason("[[fault]]\nkind = 'register'\nregisters = ['rxx']\n").1.contains("rxx"));
        assert_eq!(line_and_reason("[[fault]]\nkind = 'failed-call'\n"), (7, "failed-call needs call".into()));
        assert!(line_and_reason("[[fault]]\nkind = 'signal'\nsignal = 'SIGNOT'\n").1.contains("SIGNOT"));
        assert!(line_and_reason("[[fault]]\nkind = 'loop'\nfrom = 0.7\nto = 0.2\n").1.contains("from and to"));
        assert!(line_and_reason("").1.contains("no [[fault]]"));
    }

    #[test]
    fn a_field_of_another_kind_is_not_passed_over() {
        assert!(line_and_reason("[[fault]]\nkind = 'signal'\narea = 'heap'\n").1.contains("means nothing for signal"));
    }

    #[test]
    fn a_good_file_is_read() {
        let text = format!("{GOOD}[[fault]]\nkind = 'failed-call'\ncall = 'write'\nnth = [1, 4]\nerror = 'EIO'\n");
        assert_eq!(parse(&text).unwrap().faults.len(), 1);
    }
}
