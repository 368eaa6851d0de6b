//! Parses the bodies of the most frequent requests without an intermediate tree. Numbers may be
//! strings: clients of MLflow send large numbers and NaN that way.

use super::scanner::{Malformed, Scanner};
use crate::error::{Code, Error, Result};
use std::borrow::Cow;

/// A field of any kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Loose<'a> {
    #[default]
    Missing,
    Int(i64),
    Float(f64),
    Text(Cow<'a, str>),
    Bool(bool),
    /// A list or an object.
    Other,
}

impl Loose<'_> {
    fn shown(&self) -> String {
        match self {
            Loose::Missing => "null".to_owned(),
            Loose::Int(int) => int.to_string(),
            Loose::Float(float) => float.to_string(),
            Loose::Text(text) => {
                let short: String = text.chars().take(100).collect();
                serde_json::json!(short).to_string()
            }
            Loose::Bool(is) => is.to_string(),
            Loose::Other => "{...}".to_owned(),
        }
    }

    pub fn text(self, at: impl Fn() -> String) -> Result<Option<String>> {
        match self {
            Loose::Missing => Ok(None),
            Loose::Text(text) => Ok(Some(text.into_owned())),
            other => Err(Error::bad_value(&at(), other.shown(), "")),
        }
    }

    /// A number, or the text of the value if it is not a number.
    #[expect(clippy::cast_precision_loss, reason = "a value of a metric is a float")]
    pub fn number(self) -> Result<Option<f64>, String> {
        match &self {
            Loose::Missing => Ok(None),
            Loose::Int(int) => Ok(Some(*int as f64)),
            Loose::Float(float) => Ok(Some(*float)),
            Loose::Text(text) => match &**text {
                "NaN" | "nan" => Ok(Some(f64::NAN)),
                "Infinity" | "inf" => Ok(Some(f64::INFINITY)),
                "-Infinity" | "-inf" => Ok(Some(f64::NEG_INFINITY)),
                text => text.trim().parse().map(Some).map_err(|_| self.shown()),
            },
            Loose::Bool(_) | Loose::Other => Err(self.shown()),
        }
    }

    pub fn int(self) -> Result<Option<i64>, String> {
        match &self {
            Loose::Missing => Ok(None),
            Loose::Int(int) => Ok(Some(*int)),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "it is a whole number in the range"
            )]
            #[expect(clippy::float_cmp, reason = "a number is whole or is not")]
            Loose::Float(float) if float.trunc() == *float && float.abs() < 9e15 => {
                Ok(Some(*float as i64))
            }
            Loose::Text(text) => text.trim().parse().map(Some).map_err(|_| self.shown()),
            Loose::Float(_) | Loose::Bool(_) | Loose::Other => Err(self.shown()),
        }
    }
}

impl<'a> Loose<'a> {
    /// The next value. Skips a list or an object.
    fn read(from: &mut Scanner<'a>) -> Result<Loose<'a>, Malformed> {
        Ok(match from.peek() {
            Some(b'"') => Loose::Text(from.text()?),
            Some(b't' | b'f') => Loose::Bool(from.bool()?),
            Some(b'n') => {
                from.null()?;
                Loose::Missing
            }
            Some(b'{' | b'[') => {
                from.skip()?;
                Loose::Other
            }
            _ => {
                let digits = from.number()?;
                match digits.parse() {
                    Ok(int) => Loose::Int(int),
                    // The standard library rounds correctly to the nearest float.
                    Err(_) => Loose::Float(digits.parse().map_err(|_| from.malformed("a number"))?),
                }
            }
        })
    }
}

/// The body of `log-batch`.
#[derive(Debug, Default)]
pub struct RawBatch<'a> {
    pub run: Loose<'a>,
    pub metrics: Vec<RawMetric<'a>>,
    pub params: Vec<RawPair<'a>>,
    pub tags: Vec<RawPair<'a>>,
}

#[derive(Debug, Default)]
pub struct RawMetric<'a> {
    pub run: Loose<'a>,
    pub key: Loose<'a>,
    pub value: Loose<'a>,
    pub timestamp: Loose<'a>,
    pub step: Loose<'a>,
    pub model_id: Loose<'a>,
    pub dataset_name: Loose<'a>,
    pub dataset_digest: Loose<'a>,
}

#[derive(Debug, Default)]
pub struct RawPair<'a> {
    pub key: Loose<'a>,
    pub value: Loose<'a>,
}

/// Clients send the id of a run under two names. The first that is not empty counts.
fn put_run<'a>(run: &mut Loose<'a>, name: &str, found: Loose<'a>) {
    let is_empty = matches!(&found, Loose::Missing) || found == Loose::Text(Cow::Borrowed(""));
    if !is_empty && (*run == Loose::Missing || name == "run_id") {
        *run = found;
    }
}

fn bad(why: Malformed) -> Error {
    Error::new(Code::BadRequest, format!("The body is not a JSON object: {why}"))
}

/// A list of objects; `None` for null.
fn list<'a, T>(
    from: &mut Scanner<'a>,
    one: impl Fn(&mut Scanner<'a>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let mut found = Vec::new();
    if from.peek() == Some(b'n') {
        from.null()?;
        return Ok(found);
    }
    from.array(|from| {
        found.push(one(from)?);
        Ok(())
    })?;
    Ok(found)
}

