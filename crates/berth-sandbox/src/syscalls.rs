//! System calls that no training job needs and that attacks on a kernel begin with, and the bits by
//! which a program runs as whoever owns its file.
//!
//! A job gets "operation not permitted" for them. Everything else is allowed: a list of what is
//! allowed breaks with the next version of a library.

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;

const EPERM: u32 = 1;
const ENOSYS: u32 = 38;

/// Flags of `clone` for new namespaces: mount, control group, UTS, IPC, user, PID, network.
const NAMESPACES: [u64; 7] =
    [0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000];

/// Requests that put characters into a terminal as if they had been typed there.
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541C;

/// Bits of a mode that make a program run as the owner or the group of its file. In a folder that
/// others of the machine reach, such a program hands them the account of the job.
const SET_USER: u64 = 0o4000;
const SET_GROUP: u64 = 0o2000;

/// Flags of `open` with which it reads its mode. Without them that argument may hold anything.
const O_CREAT: u64 = 0o100;
const O_TMPFILE: u64 = 0o20_000_000;

/// Which of these bits a process may not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// That of the user. The groups of an account of the user's own are the user's to give away,
    /// and folders that hand on their group have the other bit.
    User,
    /// Both: the process has the account of the server.
    UserAndGroup,
}

impl Keep {
    fn bits(self) -> &'static [u64] {
        match self {
            Keep::User => &[SET_USER],
            Keep::UserAndGroup => &[SET_USER, SET_GROUP],
        }
    }
}

/// The filters, to be applied in this order.
pub(crate) fn filters(keep: Keep) -> Result<Vec<BpfProgram>, BackendError> {
    let mut denied: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for number in numbers::DENIED.iter().copied().flat_map(forms) {
        denied.insert(number, Vec::new());
    }
    for number in forms(numbers::CLONE) {
        let apart = NAMESPACES.iter().map(|flag| rule(0, SeccompCmpOp::MaskedEq(*flag), *flag));
        denied.insert(number, apart.collect::<Result<_, _>>()?);
    }
    for number in forms(numbers::IOCTL).into_iter().chain(numbers::X32_IOCTL) {
        let typed = [TIOCSTI, TIOCLINUX].map(|request| rule(1, SeccompCmpOp::Eq, request));
        denied.insert(number, typed.into_iter().collect::<Result<_, _>>()?);
    }
    // The kernel itself leaves these bits out when it makes a folder, so `mkdir` is not among them.
    for (number, mode) in numbers::MODES.iter().copied() {
        for number in forms(number) {
            let set = keep.bits().iter().map(|bit| SeccompRule::new(vec![has(mode, *bit)?]));
            denied.insert(number, set.collect::<Result<_, _>>()?);
        }
    }
    for (number, flags, mode) in numbers::OPENS.iter().copied() {
        for number in forms(number) {
            let pairs = [O_CREAT, O_TMPFILE].into_iter();
            let pairs = pairs.flat_map(|flag| keep.bits().iter().map(move |bit| (flag, *bit)));
            let set =
                pairs.map(|(flag, bit)| SeccompRule::new(vec![has(flags, flag)?, has(mode, bit)?]));
            denied.insert(number, set.collect::<Result<_, _>>()?);
        }
    }
    // What `clone3` and `openat2` do is in memory, where no filter sees it. Libraries that hear that
    // they do not exist use `clone` and `openat`.
    let unknown = [numbers::CLONE3, numbers::OPENAT2].into_iter().flat_map(forms);
    let unknown = unknown.map(|number| (number, Vec::new())).collect();
    Ok(vec![compile(denied, EPERM)?, compile(unknown, ENOSYS)?])
}

// The kernel looks at the lower half of all arguments that are compared here.
fn has(argument: u8, bit: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bit), bit)
}

/// The numbers by which a call can be made.
fn forms(number: i64) -> Vec<i64> {
    std::iter::once(number).chain(numbers::X32.map(|bit| number | bit)).collect()
}

fn rule(argument: u8, op: SeccompCmpOp, value: u64) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value)?])
}

