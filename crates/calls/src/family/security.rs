//! Credentials, namespaces, mounts, labels, and the administration of the machine.

use crate::Amount::Low;
use crate::Len::{Fixed, Items, Special, Word};

rows! {
    102 getuid Pure;
    104 getgid Pure;
    107 geteuid Pure;
    108 getegid Pure;
    115 getgroups Pure .out(1, Items(Low(0), 4));
    118 getresuid Pure .out(0, Fixed(4)) .out(1, Fixed(4)) .out(2, Fixed(4));
    120 getresgid Pure .out(0, Fixed(4)) .out(1, Fixed(4)) .out(2, Fixed(4));
    125 capget Pure .out(0, Fixed(4)) .out(1, Fixed(24))
        .note("12 bytes with version 1; a wrong version is overwritten with the right one");
    459 lsm_get_self_attr Pure .out(1, Word(2)) .out(2, Fixed(4));
    461 lsm_list_modules Pure .out(0, Word(1)) .out(1, Fixed(4));

    105 setuid Security;
    106 setgid Security;
    113 setreuid Security;
    114 setregid Security;
    116 setgroups Security;
    117 setresuid Security;
    119 setresgid Security;
    122 setfsuid Security .note("returns the old id: issued again it would return the new one");
    123 setfsgid Security .note("returns the old id: issued again it would return the new one");
    126 capset Security;
    317 seccomp Security .decided_by(0) .out(2, Special)
        .note("a filter can never be taken off; SECCOMP_GET_NOTIF_SIZES writes 6 bytes; SECCOMP_GET_ACTION_AVAIL is a \
            question");
    446 landlock_restrict_self Security .fd(0) .note("can never be taken off");
    460 lsm_set_self_attr Security;

    272 unshare Security .decided_by(0) .note("CLONE_FILES and CLONE_FS separate the program from its anchor");
    308 setns Security .fd(0);
    161 chroot Security .note("a relative path would be walked twice");
    155 pivot_root Security;
    165 mount Security;
    166 umount2 Security;
    428 open_tree Security .fd(0);
    429 move_mount Security .fd(0) .fd(2);
    430 fsopen Security;
    431 fsconfig Security .fd(0);
    432 fsmount Security .fd(0);
    433 fspick Security .fd(0);
    442 mount_setattr Security .fd(0);
    467 open_tree_attr Security .fd(0);

    153 vhangup Security;
    159 adjtimex Security .decided_by(0) .out(0, Fixed(208))
        .note("Pure if `modes` in its first word is 0; ADJ_SETOFFSET adds up");
    305 clock_adjtime Security .decided_by(1) .out(1, Fixed(208))
        .note("Pure if `modes` in its first word is 0; ADJ_SETOFFSET adds up");
    164 settimeofday Security .note("set again, the clock is late by the time between");
    227 clock_settime Security .note("set again, the clock is late by the time between");
    163 acct Security;
    167 swapon Security;
    168 swapoff Security;
    169 reboot Security;
    170 sethostname Security;
    171 setdomainname Security;
    172 iopl Security;
    173 ioperm Security;
    175 init_module Security;
    176 delete_module Security;
    179 quotactl Security .decided_by(0) .out(3, Special)
        .note("the Q_GET commands are questions and write their structure");
    246 kexec_load Security;
    313 finit_module Security .fd(0);
    320 kexec_file_load Security .fd(0) .fd(1);
    443 quotactl_fd Security .fd(0) .decided_by(1) .out(3, Special)
        .note("the Q_GET commands are questions and write their structure");
}
