//! Files of metrics: a line for each point.

use crate::error::{Error, Result};
use crate::model::{ModelMetric, Point};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The number of points in one page.
const PAGE: usize = 10_000;
/// The points of one metric to remember, to skip duplicates. Beyond this number, it recognises only
/// adjacent duplicates.
const REMEMBERED: usize = 2_000_000;
/// The maximum length of a line.
const LONGEST: u64 = 4096;

/// `TIME VALUE STEP`; old stores lack the step, and some lines end with a data set.
pub fn point(line: &str) -> Result<Point, String> {
    let parts: Vec<&str> = line.split_whitespace().collect();
    let (time, value) = match parts[..] {
        [time, value, ..] => (time, value),
        _ => return Err(format!("expected a time and a value, found `{}`", short(line))),
    };
    let timestamp = time.parse().map_err(|_| format!("`{}` is no time", short(time)))?;
    let value = value.parse().map_err(|_| format!("`{}` is no number", short(value)))?;
    let step = parts.get(2).map_or(Ok(0), |step| step.parse());
    let step = step.map_err(|_| format!("`{}` is no step", short(parts[2])))?;
    Ok(Point::new(step, timestamp, value))
}

/// `TIME VALUE STEP RUN`, and sometimes a data set.
pub fn model_metric(key: &str, line: &str) -> Result<ModelMetric, String> {
    let point = point(line)?;
    let parts: Vec<&str> = line.split_whitespace().collect();
    let run = parts.get(3).ok_or("expected the id of a run behind the step")?;
    let (name, digest) = match parts.len() {
        // The name may contain spaces, but the digest cannot.
        6.. => (parts[4..parts.len() - 1].join(" "), parts[parts.len() - 1].to_owned()),
        _ => (String::new(), String::new()),
    };
    let (key, run) = (key.to_owned(), (*run).to_owned());
    Ok(ModelMetric { key, point, run, dataset_name: name, dataset_digest: digest })
}

fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

/// The points of a file, page by page.
pub struct Points {
    path: PathBuf,
    lines: BufReader<File>,
    number: u64,
    last: Option<Point>,
    seen: HashSet<Point>,
}

/// Points, and malformed lines.
pub type Page = (Vec<Point>, Vec<(u64, String)>);

impl Points {
    pub fn open(path: &Path) -> Result<Points> {
        let file = File::open(path).map_err(Error::file("reading", path))?;
        let (path, lines) = (path.to_owned(), BufReader::with_capacity(256 << 10, file));
        Ok(Points { path, lines, number: 0, last: None, seen: HashSet::new() })
    }

    /// `None` at the end of the file.
    pub fn page(&mut self) -> Result<Option<Page>> {
        let (mut points, mut bad) = (Vec::new(), Vec::new());
        let mut line = Vec::new();
        while points.len() < PAGE && bad.len() < PAGE {
            line.clear();
            let read = self.line(&mut line).map_err(Error::file("reading", &self.path))?;
            let Some(is_whole) = read else { break };
            self.number += 1;
            let text = String::from_utf8_lossy(&line);
            if text.trim().is_empty() {
                continue;
            }
            let read = match is_whole {
                true => point(&text),
                false => Err("the line is too long".to_owned()),
            };
            match read {
                Ok(point) if self.is_new(point) => points.push(point),
                Ok(_) => {}
                Err(why) => bad.push((self.number, why)),
            }
        }
        let is_over = points.is_empty() && bad.is_empty() && line.is_empty();
        Ok((!is_over).then_some((points, bad)))
    }

    /// Reads a line, and says whether it is all of it; nothing at the end.
    fn line(&mut self, line: &mut Vec<u8>) -> io::Result<Option<bool>> {
        if self.lines.by_ref().take(LONGEST).read_until(b'\n', line)? == 0 {
            return Ok(None);
        }
        let is_whole = line.ends_with(b"\n") || (line.len() as u64) < LONGEST;
        let mut rest = Vec::new();
        let mut is_over = is_whole;
        while !is_over {
            rest.clear();
            let read = self.lines.by_ref().take(LONGEST).read_until(b'\n', &mut rest)?;
            is_over = read == 0 || rest.ends_with(b"\n");
        }
        Ok(Some(is_whole))
    }

    fn is_new(&mut self, point: Point) -> bool {
        if self.last.replace(point) == Some(point) || self.seen.contains(&point) {
            return false;
        }
        if self.seen.len() < REMEMBERED {
            self.seen.insert(point);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_point_in_each_form_that_mlflow_has_written() {
        assert_eq!(point("5 0.5").unwrap(), Point::new(0, 5, 0.5));
        assert_eq!(point("5 1e-05 7\n").unwrap(), Point::new(7, 5, 1e-5));
        assert_eq!(point("5 nan 7 set abc").unwrap(), Point::new(7, 5, f64::NAN));
        assert_eq!(point("5 -inf 7").unwrap(), Point::new(7, 5, f64::MIN));
        for bad in ["", "5", "x 1 2", "5 x 2", "5 1 x"] {
            assert!(point(bad).is_err(), "{bad}");
        }
        let of_model = model_metric("acc", "5 0.5 7 run my set abc").unwrap();
        assert_eq!((of_model.run.as_str(), of_model.dataset_name.as_str()), ("run", "my set"));
        assert_eq!(of_model.dataset_digest, "abc");
        assert!(model_metric("acc", "5 0.5 7").is_err());
    }

    #[test]
    fn a_file_gives_each_point_once_and_tells_of_lines_that_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("loss");
        std::fs::write(&path, "1 0.5 1\n1 0.5 1\nnonsense\n2 0.4 2\n\n1 0.5 1\n").unwrap();
        let mut points = Points::open(&path).unwrap();
        let (found, bad) = points.page().unwrap().unwrap();
        assert_eq!(found, [Point::new(1, 1, 0.5), Point::new(2, 2, 0.4)]);
        assert_eq!(bad.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [3]);
        assert!(points.page().unwrap().is_none());
        std::fs::write(&path, format!("1 0.5 1\n{}\n2 0.4 2", "9".repeat(10_000))).unwrap();
        let (found, bad) = Points::open(&path).unwrap().page().unwrap().unwrap();
        assert_eq!((found.len(), bad.len(), bad[0].0), (2, 1, 2));
    }
}
