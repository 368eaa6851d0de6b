//! The fields of a request: of a JSON object, or of a query.

use crate::error::{Error, Result};
use serde_json::{Map, Value, json};

/// Unknown fields are ignored, as MLflow ignores them.
#[derive(Debug, Clone, Default)]
pub struct Fields(pub Map<String, Value>);

impl Fields {
    /// An empty body has no fields.
    pub fn of_json(body: &[u8]) -> Result<Fields> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Fields::default());
        }
        match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => Ok(Fields(fields)),
            Ok(_) => Err(Error::new(crate::Code::BadRequest, "The body is not a JSON object.")),
            Err(error) => {
                Err(Error::new(crate::Code::BadRequest, format!("The body is not JSON: {error}")))
            }
        }
    }

    /// Repeated names form a list.
    pub fn of_query(query: &str) -> Fields {
        let mut fields = Map::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = Value::String(value.into_owned());
            match fields.get_mut(&*name) {
                None => drop(fields.insert(name.into_owned(), value)),
                Some(Value::Array(several)) => several.push(value),
                Some(one) => *one = Value::Array(vec![one.take(), value]),
            }
        }
        Fields(fields)
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub fn text(&self, name: &str) -> Result<Option<String>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => {
                crate::limits::no_zero(name, text)?;
                Ok(Some(text.clone()))
            }
            Some(other) => Err(Error::bad_value(name, other, "")),
        }
    }

    /// A required text that is not empty.
    pub fn required(&self, name: &str) -> Result<String> {
        self.text(name)?.filter(|text| !text.is_empty()).ok_or_else(|| Error::missing(name))
    }

    /// A required text that may be empty.
    pub fn given(&self, name: &str) -> Result<String> {
        self.text(name)?.ok_or_else(|| Error::missing(name))
    }

    pub fn int(&self, name: &str) -> Result<Option<i64>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let found = match value {
            Value::String(text) => text.parse().ok(),
            other => integer(other),
        };
        found.map(Some).ok_or_else(|| Error::bad_value(name, value, ""))
    }

    pub fn bool(&self, name: &str) -> Result<Option<bool>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(is)) => Ok(Some(*is)),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Some(other) => Err(Error::bad_value(name, other, "")),
        }
    }

    /// A list of texts. One text is a list of one.
    pub fn texts(&self, name: &str) -> Result<Vec<String>> {
        match self.get(name) {
            None => Ok(Vec::new()),
            Some(Value::String(one)) => Ok(vec![one.clone()]),
            Some(Value::Array(several)) => several
                .iter()
                .map(|one| one.as_str().map(str::to_owned))
                .collect::<Option<_>>()
                .ok_or_else(|| Error::bad_value(name, json!(several), "")),
            Some(other) => Err(Error::bad_value(name, other, "")),
        }
    }

    /// A list of objects.
    pub fn objects(&self, name: &str) -> Result<Vec<Fields>> {
        match self.get(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(several)) => several
                .iter()
                .map(|one| one.as_object().cloned().map(Fields))
                .collect::<Option<_>>()
                .ok_or_else(|| Error::bad_value(name, json!(several), "")),
            Some(other) => Err(Error::bad_value(name, other, "")),
        }
    }

    pub fn object(&self, name: &str) -> Result<Option<Fields>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Object(fields)) => Ok(Some(Fields(fields.clone()))),
            Some(other) => Err(Error::bad_value(name, other, "")),
        }
    }

    /// A list of keys with values; a key without a value has the empty one.
    pub fn pairs(&self, name: &str) -> Result<Vec<(String, String)>> {
        let of = |(index, one): (usize, Fields)| {
            let at = |field: &str| format!("{name}[{index}].{field}");
            let key = one.text("key")?.ok_or_else(|| Error::missing(&at("key")))?;
            Ok((key, one.text("value")?.unwrap_or_default()))
        };
        self.objects(name)?.into_iter().enumerate().map(of).collect()
    }

    /// `max_results`, up to a limit.
    pub fn max_results(&self, default: usize, most: usize) -> Result<usize> {
        let Some(wanted) = self.int("max_results")? else { return Ok(default) };
        if wanted < 1 {
            let why = "It must be a positive integer";
            return Err(Error::bad_value("max_results", wanted, why));
        }
        match usize::try_from(wanted).ok().filter(|wanted| *wanted <= most) {
            Some(wanted) => Ok(wanted),
            None => Err(Error::bad_value(
                "max_results",
                wanted,
                &format!("It must be at most {most}, but got value {wanted}"),
            )),
        }
    }

    /// The id of a run. Clients send it twice, under two names.
    pub fn run_id(&self) -> Result<String> {
        let id = match self.text("run_id")?.filter(|id| !id.is_empty()) {
            Some(id) => id,
            None => self
                .text("run_uuid")?
                .filter(|id| !id.is_empty())
                .ok_or_else(|| Error::missing("run_id"))?,
        };
        crate::limits::run_id(&id)?;
        Ok(id)
    }
}

