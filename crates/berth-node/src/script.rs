//! A script as the arguments of a program.

/// Linux takes no longer argument: 32 pages, with the byte that ends it.
pub const LONGEST_ARGUMENT: usize = (128 << 10) - 1;

/// So much of a script stands in one argument.
const PIECE: usize = 96 << 10;

/// The command that runs a script by bash. A script that is too long for one argument goes in
/// pieces, which bash puts together before the script sees its (empty) arguments. A file would have
/// to be kept from being changed by the job.
pub fn shell_command(script: &str) -> Vec<String> {
    let bash = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    if script.len() <= LONGEST_ARGUMENT {
        return bash(&["bash", "-c", script]);
    }
    let pieces = pieces(script);
    let whole: String = (1..=pieces.len()).map(|n| format!("${{{n}}}")).collect();
    let join = format!("_berth=\"{whole}\"; set --; eval \"unset _berth; $_berth\"");
    let mut words: Vec<String> = bash(&["bash", "-c", &join, "bash"]);
    words.extend(pieces.into_iter().map(str::to_owned));
    words
}

/// No letter is cut in two.
fn pieces(script: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = script;
    while rest.len() > PIECE {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Output};

    fn run(script: &str) -> Output {
        let words = shell_command(script);
        assert!(words.iter().all(|word| word.len() <= LONGEST_ARGUMENT));
        Command::new(&words[0]).args(&words[1..]).output().unwrap()
    }

    #[test]
    fn a_short_script_is_one_argument() {
        assert_eq!(shell_command("python x.py"), ["bash", "-c", "python x.py"]);
    }

    #[test]
    fn a_script_of_a_mebibyte_runs_as_a_short_one_does() {
        let line = "# ü ".repeat(20) + "\n";
        let head = "#!/bin/bash\nset -eu\n";
        let tail = "echo \"$0 $# ${_berth-none} $LINENO\"\ncat <<'END'\nit's $HOME\nEND\nexit 7\n";
        let lines = ((1 << 20) - head.len() - tail.len()) / line.len();
        let script = [head, &line.repeat(lines), tail].concat();
        assert!(script.len() > 1_000_000);
        let ran = run(&script);
        assert_eq!(ran.status.code(), Some(7), "{}", String::from_utf8_lossy(&ran.stderr));
        let said = String::from_utf8(ran.stdout).unwrap();
        assert_eq!(said, format!("bash 0 none {}\nit's $HOME\n", lines + 3));
    }
}
