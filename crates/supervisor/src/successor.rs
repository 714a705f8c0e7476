//! What the anchor needs to start another supervisor.

use crate::orphans::COMMAND;
use crate::program_folder::ProgramFolder;
use crate::state_folder;
use outlast_image::successor::Successor;
use std::os::unix::ffi::OsStrExt;

/// Describes a successor of this process. One that cannot be described (a path too long) leaves it to the next command.
pub fn of(folder: &ProgramFolder) -> Successor {
    described(folder).unwrap_or(Successor::NONE)
}

fn described(folder: &ProgramFolder) -> Option<Successor> {
    let exe = std::env::current_exe().ok()?;
    let (path, name) = folder.whole();
    let state = path.parent()?;
    let mut successor = Successor::NONE;
    write(&mut successor.exe, &[exe.as_os_str().as_bytes()])?;
    write(&mut successor.command, &[COMMAND.as_bytes()])?;
    write(&mut successor.name, &[name.as_bytes()])?;
    let state = std::path::absolute(state).ok()?;
    write(&mut successor.state, &[state_folder::VARIABLE.as_bytes(), b"=", state.as_os_str().as_bytes()])?;
    Some(successor)
}

/// Writes the pieces one after the other, with room for the NUL that ends them.
fn write(field: &mut [u8], pieces: &[&[u8]]) -> Option<()> {
    let text = pieces.concat();
    field.get_mut(..text.len() + 1)?[..text.len()].copy_from_slice(&text);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_ended_or_not_written() {
        let mut field = [0xff, 0, 0, 0];
        assert!(write(&mut field[1..], &[b"a", b"b"]).is_some());
        assert_eq!(field, [0xff, b'a', b'b', 0]);
        assert!(write(&mut field[1..], &[b"abc"]).is_none());
    }
}