/// A whole number; accepts `3.0`.
fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let number = value.as_f64()?;
        #[expect(clippy::cast_possible_truncation, reason = "it is a whole number in the range")]
        let whole = number as i64;
        #[expect(clippy::float_cmp, reason = "a number is whole or is not")]
        let is_whole = number.trunc() == number && number.abs() < 9e15;
        is_whole.then_some(whole)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(json: &str) -> Fields {
        Fields::of_json(json.as_bytes()).unwrap()
    }

    #[test]
    fn a_query_gives_the_same_fields_as_a_body() {
        let query = Fields::of_query("max_results=5&order_by=a&order_by=b%20DESC&filter=x%3D1");
        assert_eq!(query.int("max_results"), Ok(Some(5)));
        assert_eq!(query.texts("order_by"), Ok(vec!["a".to_owned(), "b DESC".to_owned()]));
        assert_eq!(query.texts("filter"), Ok(vec!["x=1".to_owned()]));
        assert_eq!(fields(r#"{"step":"7"}"#).int("step"), Ok(Some(7)));
        assert_eq!(fields(r#"{"step":7.0}"#).int("step"), Ok(Some(7)));
    }

    #[test]
    fn what_is_missing_or_of_another_kind_is_named() {
        let said = |result: Result<String>| result.unwrap_err().message;
        let missing = "Missing value for required parameter 'name'.";
        assert_eq!(said(fields("{}").required("name")), missing);
        assert_eq!(said(fields(r#"{"name":null}"#).required("name")), missing);
        let wrong = "Invalid value 123 for parameter 'name' supplied.";
        assert_eq!(said(fields(r#"{"name":123}"#).required("name")), wrong);
        let bad = fields(r#"{"max_results":0}"#).max_results(1, 10).unwrap_err().message;
        assert!(bad.contains("Invalid value 0 for parameter 'max_results'"), "{bad}");
        let many = fields(r#"{"max_results":"11"}"#).max_results(1, 10).unwrap_err().message;
        assert!(many.contains("at most 10"), "{many}");
        assert!(Fields::of_json(b"[1]").is_err() && Fields::of_json(b"{").is_err());
        assert!(Fields::of_json(b" ").is_ok());
        let pairs = fields(r#"{"tags":[{"key":"a"},{"value":"b"}]}"#).pairs("tags");
        assert_eq!(
            pairs.unwrap_err().message,
            "Missing value for required parameter 'tags[1].key'."
        );
    }

    #[test]
    fn a_run_has_its_id_under_two_names() {
        assert_eq!(fields(r#"{"run_uuid":"a1"}"#).run_id(), Ok("a1".to_owned()));
        assert_eq!(fields(r#"{"run_id":"a","run_uuid":"b"}"#).run_id(), Ok("a".to_owned()));
        assert!(fields("{}").run_id().unwrap_err().message.contains("'run_id'"));
        assert!(fields(r#"{"run_id":"../x"}"#).run_id().is_err());
    }
}
