//! Names of signals, as people write them.

/// `SIGKILL` for 9; realtime signals as `SIGRTMIN+n`.
pub fn signal(number: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM",
        "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF",
        "WINCH", "IO", "PWR", "SYS",
    ];
    match usize::try_from(number - 1).ok().and_then(|i| NAMES.get(i)) {
        Some(name) => format!("SIG{name}"),
        None if number >= 32 => format!("SIGRTMIN+{}", number - 32),
        None => format!("signal {number}"),
    }
}
