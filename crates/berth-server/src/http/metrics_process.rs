//! Figures of the server's own process, under the names that all programs have for them.

use super::metrics::Page;
use std::fs;

/// What the kernel counts CPU time and starts in, for programs: a hundredth of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// As far as the kernel tells.
#[derive(Debug, Default, PartialEq)]
struct Process {
    cpu_seconds: Option<f64>,
    start_seconds: Option<f64>,
    resident_bytes: Option<f64>,
    virtual_bytes: Option<f64>,
    threads: Option<f64>,
    open_fds: Option<f64>,
    max_fds: Option<f64>,
}

impl Page {
    pub(super) fn process(&mut self) {
        let Process {
            cpu_seconds,
            start_seconds,
            resident_bytes,
            virtual_bytes,
            threads,
            open_fds,
            max_fds,
        } = Process::read();
        let mut gauge = |name: &str, help: &str, value: Option<f64>| {
            if let Some(value) = value {
                self.foreign_figure(name, help, value);
            }
        };
        let help = "When the process was started, in seconds since 1970";
        gauge("process_start_time_seconds", help, start_seconds);
        gauge("process_resident_memory_bytes", "Memory in use", resident_bytes);
        gauge("process_virtual_memory_bytes", "Memory that is mapped", virtual_bytes);
        gauge("process_threads", "Threads", threads);
        gauge("process_open_fds", "Files and connections that are open", open_fds);
        gauge("process_max_fds", "How many may be open", max_fds);
        if let Some(seconds) = cpu_seconds {
            self.foreign_count("process_cpu_seconds", "CPU time, of the kernel's too", seconds);
        }
    }
}

impl Process {
    fn read() -> Process {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let (stat, status) = (text("/proc/self/stat"), text("/proc/self/status"));
        let (system, limits) = (text("/proc/stat"), text("/proc/self/limits"));
        let open = fs::read_dir("/proc/self/fd").ok().map(|fds| fds.count() as f64);
        Process { open_fds: open, ..Process::parse(&stat, &status, &system, &limits) }
    }

    fn parse(stat: &str, status: &str, system: &str, limits: &str) -> Process {
        // The name of the program, in parentheses, may have spaces in it.
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        // Counted from 1 in its manual page, where the name is the second.
        let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        let ticks = |number| field(number).map(|ticks| ticks / TICKS_PER_SECOND);
        let line = |text: &str, name: &str| {
            let rest = text.lines().find_map(|line| line.strip_prefix(name))?.to_owned();
            rest.split_whitespace().find_map(|word| word.parse::<f64>().ok())
        };
        let kib = |name| line(status, name).map(|kib| kib * 1_024.0);
        let booted = line(system, "btime ");
        Process {
            cpu_seconds: ticks(14).zip(ticks(15)).map(|(user, kernel)| user + kernel),
            start_seconds: booted.zip(ticks(22)).map(|(booted, start)| booted + start),
            resident_bytes: kib("VmRSS:"),
            virtual_bytes: kib("VmSize:"),
            threads: line(status, "Threads:"),
            open_fds: None,
            max_fds: line(limits, "Max open files"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_tells_is_read() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 4 0 1000 5 6 7\n";
        let status = "Name:\tberth\nVmSize:\t  2048 kB\nVmRSS:\t  1024 kB\nThreads:\t12\n";
        let limits = "Limit   Soft  Hard  Units\nMax open files   1024   4096   files\n";
        let read = Process::parse(stat, status, "cpu 1 2\nbtime 1000000\n", limits);
        let expect = Process {
            cpu_seconds: Some(3.0),
            start_seconds: Some(1_000_010.0),
            resident_bytes: Some(1_048_576.0),
            virtual_bytes: Some(2_097_152.0),
            threads: Some(12.0),
            open_fds: None,
            max_fds: Some(1_024.0),
        };
        assert_eq!(read, expect);
        assert_eq!(Process::parse("", "", "", ""), Process::default());
    }

    #[test]
    fn this_process_has_all_of_them() {
        let Process { cpu_seconds, start_seconds, resident_bytes, open_fds, max_fds, .. } =
            Process::read();
        assert!(cpu_seconds.is_some() && resident_bytes.is_some_and(|bytes| bytes > 1e6));
        assert!(open_fds.is_some_and(|open| open > 2.0) && max_fds.is_some());
        assert!(start_seconds.is_some_and(|start| start > 1e9));
    }
}