impl<'a> RawBatch<'a> {
    pub fn of_json(body: &'a [u8]) -> Result<RawBatch<'a>> {
        let mut from = Scanner::new(body).map_err(bad)?;
        let mut batch = RawBatch::default();
        let read = from.object(|from, name| {
            match name {
                "run_id" | "run_uuid" => put_run(&mut batch.run, name, Loose::read(from)?),
                "metrics" => batch.metrics = list(from, RawMetric::read)?,
                "params" => batch.params = list(from, RawPair::read)?,
                "tags" => batch.tags = list(from, RawPair::read)?,
                _ => from.skip()?,
            }
            Ok(())
        });
        read.and_then(|()| from.end()).map_err(bad)?;
        Ok(batch)
    }
}

impl<'a> RawMetric<'a> {
    /// The body of `log-metric`: a metric and its run.
    pub fn of_json(body: &'a [u8]) -> Result<RawMetric<'a>> {
        let mut from = Scanner::new(body).map_err(bad)?;
        let metric = RawMetric::read(&mut from);
        metric.and_then(|metric| from.end().map(|()| metric)).map_err(bad)
    }

    fn read(from: &mut Scanner<'a>) -> Result<RawMetric<'a>, Malformed> {
        let mut metric = RawMetric::default();
        from.object(|from, name| {
            let place = match name {
                "run_id" | "run_uuid" => {
                    put_run(&mut metric.run, name, Loose::read(from)?);
                    return Ok(());
                }
                "key" => &mut metric.key,
                "value" => &mut metric.value,
                "timestamp" => &mut metric.timestamp,
                "step" => &mut metric.step,
                "model_id" => &mut metric.model_id,
                "dataset_name" => &mut metric.dataset_name,
                "dataset_digest" => &mut metric.dataset_digest,
                _ => return from.skip(),
            };
            *place = Loose::read(from)?;
            Ok(())
        })?;
        Ok(metric)
    }
}

impl<'a> RawPair<'a> {
    fn read(from: &mut Scanner<'a>) -> Result<RawPair<'a>, Malformed> {
        let mut pair = RawPair::default();
        from.object(|from, name| {
            let place = match name {
                "key" => &mut pair.key,
                "value" => &mut pair.value,
                _ => return from.skip(),
            };
            *place = Loose::read(from)?;
            Ok(())
        })?;
        Ok(pair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loose(json: &str) -> Loose<'_> {
        Loose::read(&mut Scanner::new(json.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn a_number_is_the_float_that_is_nearest_to_its_digits() {
        for value in [1.0 / 11.0, 0.1, 1e-300, f64::MAX, 5e-324, 123_456_789.123_456_79] {
            let shown = serde_json::to_string(&value).unwrap();
            let found = loose(&shown).number().unwrap().unwrap();
            assert_eq!(found.to_bits(), f64::to_bits(value), "{shown}");
        }
    }

    #[test]
    fn a_batch_is_read_whatever_else_is_in_it() {
        let body = br#" {"x": [1, {"y": "]}"}], "run_uuid": "b", "run_id": "a", "tags": null,
            "metrics": [{"key": "l\u006fss", "value": 1.5, "timestamp": "7", "step": null}, {}],
            "params": [{"key": "p", "value": "a\"b"}]} "#;
        let batch = RawBatch::of_json(body).unwrap();
        assert_eq!(batch.run, Loose::Text("a".into()));
        assert_eq!((batch.metrics.len(), batch.params.len(), batch.tags.len()), (2, 1, 0));
        assert_eq!(batch.metrics[0].key, Loose::Text("loss".into()));
        assert_eq!(batch.metrics[0].value, Loose::Float(1.5));
        assert_eq!(batch.metrics[1].key, Loose::Missing);
        assert_eq!(batch.params[0].value, Loose::Text("a\"b".into()));
        for odd in ["", "[]", "{", "{\"metrics\": 1}", "{} x", "{\"a\" 1}", "{\"run_id\": tru}"] {
            assert_eq!(
                RawBatch::of_json(odd.as_bytes()).unwrap_err().code,
                Code::BadRequest,
                "{odd}"
            );
        }
    }

    #[test]
    fn numbers_may_be_texts_and_nothing_else_is_a_number() {
        assert_eq!(loose("1.5").number(), Ok(Some(1.5)));
        assert_eq!(loose("\"1.5\"").number(), Ok(Some(1.5)));
        assert!(loose("\"NaN\"").number().unwrap().unwrap().is_nan());
        assert_eq!(loose("\"-Infinity\"").number(), Ok(Some(f64::NEG_INFINITY)));
        assert_eq!(loose("null").number(), Ok(None));
        assert_eq!(loose("true").number(), Err("true".to_owned()));
        assert_eq!(loose("\"x\"").number(), Err("\"x\"".to_owned()));
        assert_eq!(loose("[1,{}]").number(), Err("{...}".to_owned()));
        assert_eq!(loose("\"7\"").int(), Ok(Some(7)));
        assert_eq!(loose("7.0").int(), Ok(Some(7)));
        assert!(loose("7.5").int().is_err());
    }
}
