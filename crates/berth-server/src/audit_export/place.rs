//! Where the audit log is exported to.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where programs of a machine log to.
const LOCAL: &str = "/dev/log";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportPlace {
    /// Lines are added to it.
    File(PathBuf),
    Syslog(Socket),
}

/// How a syslog server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Socket {
    Unix(PathBuf),
    Udp(String),
    Tcp(String),
}

/// Why nothing can be exported there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    #[error("`{0}` is no place for the audit log: expected a file by its whole path")]
    Relative(String),
    #[error(
        "`{0}` is no syslog server: expected syslog:, syslog:/dev/log, syslog:udp://host:514 or \
         syslog:tcp://host:601"
    )]
    NoSyslog(String),
}

impl FromStr for ExportPlace {
    type Err = PlaceError;
    fn from_str(text: &str) -> Result<ExportPlace, PlaceError> {
        let Some(to) = text.strip_prefix("syslog:") else {
            // A server may be started from anywhere.
            return match text.starts_with('/') {
                true => Ok(ExportPlace::File(PathBuf::from(text))),
                false => Err(PlaceError::Relative(text.to_owned())),
            };
        };
        let wrong = || PlaceError::NoSyslog(text.to_owned());
        let host = |to: &str| {
            let port = to.rsplit_once(':').and_then(|(host, port)| {
                (!host.is_empty()).then(|| port.parse::<u16>().ok()).flatten()
            });
            port.filter(|port| *port > 0).map(|_| to.to_owned()).ok_or_else(wrong)
        };
        let socket = if to.is_empty() {
            Socket::Unix(PathBuf::from(LOCAL))
        } else if to.starts_with('/') && !to.starts_with("//") {
            Socket::Unix(PathBuf::from(to))
        } else if let Some(to) = to.strip_prefix("udp://") {
            Socket::Udp(host(to)?)
        } else if let Some(to) = to.strip_prefix("tcp://") {
            Socket::Tcp(host(to)?)
        } else {
            return Err(wrong());
        };
        Ok(ExportPlace::Syslog(socket))
    }
}

impl fmt::Display for ExportPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExportPlace::File(path) => write!(f, "{}", path.display()),
            ExportPlace::Syslog(Socket::Unix(path)) => write!(f, "syslog:{}", path.display()),
            ExportPlace::Syslog(Socket::Udp(to)) => write!(f, "syslog:udp://{to}"),
            ExportPlace::Syslog(Socket::Tcp(to)) => write!(f, "syslog:tcp://{to}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_whole_path_or_a_syslog_server_and_nothing_else() {
        let good = [
            ("/var/log/audit.jsonl", "/var/log/audit.jsonl"),
            ("syslog:", "syslog:/dev/log"),
            ("syslog:/run/log", "syslog:/run/log"),
            ("syslog:udp://logs:514", "syslog:udp://logs:514"),
            ("syslog:tcp://[::1]:601", "syslog:tcp://[::1]:601"),
        ];
        for (text, shown) in good {
            assert_eq!(text.parse::<ExportPlace>().unwrap().to_string(), shown);
        }
        let bad = [
            "audit.jsonl",
            "",
            "syslog:logs",
            "syslog://x",
            "syslog:udp://logs",
            "syslog:tcp://:601",
            "syslog:tcp://logs:0",
        ];
        for text in bad {
            assert!(text.parse::<ExportPlace>().is_err(), "{text}");
        }
    }
}