fn compile(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: u32) -> Result<BpfProgram, BackendError> {
    let arch = std::env::consts::ARCH.try_into()?;
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno), arch)?;
    BpfProgram::try_from(filter)
}

#[cfg(target_arch = "x86_64")]
mod numbers {
    /// Kernels that run x32 programs take calls with this bit, and call that the same
    /// architecture.
    pub const X32: Option<i64> = Some(0x4000_0000);
    /// What x32 has numbers of its own for.
    pub const X32_IOCTL: Option<i64> = Some(0x4000_0000 | 514);
    pub const CLONE: i64 = 56;
    pub const CLONE3: i64 = 435;
    pub const IOCTL: i64 = 16;
    pub const OPENAT2: i64 = 437;
    /// Calls that take a mode, and which argument it is.
    pub const MODES: &[(i64, u8)] = &[
        (85, 1),  // creat
        (90, 1),  // chmod
        (91, 1),  // fchmod
        (133, 1), // mknod
        (259, 2), // mknodat
        (268, 2), // fchmodat
        (452, 2), // fchmodat2
    ];
    /// Calls that take flags, and a mode where the flags say so.
    pub const OPENS: &[(i64, u8, u8)] = &[
        (2, 1, 2),   // open
        (257, 2, 3), // openat
    ];
    pub const DENIED: &[i64] = &[
        155, // pivot_root
        163, // acct
        165, // mount
        166, // umount2
        167, // swapon
        168, // swapoff
        169, // reboot
        172, // iopl
        173, // ioperm
        175, // init_module
        176, // delete_module
        179, // quotactl
        246, // kexec_load
        248, // add_key
        249, // request_key
        250, // keyctl
        272, // unshare
        298, // perf_event_open
        304, // open_by_handle_at
        308, // setns
        313, // finit_module
        320, // kexec_file_load
        321, // bpf
        323, // userfaultfd
        425, // io_uring_setup
        426, // io_uring_enter
        427, // io_uring_register
        428, // open_tree
        429, // move_mount
        430, // fsopen
        431, // fsconfig
        432, // fsmount
        433, // fspick
        442, // mount_setattr
        443, // quotactl_fd
        528, // kexec_load of x32
    ];
}

#[cfg(target_arch = "aarch64")]
mod numbers {
    pub const X32: Option<i64> = None;
    pub const X32_IOCTL: Option<i64> = None;
    pub const CLONE: i64 = 220;
    pub const CLONE3: i64 = 435;
    pub const IOCTL: i64 = 29;
    pub const OPENAT2: i64 = 437;
    /// Calls that take a mode, and which argument it is.
    pub const MODES: &[(i64, u8)] = &[
        (33, 2),  // mknodat
        (52, 1),  // fchmod
        (53, 2),  // fchmodat
        (452, 2), // fchmodat2
    ];
    /// Calls that take flags, and a mode where the flags say so.
    pub const OPENS: &[(i64, u8, u8)] = &[
        (56, 2, 3), // openat
    ];
    pub const DENIED: &[i64] = &[
        39,  // umount2
        40,  // mount
        41,  // pivot_root
        60,  // quotactl
        89,  // acct
        97,  // unshare
        104, // kexec_load
        105, // init_module
        106, // delete_module
        142, // reboot
        217, // add_key
        218, // request_key
        219, // keyctl
        224, // swapon
        225, // swapoff
        241, // perf_event_open
        265, // open_by_handle_at
        268, // setns
        273, // finit_module
        280, // bpf
        282, // userfaultfd
        294, // kexec_file_load
        425, // io_uring_setup
        426, // io_uring_enter
        427, // io_uring_register
        428, // open_tree
        429, // move_mount
        430, // fsopen
        431, // fsconfig
        432, // fsmount
        433, // fspick
        442, // mount_setattr
        443, // quotactl_fd
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_compile_for_this_processor() {
        for keep in [Keep::User, Keep::UserAndGroup] {
            let programs = filters(keep).unwrap();
            // The kernel takes 4096 instructions, and each rule is a handful.
            assert!(programs.iter().all(|program| (1..2_000).contains(&program.len())));
        }
    }
}
