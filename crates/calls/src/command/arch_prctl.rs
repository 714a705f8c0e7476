//! arch_prctl: segment bases and features of x86-64.

use crate::Len::Fixed;

commands! {
    158 arch_prctl, descriptors 0, numbers from crate::checks::arch;
    0x1001 ARCH_SET_GS Thread .note("the engine uses the real one");
    0x1002 ARCH_SET_FS Thread;
    0x1003 ARCH_GET_FS Pure .out(1, Fixed(8));
    0x1004 ARCH_GET_GS Thread .out(1, Fixed(8)) .note("the engine uses the real one and answers itself");
    0x1011 ARCH_GET_CPUID Pure;
    0x1012 ARCH_SET_CPUID Thread;
    0x1021 ARCH_GET_XCOMP_SUPP Pure .out(1, Fixed(8));
    0x1022 ARCH_GET_XCOMP_PERM Pure .out(1, Fixed(8));
    0x1023 ARCH_REQ_XCOMP_PERM Thread .note("AMX: vector state larger than the engine saves");
    0x1024 ARCH_GET_XCOMP_GUEST_PERM Pure .out(1, Fixed(8));
    0x1025 ARCH_REQ_XCOMP_GUEST_PERM Thread;
    0x2001 ARCH_MAP_VDSO_X32 Map;
    0x2002 ARCH_MAP_VDSO_32 Map;
    0x2003 ARCH_MAP_VDSO_64 Map;
    0x4001 ARCH_GET_UNTAG_MASK Pure .out(1, Fixed(8));
    0x4002 ARCH_ENABLE_TAGGED_ADDR Thread;
    0x4003 ARCH_GET_MAX_TAG_BITS Pure .out(1, Fixed(8));
    0x4004 ARCH_FORCE_TAGGED_SVA Thread;
    0x5001 ARCH_SHSTK_ENABLE Thread;
    0x5002 ARCH_SHSTK_DISABLE Thread;
    0x5003 ARCH_SHSTK_LOCK Thread;
    0x5004 ARCH_SHSTK_UNLOCK Thread;
    0x5005 ARCH_SHSTK_STATUS Pure .out(1, Fixed(8));
}
