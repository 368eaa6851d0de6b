//! System calls that no training job needs and that attacks on a kernel begin with.
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

/// The filters, to be applied in this order.
pub(crate) fn filters() -> Result<Vec<BpfProgram>, BackendError> {
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
    // The flags of `clone3` are in memory, where no filter sees them. Libraries that hear that it
    // does not exist use `clone`.
    let unknown = forms(numbers::CLONE3).into_iter().map(|number| (number, Vec::new())).collect();
    Ok(vec![compile(denied, EPERM)?, compile(unknown, ENOSYS)?])
}

/// The numbers by which a call can be made.
fn forms(number: i64) -> Vec<i64> {
    std::iter::once(number).chain(numbers::X32.map(|bit| number | bit)).collect()
}

fn rule(argument: u8, op: SeccompCmpOp, value: u64) -> Result<SeccompRule, BackendError> {
    // The kernel looks at the lower half of these arguments only.
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
        assert!(filters().unwrap().iter().all(|program| !program.is_empty()));
    }
}
