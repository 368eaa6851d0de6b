use super::*;

const SMALL: LogLimits = LogLimits { file_bytes: 10, files: 3 };

struct Fixture {
    dir: tempfile::TempDir,
    writer: LogWriter,
}

fn fixture(limits: LogLimits) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("logs")).unwrap();
    let writer = LogWriter::new(&dir.path().join("logs"), 0, limits);
    Fixture { dir, writer }
}

impl Fixture {
    fn write(&mut self, text: &str, at_ms: i64) {
        self.writer.write(text.as_bytes(), Time(at_ms));
    }

    fn reader(&self) -> LogReader {
        LogReader::open(self.dir.path(), 0).unwrap()
    }

    /// All that is kept from a position on.
    fn from(&self, position: u64) -> String {
        let mut follower = self.reader().follow(position);
        let mut text = String::new();
        loop {
            let chunk = follower.read_more(7).unwrap();
            if chunk.bytes.is_empty() {
                return text;
            }
            text.push_str(&String::from_utf8(chunk.bytes).unwrap());
        }
    }
}

#[test]
fn positions_count_through_the_files() {
    let mut log = fixture(SMALL);
    log.write("abcdefghijklmno", 0);
    assert_eq!(log.reader().range().unwrap(), 0..15);
    assert_eq!(log.from(0), "abcdefghijklmno");
    assert_eq!(log.from(12), "mno");
    assert_eq!(log.from(99), "");
}

#[test]
fn the_oldest_file_is_dropped_and_a_reader_sees_the_gap() {
    let mut log = fixture(SMALL);
    log.write(&"0123456789".repeat(5), 0);
    log.write("tail", 0);
    assert_eq!(log.reader().range().unwrap(), 30..54);
    assert_eq!(log.reader().read(0, 4).unwrap(), Chunk { position: 30, bytes: b"0123".to_vec() });
    assert_eq!(log.from(48), "89tail");
    let files = std::fs::read_dir(log.dir.path().join("logs")).unwrap().count();
    assert_eq!(files, 6, "three files with an index each");
}

#[test]
fn a_follower_goes_on_after_the_folder_was_moved() {
    let mut log = fixture(SMALL);
    log.write("one", 0);
    let mut follower = log.reader().follow(0);
    assert_eq!(follower.read_more(99).unwrap().bytes, b"one");
    assert_eq!(follower.read_more(99).unwrap().bytes, b"");
    let moved = log.dir.path().with_extension("moved");
    std::fs::rename(log.dir.path(), &moved).unwrap();
    LogWriter::new(&moved.join("logs"), 0, SMALL).write(b"onetwo", Time(0));
    std::fs::remove_file(moved.join("logs/0.0")).unwrap();
    std::fs::write(moved.join("logs/0.0"), "onetwo").unwrap();
    assert_eq!(follower.read_more(99).unwrap().bytes, b"two");
    std::fs::remove_dir_all(&moved).unwrap();
}

#[test]
fn the_last_lines_are_found_over_files() {
    let mut log = fixture(LogLimits { file_bytes: 5, files: 9 });
    log.write("one\ntwo\nthree\nfour", 0);
    let tail = |lines| log.from(log.reader().tail(lines).unwrap());
    assert_eq!(tail(0), "");
    assert_eq!(tail(1), "four");
    assert_eq!(tail(2), "three\nfour");
    assert_eq!(tail(9), "one\ntwo\nthree\nfour");
    log.write("\n", 0);
    assert_eq!(log.from(log.reader().tail(1).unwrap()), "four\n");
}

#[test]
fn the_tail_of_an_empty_log_is_its_end() {
    let log = fixture(SMALL);
    assert_eq!(log.reader().tail(10).unwrap(), 0);
    assert_eq!(log.reader().since(Time(0)).unwrap(), 0);
}

