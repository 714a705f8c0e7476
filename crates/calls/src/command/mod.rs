//! Calls that are many in one: a row for each command of fcntl, ioctl, prctl and arch_prctl.

use crate::{row, Row};

/// The commands of one call, and what is assumed of one that is not among them: Unknown.
pub(crate) struct Commands {
    pub(crate) known: &'static [(u32, Row)],
    pub(crate) other: Row,
}

macro_rules! commands {
    ($nr:literal $call:ident, descriptors $descriptors:literal, numbers from $numbers:path;
     $($value:literal $name:ident $class:ident $(.$fact:ident($($given:tt)*))*;)*) => {
        pub(crate) static COMMANDS: crate::command::Commands = crate::command::Commands {
            known: &[$((
                $value,
                crate::Row::new($nr, stringify!($name), crate::Class::$class)
                    .fds($descriptors) $(.$fact($($given)*))*,
            ),)*],
            other: crate::Row::new($nr, stringify!($call), crate::Class::Unknown)
                .fds($descriptors) .waits(crate::Interrupted::Restart) .out(2, crate::Len::Special)
                .note("a command that is not in the table: what it does and writes is not known"),
        };

        #[cfg(test)]
        mod tests {
            use $numbers as numbers;

            pastey::paste! {
                $(
                    #[test]
                    #[allow(non_snake_case, reason = "the names are the kernel's")]
                    fn [<command_ $call _ $name>]() {
                        crate::checks::command($nr, stringify!($name), $value, numbers::$name as u32);
                    }
                )*
            }
        }
    };
}

mod arch_prctl;
mod fcntl;
mod ioctl;
mod prctl;

/// What is known about a call with these arguments: its row, or the row of its command where it is fcntl, ioctl, prctl
/// or arch_prctl (then `name` is the command's and `nr` still the call's). A command that is not known is of class
/// Unknown. None as for [`row`].
pub fn look(nr: u64, args: &[u64; 6]) -> Option<&'static Row> {
    let row = row(nr)?;
    let Some(commands) = commands_of(row.nr) else { return Some(row) };
    let command = args[row.decided_by? as usize] as u32;
    let known = commands.known.iter().find(|(value, _)| *value == command);
    Some(known.map_or(&commands.other, |(_, row)| row))
}

/// The commands of a call, by value; empty if it is one call only.
pub fn commands(nr: u64) -> &'static [(u32, Row)] {
    row(nr).and_then(|row| commands_of(row.nr)).map_or(&[], |commands| commands.known)
}

fn commands_of(nr: u16) -> Option<&'static Commands> {
    match nr {
        16 => Some(&ioctl::COMMANDS),
        72 => Some(&fcntl::COMMANDS),
        157 => Some(&prctl::COMMANDS),
        158 => Some(&arch_prctl::COMMANDS),
        _ => None,
    }
}
