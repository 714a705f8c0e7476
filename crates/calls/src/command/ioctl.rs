//! ioctl: terminals, any descriptor, sockets, files. Requests of drivers are not here and so Unknown.

use crate::Interrupted::Restart;
use crate::Len::{Fixed, Special};

const MODES: &str = "the same modes set again";
const DRAIN: &str = "waits until output is written, then the same modes set again";
const FLUSH: &str = "throws away what was not read; what comes before the second one is thrown away too, as if it had \
    come before the first";

commands! {
    16 ioctl, descriptors 1, numbers from linux_raw_sys::ioctl;

    0x5401 TCGETS Pure .out(2, Fixed(36));
    0x5402 TCSETS Redo .interrupted(Restart) .note(MODES);
    0x5403 TCSETSW Redo .waits(Restart) .note(DRAIN);
    0x5404 TCSETSF Redo .waits(Restart) .note(FLUSH);
    0x5405 TCGETA Pure .out(2, Fixed(18));
    0x5406 TCSETA Redo .interrupted(Restart) .note(MODES);
    0x5407 TCSETAW Redo .waits(Restart) .note(DRAIN);
    0x5408 TCSETAF Redo .waits(Restart) .note(FLUSH);
    0x802c_542a TCGETS2 Pure .out(2, Fixed(44));
    0x402c_542b TCSETS2 Redo .interrupted(Restart) .note(MODES);
    0x402c_542c TCSETSW2 Redo .waits(Restart) .note(DRAIN);
    0x402c_542d TCSETSF2 Redo .waits(Restart) .note(FLUSH);
    0x5409 TCSBRK Redo .waits(Restart)
        .note("waits until output is written; with argument 0 also sends a break: then twice");
    0x5425 TCSBRKP Redo .waits(Restart) .note("sends a break: twice; pseudo-terminals send none");
    0x540a TCXONC Redo .interrupted(Restart) .note("stopping what stands and starting what goes changes nothing");
    0x540b TCFLSH Redo .interrupted(Restart) .note(FLUSH);
    0x540c TIOCEXCL Redo;
    0x540d TIOCNXCL Redo;
    0x540e TIOCSCTTY Redo .note("a second one finds the terminal to be the session's already, and succeeds");
    0x540f TIOCGPGRP Pure .out(2, Fixed(4));
    0x5410 TIOCSPGRP Redo .interrupted(Restart);
    0x5411 TIOCOUTQ Pure .out(2, Fixed(4));
    0x5413 TIOCGWINSZ Pure .out(2, Fixed(8));
    0x5414 TIOCSWINSZ Redo .note("SIGWINCH is sent only when the size changes");
    0x5415 TIOCMGET Pure .out(2, Fixed(4));
    0x5416 TIOCMBIS Redo;
    0x5417 TIOCMBIC Redo;
    0x5418 TIOCMSET Redo;
    0x5419 TIOCGSOFTCAR Pure .out(2, Fixed(4));
    0x541a TIOCSSOFTCAR Redo;
    0x541b FIONREAD Pure .out(2, Fixed(4))
        .note("of a regular file the bytes from offset to end; while input is served again, that counts too");
    0x5420 TIOCPKT Redo;
    0x5421 FIONBIO Redo;
    0x5422 TIOCNOTTY Redo .note("a second one answers ENOTTY: done");
    0x5423 TIOCSETD Redo;
    0x5424 TIOCGETD Pure .out(2, Fixed(4));
    0x5427 TIOCSBRK Redo;
    0x5428 TIOCCBRK Redo;
    0x5429 TIOCGSID Pure .out(2, Fixed(4));
    0x8004_5430 TIOCGPTN Pure .out(2, Fixed(4));
    0x4004_5431 TIOCSPTLCK Redo;
    0x8004_5432 TIOCGDEV Pure .out(2, Fixed(4));
    0x5437 TIOCVHANGUP Redo;
    0x8004_5438 TIOCGPKT Pure .out(2, Fixed(4));
    0x8004_5439 TIOCGPTLCK Pure .out(2, Fixed(4));
    0x8004_5440 TIOCGEXCL Pure .out(2, Fixed(4));
    0x5441 TIOCGPTPEER Open;

    0x5450 FIONCLEX Redo;
    0x5451 FIOCLEX Redo;
    0x5452 FIOASYNC Redo;
    0x5460 FIOQSIZE Pure .out(2, Fixed(8));

    0x8901 FIOSETOWN Redo;
    0x8902 SIOCSPGRP Redo;
    0x8903 FIOGETOWN Pure .out(2, Fixed(4));
    0x8904 SIOCGPGRP Pure .out(2, Fixed(4));
    0x8905 SIOCATMARK Pure .out(2, Fixed(4));
    0x8910 SIOCGIFNAME Pure .out(2, Fixed(40));
    0x8912 SIOCGIFCONF Pure .out(2, Special)
        .note("fills the buffer named in the struct ifconf, and writes back its 4-byte length");
    0x8913 SIOCGIFFLAGS Pure .out(2, Fixed(40));
    0x8915 SIOCGIFADDR Pure .out(2, Fixed(40));
    0x8917 SIOCGIFDSTADDR Pure .out(2, Fixed(40));
    0x8919 SIOCGIFBRDADDR Pure .out(2, Fixed(40));
    0x891b SIOCGIFNETMASK Pure .out(2, Fixed(40));
    0x891d SIOCGIFMETRIC Pure .out(2, Fixed(40));
    0x8921 SIOCGIFMTU Pure .out(2, Fixed(40));
    0x8927 SIOCGIFHWADDR Pure .out(2, Fixed(40));
    0x8933 SIOCGIFINDEX Pure .out(2, Fixed(40));
    0x8942 SIOCGIFTXQLEN Pure .out(2, Fixed(40));
    0x8970 SIOCGIFMAP Pure .out(2, Fixed(40));

    0x4004_9409 FICLONE Redo .note("the same contents shared again");
    0x4020_940d FICLONERANGE Redo .note("the same contents shared again");
    0x8008_6601 FS_IOC_GETFLAGS Pure .out(2, Fixed(8)) .note("writes 4 bytes, though its number says 8");
    0x4008_6602 FS_IOC_SETFLAGS Redo;
    0x8008_7601 FS_IOC_GETVERSION Pure .out(2, Fixed(8)) .note("writes 4 bytes, though its number says 8");
    0x801c_581f FS_IOC_FSGETXATTR Pure .out(2, Fixed(28));
    0x401c_5820 FS_IOC_FSSETXATTR Redo;
    0x1260 BLKGETSIZE Pure .out(2, Fixed(8));
    0x1268 BLKSSZGET Pure .out(2, Fixed(4));
    0x8008_1272 BLKGETSIZE64 Pure .out(2, Fixed(8));
    0xb701 NS_GET_USERNS Open;
    0xb702 NS_GET_PARENT Open;
    0xb703 NS_GET_NSTYPE Pure;
}