#[test]
fn time_finds_a_position_and_a_position_its_time() {
    let mut log = fixture(LogLimits { file_bytes: 8, files: 9 });
    log.write("early\n", 1_000);
    log.write("soon\n", 1_100);
    log.write("later\n", 60_000);
    let since = |ms| log.from(log.reader().since(Time(ms)).unwrap());
    assert_eq!(since(0), "early\nsoon\nlater\n");
    assert_eq!(since(1_150), "early\nsoon\nlater\n", "it may belong to the moment before");
    assert_eq!(since(30_000), "later\n");
    assert_eq!(since(90_000), "");
    let time = |position| log.reader().time_of(position).unwrap();
    assert_eq!((time(0), time(11)), (Some(Time(1_000)), Some(Time(60_000))));
}

#[test]
fn what_cannot_be_written_is_counted_and_said_when_it_can_again() {
    let mut log = fixture(LogLimits::default());
    let (logs, away) = (log.dir.path().join("logs"), log.dir.path().join("away"));
    std::fs::rename(&logs, &away).unwrap();
    log.write("never seen", 0);
    assert_eq!(log.writer.lost(), 10);
    std::fs::rename(&away, &logs).unwrap();
    log.write("seen", 0);
    assert_eq!(log.from(0), "\n[berth: 10 bytes of log could not be written]\nseen");
    assert_eq!(log.writer.lost(), 10);
}

#[test]
fn ranks_do_not_mix() {
    let mut log = fixture(LogLimits::default());
    log.write("zero", 0);
    LogWriter::new(&log.dir.path().join("logs"), 10, SMALL).write(b"ten", Time(0));
    assert_eq!(log.from(0), "zero");
    let ten = LogReader::open(log.dir.path(), 10).unwrap();
    assert_eq!(ten.read(0, 99).unwrap().bytes, b"ten");
}

/// A log of lines, looked through in steps of so many bytes and lines.
fn searched(log: &Fixture, bytes: u64, most: usize, text: &str) -> (Vec<String>, u64) {
    let wanted = |line: &[u8]| String::from_utf8_lossy(line).contains(text);
    let (mut at, mut found) = (LogPlace::default(), Vec::new());
    loop {
        let looked = log.reader().search(at, bytes, most, &wanted, &|| false).unwrap();
        let hits = looked.hits.iter().map(|hit| {
            let text = String::from_utf8(hit.bytes.clone()).unwrap();
            format!("{}@{}:{text}", hit.line, hit.position)
        });
        found.extend(hits);
        if looked.whole && looked.next.found == looked.found {
            return (found, looked.found);
        }
        assert!(looked.next != at, "it goes on");
        at = looked.next;
    }
}

#[test]
fn lines_are_found_and_counted_however_small_the_steps_are() {
    let mut log = fixture(LogLimits { file_bytes: 7, files: 100 });
    log.write("one x\ntwo\nthree x\n\nfive x", 0);
    let expect = ["0@0:one x", "2@10:three x", "4@19:five x"];
    for most in 1..=4 {
        let (found, count) = searched(&log, 1_000, most, "x");
        assert_eq!((found.as_slice(), count), (expect.map(str::to_owned).as_slice(), 3));
    }
    // A step is a block at the least, so a small one reads one file.
    let (found, count) = searched(&log, 1, 2, "x");
    assert_eq!((found.len(), count), (3, 3));
    assert_eq!(searched(&log, 1_000, 5, "nothing"), (Vec::new(), 0));
    let all = log.reader().search(LogPlace::default(), 1_000, 0, &|_| true, &|| false).unwrap();
    assert_eq!((all.hits.len(), all.found, all.whole), (0, 5, true), "only counted");
}

#[test]
fn a_look_that_has_lasted_long_enough_stops_after_a_line_and_goes_on_there() {
    let mut log = fixture(LogLimits { file_bytes: 7, files: 100 });
    log.write("one x\ntwo\nthree x\n\nfive x\n", 0);
    let (mut at, mut found, mut looks) = (LogPlace::default(), Vec::new(), 0);
    loop {
        let looked = log.reader().search(at, 1_000, 9, &|line| line.ends_with(b"x"), &|| true);
        let looked = looked.unwrap();
        found.extend(looked.hits.iter().map(|hit| hit.line));
        looks += 1;
        if looked.whole {
            assert_eq!((found.as_slice(), looked.found, looks), (&[0, 2, 4][..], 3, 6));
            return;
        }
        assert_eq!(looked.next.line, at.line + 1, "one line");
        at = looked.next;
    }
}

