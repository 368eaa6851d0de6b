//! The heap. A server allocates on one thread what it frees on another and makes a copy of the whole
//! state for each forecast; the C library's allocator keeps what such peaks leave behind, until most
//! of what is resident is in nobody's use.
//!
//! The state of a large cluster is hundreds of megabytes that are walked in no order, so that with
//! small pages a good part of a plan is spent looking pages up. Huge ones are asked for only when the
//! allocator is told to before the program starts.

#[global_allocator]
static HEAP: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs the program again, once, with huge pages for its heap; goes on as it is where that cannot be.
#[cfg(target_os = "linux")]
pub fn ask_for_huge_pages() {
    use std::os::unix::process::CommandExt;
    const HUGE: &str = "MIMALLOC_ALLOW_LARGE_OS_PAGES";
    // Whoever has set it, one way or the other, is not overruled.
    if std::env::var_os(HUGE).is_some() {
        return;
    }
    let Ok(program) = std::env::current_exe() else { return };
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_default();
    // It returns only if it did not work.
    let _error = std::process::Command::new(program).arg0(name).args(args).env(HUGE, "1").exec();
}

#[cfg(not(target_os = "linux"))]
pub fn ask_for_huge_pages() {}
