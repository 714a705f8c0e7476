//! Numbers that the table of the kernel names but no kernel since 5.10 implements on x86-64.

rows! {
    134 uselib Absent;
    156 _sysctl Absent;
    174 create_module Absent;
    177 get_kernel_syms Absent;
    178 query_module Absent;
    180 nfsservctl Absent;
    181 getpmsg Absent;
    182 putpmsg Absent;
    183 afs_syscall Absent;
    184 tuxcall Absent;
    185 security Absent;
    205 set_thread_area Absent;
    211 get_thread_area Absent;
    214 epoll_ctl_old Absent;
    215 epoll_wait_old Absent;
    236 vserver Absent;
}