#[test]
fn a_line_is_addressed_by_its_number_and_those_before_it_by_how_many_they_are() {
    let mut log = fixture(LogLimits { file_bytes: 7, files: 100 });
    log.write("a\nbb\nccc\ndddd\n", 0);
    let reader = log.reader();
    let starts: Vec<u64> = (0..6).map(|line| reader.line_start(line).unwrap()).collect();
    assert_eq!(starts, [0, 2, 5, 9, 14, 14]);
    assert_eq!(reader.back(9, 1).unwrap(), 5);
    assert_eq!(reader.back(9, 2).unwrap(), 2);
    assert_eq!(reader.back(9, 9).unwrap(), 0);
    assert_eq!(reader.back(0, 3).unwrap(), 0);
    assert_eq!(reader.ranks().unwrap(), [0]);
}

#[test]
fn a_line_without_an_end_in_sight_is_looked_at_in_pieces() {
    let mut log = fixture(LogLimits::default());
    log.write(&"x".repeat(LONGEST_LOG_LINE + 5), 0);
    log.write("\nend x\n", 0);
    let (found, count) = searched(&log, 1_000_000, 10, "x");
    assert_eq!(count, 3);
    assert!(found[2].starts_with(&format!("1@{}:end x", LONGEST_LOG_LINE + 6)), "{}", found[2]);
}

/// What a follower reads at once, with the times.
fn pieces(follower: &mut LogFollower) -> Vec<(u64, String, Option<i64>)> {
    let pieces = follower.read_pieces(1 << 20).unwrap();
    let told = |piece: Piece| {
        let text = String::from_utf8(piece.bytes).unwrap();
        (piece.position, text, piece.at.map(|at| at.0))
    };
    pieces.into_iter().map(told).collect()
}

#[test]
fn lines_a_second_apart_have_times_of_their_own_even_if_they_are_read_together() {
    let mut log = fixture(LogLimits::default());
    // The second one was read a little sooner than the first one after it was written.
    for (text, at) in [("one\n", 1_004), ("two\n", 2_001), ("two too\n", 2_050), ("three\n", 3_003)]
    {
        log.write(text, at);
    }
    let mut follower = log.reader().follow(0);
    let all = [(0, "one\n", 1_004), (4, "two\ntwo too\n", 2_001), (16, "three\n", 3_003)];
    let told: Vec<_> = all.map(|(at, text, ms)| (at, text.to_owned(), Some(ms))).into();
    assert_eq!(pieces(&mut follower), told);
    assert!(pieces(&mut follower).is_empty());
    log.write("four\n", 4_002);
    assert_eq!(pieces(&mut follower), [(22, "four\n".to_owned(), Some(4_002))]);
    // In the middle of what one moment stands for.
    let mut follower = log.reader().follow(6);
    assert_eq!(pieces(&mut follower)[0], (6, "o\ntwo too\n".to_owned(), Some(2_001)));
}

#[test]
fn times_go_on_over_files() {
    let mut log = fixture(LogLimits { file_bytes: 8, files: 9 });
    log.write("0123456789", 1_000);
    log.write("abc", 5_000);
    let mut follower = log.reader().follow(0);
    let mut all = Vec::new();
    loop {
        let some = pieces(&mut follower);
        if some.is_empty() {
            break;
        }
        all.extend(some);
    }
    let told = [(0, "01234567", 1_000), (8, "89", 1_000), (10, "abc", 5_000)];
    assert_eq!(all, told.map(|(at, text, ms)| (at, text.to_owned(), Some(ms))));
}
