//! Huge pages for the heap. The state of a large cluster is hundreds of megabytes that are walked in
//! no order, so that with small pages a good part of a plan is spent looking pages up. The C library
//! asks for huge ones only when it is told to before the program starts.

/// Runs the program again, once, with huge pages for its heap; goes on as it is where that cannot be.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn ask_for_huge_pages() {
    use std::os::unix::process::CommandExt;
    const TUNABLES: &str = "GLIBC_TUNABLES";
    const HUGE: &str = "glibc.malloc.hugetlb";
    let set = std::env::var(TUNABLES).unwrap_or_default();
    // Whoever has set it, one way or the other, is not overruled.
    if set.contains(HUGE) {
        return;
    }
    let all = if set.is_empty() { format!("{HUGE}=1") } else { format!("{set}:{HUGE}=1") };
    let Ok(program) = std::env::current_exe() else { return };
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_default();
    // It returns only if it did not work.
    let _error =
        std::process::Command::new(program).arg0(name).args(args).env(TUNABLES, all).exec();
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn ask_for_huge_pages() {}
