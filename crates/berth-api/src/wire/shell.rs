//! A terminal in a running job, over a WebSocket.
//!
//! What is typed and what is shown are binary messages. Everything else is text with one of the
//! types here in JSON. The client opens with [`ShellAsk::Open`]; the server ends with
//! [`ShellTell::Exit`] or [`ShellTell::Problem`] and closes.

use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// From the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ShellAsk {
    /// First of all: what to start, and where.
    Open {
        /// The node's part of the job; the first where left out.
        #[serde(default)]
        task: Option<u32>,
        /// The user's shell where empty.
        #[serde(default)]
        command: Vec<String>,
        /// The kind of terminal, as `TERM` has it.
        term: String,
        rows: u16,
        columns: u16,
    },
    /// The terminal has another size now.
    Resize { rows: u16, columns: u16 },
}

/// From the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ShellTell {
    /// The command ended; 128 and the signal where one ended it.
    Exit { code: i32 },
    /// It could not be started, or was cut off.
    Problem { problem: Problem },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_their_kind() {
        let resize = ShellAsk::Resize { rows: 24, columns: 80 };
        let json = r#"{"kind":"resize","rows":24,"columns":80}"#;
        assert_eq!(serde_json::to_string(&resize).unwrap(), json);
        let open = r#"{"kind":"open","term":"xterm","rows":24,"columns":80}"#;
        let ShellAsk::Open { task, command, .. } = serde_json::from_str(open).unwrap() else {
            panic!("not an opening");
        };
        assert_eq!((task, command), (None, Vec::<String>::new()));
        let exit = serde_json::to_string(&ShellTell::Exit { code: 130 }).unwrap();
        assert_eq!(exit, r#"{"kind":"exit","code":130}"#);
    }
}
