//! The part of CEL in which selectors of devices are written: attributes and capacities compared
//! with literals, joined by `&&`, `||` and `!`. Anything else is not understood, and says so.

use super::device::{Device, Value};
use crate::quantity::Quantity;
use regex::Regex;
use std::cmp::Ordering;

/// An expression that was understood.
#[derive(Debug, Clone)]
pub struct DeviceSelector {
    text: String,
    expr: Expr,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the selector `{text}` is not understood at `{at}`: {why}")]
pub struct UnsupportedExpression {
    text: String,
    at: String,
    why: String,
}

#[derive(Debug, Clone)]
enum Expr {
    Literal(Value),
    List(Vec<Expr>),
    /// A way down from the device, such as `attributes`, domain and name.
    Device(Vec<String>),
    Has(Vec<String>),
    Not(Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Compare(&'static str, Box<Expr>, Box<Expr>),
    Matches(Box<Expr>, Regex),
    Call(Method, Box<Expr>, Box<Expr>),
    LowerCase(Box<Expr>),
}

#[derive(Debug, Clone, Copy)]
enum Method {
    StartsWith,
    EndsWith,
    Contains,
    CompareTo,
    IsGreaterThan,
    IsLessThan,
}

impl DeviceSelector {
    pub fn parse(text: &str) -> Result<DeviceSelector, UnsupportedExpression> {
        let mut parser = Parser { text, rest: text };
        let expr = parser.or()?;
        parser.skip();
        if !parser.rest.is_empty() {
            return Err(parser.wrong("expected && or || or the end"));
        }
        Ok(DeviceSelector { text: text.to_owned(), expr })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a device is meant. One that lacks what is asked about is not.
    pub fn matches(&self, device: &Device) -> bool {
        matches!(eval(&self.expr, device), Some(Value::Bool(true)))
    }
}

fn eval(expr: &Expr, device: &Device) -> Option<Value> {
    let is = |expr: &Expr| match eval(expr, device)? {
        Value::Bool(is) => Some(is),
        _ => None,
    };
    Some(match expr {
        Expr::Literal(value) => value.clone(),
        Expr::List(_) => return None,
        Expr::Device(path) => device.look(path)?,
        Expr::Has(path) => Value::Bool(device.look(path).is_some()),
        Expr::Not(inner) => Value::Bool(!is(inner)?),
        // As in CEL, one side that decides is enough, whatever is wrong with the other.
        Expr::And(left, right) => match (is(left), is(right)) {
            (Some(false), _) | (_, Some(false)) => Value::Bool(false),
            (Some(true), Some(true)) => Value::Bool(true),
            _ => return None,
        },
        Expr::Or(left, right) => match (is(left), is(right)) {
            (Some(true), _) | (_, Some(true)) => Value::Bool(true),
            (Some(false), Some(false)) => Value::Bool(false),
            _ => return None,
        },
        Expr::Compare("in", left, right) => match &**right {
            Expr::List(all) => {
                let value = eval(left, device)?;
                Value::Bool(all.iter().any(|one| eval(one, device).as_ref() == Some(&value)))
            }
            Expr::Device(path) => match eval(left, device)? {
                Value::Text(name) => {
                    let path: Vec<String> = path.iter().cloned().chain([name]).collect();
                    Value::Bool(device.look(&path).is_some())
                }
                _ => return None,
            },
            _ => return None,
        },
        Expr::Compare(how, left, right) => {
            let (left, right) = (eval(left, device)?, eval(right, device)?);
            match *how {
                "==" => Value::Bool(left == right),
                "!=" => Value::Bool(left != right),
                how => {
                    let order = left.order(&right)?;
                    Value::Bool(match how {
                        "<" => order == Ordering::Less,
                        "<=" => order != Ordering::Greater,
                        ">" => order == Ordering::Greater,
                        _ => order != Ordering::Less,
                    })
                }
            }
        }
        Expr::Matches(inner, regex) => match eval(inner, device)? {
            Value::Text(text) => Value::Bool(regex.is_match(&text)),
            _ => return None,
        },
        Expr::LowerCase(inner) => match eval(inner, device)? {
            Value::Text(text) => Value::Text(text.to_ascii_lowercase()),
            _ => return None,
        },
        Expr::Call(method, inner, argument) => {
            call(*method, &eval(inner, device)?, &eval(argument, device)?)?
        }
    })
}

fn call(method: Method, value: &Value, argument: &Value) -> Option<Value> {
    if let (Value::Text(text), Value::Text(part)) = (value, argument) {
        return Some(Value::Bool(match method {
            Method::StartsWith => text.starts_with(part.as_str()),
            Method::EndsWith => text.ends_with(part.as_str()),
            Method::Contains => text.contains(part.as_str()),
            _ => return None,
        }));
    }
    let order = value.order(argument)?;
    Some(match method {
        Method::CompareTo => Value::Int(order as i64),
        Method::IsGreaterThan => Value::Bool(order == Ordering::Greater),
        Method::IsLessThan => Value::Bool(order == Ordering::Less),
        _ => return None,
    })
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
}

type Parsed = Result<Expr, UnsupportedExpression>;

impl<'a> Parser<'a> {
    fn or(&mut self) -> Parsed {
        let mut left = self.and()?;
        while self.eat("||") {
            left = Expr::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Parsed {
        let mut left = self.comparison()?;
        while self.eat("&&") {
            left = Expr::And(Box::new(left), Box::new(self.comparison()?));
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Parsed {
        let left = self.unary()?;
        let ways = ["==", "!=", "<=", ">=", "<", ">"];
        let mut how = ways.into_iter().find(|how| self.eat(how));
        if how.is_none() && self.word() == Some("in") {
            self.eat("in");
            how = Some("in");
        }
        let Some(how) = how else { return Ok(left) };
        Ok(Expr::Compare(how, Box::new(left), Box::new(self.unary()?)))
    }

    fn unary(&mut self) -> Parsed {
        if self.eat("!") {
            return Ok(Expr::Not(Box::new(self.unary()?)));
        }
        self.postfix()
    }

    fn postfix(&mut self) -> Parsed {
        let mut expr = self.atom()?;
        loop {
            if self.eat("[") {
                let Expr::Literal(Value::Text(key)) = self.or()? else {
                    return Err(self.wrong("an index has to be a text"));
                };
                self.expect("]")?;
                expr = self.below(expr, key)?;
            } else if self.eat(".") {
                let name = self.word().ok_or_else(|| self.wrong("expected a name"))?;
                self.rest = &self.rest[name.len()..];
                expr = match self.eat("(") {
                    true => self.method(expr, name)?,
                    false => self.below(expr, name.to_owned())?,
                };
            } else {
                return self.known(expr);
            }
        }
    }

    fn below(&self, expr: Expr, key: String) -> Parsed {
        match expr {
            Expr::Device(mut path) if path.len() < 3 => {
                path.push(key);
                Ok(Expr::Device(path))
            }
            _ => Err(self.wrong("only device.driver, .attributes and .capacity are known")),
        }
    }

    fn known(&self, expr: Expr) -> Parsed {
        let Expr::Device(path) = &expr else { return Ok(expr) };
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        match path[..] {
            ["driver"] | ["attributes" | "capacity", _] | ["attributes" | "capacity", _, _] => {
                Ok(expr)
            }
            _ => Err(self.wrong("only device.driver, .attributes and .capacity are known")),
        }
    }

    fn method(&mut self, expr: Expr, name: &str) -> Parsed {
        let expr = Box::new(self.known(expr)?);
        if name == "lowerAscii" {
            self.expect(")")?;
            return Ok(Expr::LowerCase(expr));
        }
        let argument = self.or()?;
        self.expect(")")?;
        let method = match name {
            "matches" => {
                let Expr::Literal(Value::Text(pattern)) = argument else {
                    return Err(self.wrong("matches takes a text"));
                };
                let regex = Regex::new(&pattern).map_err(|error| self.wrong(&error.to_string()))?;
                return Ok(Expr::Matches(expr, regex));
            }
            "startsWith" => Method::StartsWith,
            "endsWith" => Method::EndsWith,
            "contains" => Method::Contains,
            "compareTo" => Method::CompareTo,
            "isGreaterThan" => Method::IsGreaterThan,
            "isLessThan" => Method::IsLessThan,
            _ => return Err(self.wrong(&format!("there is no method {name} that we know"))),
        };
        Ok(Expr::Call(method, expr, Box::new(argument)))
    }

    fn atom(&mut self) -> Parsed {
        self.skip();
        if self.eat("(") {
            let inner = self.or()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.eat("[") {
            let mut all = Vec::new();
            while !self.eat("]") {
                all.push(self.or()?);
                if !self.eat(",") {
                    self.expect("]")?;
                    break;
                }
            }
            return Ok(Expr::List(all));
        }
        if self.rest.starts_with(['"', '\'']) {
            return Ok(Expr::Literal(Value::Text(self.text()?)));
        }
        if self.rest.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return self.number();
        }
        let word = self.word().ok_or_else(|| self.wrong("expected a value"))?;
        self.rest = &self.rest[word.len()..];
        match word {
            "true" | "false" => Ok(Expr::Literal(Value::Bool(word == "true"))),
            "device" => Ok(Expr::Device(Vec::new())),
            "has" => {
                self.expect("(")?;
                let Expr::Device(path) = self.or()? else {
                    return Err(self.wrong("has() takes an attribute of the device"));
                };
                self.expect(")")?;
                Ok(Expr::Has(path))
            }
            "quantity" | "semver" => {
                self.expect("(")?;
                let text = self.text()?;
                self.expect(")")?;
                let value = match word {
                    "quantity" => text.parse::<Quantity>().ok().map(Value::Quantity),
                    _ => Value::version(&text),
                };
                value
                    .map(Expr::Literal)
                    .ok_or_else(|| self.wrong(&format!("`{text}` is not a {word}")))
            }
            _ => Err(self.wrong(&format!("`{word}` is not known here"))),
        }
    }

    fn number(&mut self) -> Parsed {
        let from = usize::from(self.rest.starts_with('-'));
        let digits = self.rest[from..].bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = self.rest.split_at(from + digits);
        let value = number.parse().map_err(|_| self.wrong("expected a whole number"))?;
        self.rest = rest;
        Ok(Expr::Literal(Value::Int(value)))
    }

    /// A text in quotes, with the usual escapes.
    fn text(&mut self) -> Result<String, UnsupportedExpression> {
        self.skip();
        let mut chars = self.rest.char_indices();
        let quote = match chars.next() {
            Some((_, quote @ ('"' | '\''))) => quote,
            _ => return Err(self.wrong("expected a text in quotes")),
        };
        let mut text = String::new();
        while let Some((at, c)) = chars.next() {
            match c {
                c if c == quote => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(text);
                }
                '\\' => match chars.next() {
                    Some((_, c @ ('\\' | '"' | '\''))) => text.push(c),
                    _ => return Err(self.wrong("an escape that we do not know")),
                },
                c => text.push(c),
            }
        }
        Err(self.wrong("the text does not end"))
    }

    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip();
        // `!` alone is not the beginning of `!=`.
        let is_other = token == "!" && self.rest.starts_with("!=");
        match self.rest.strip_prefix(token).filter(|_| !is_other) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), UnsupportedExpression> {
        match self.eat(token) {
            true => Ok(()),
            false => Err(self.wrong(&format!("expected {token}"))),
        }
    }

    /// The name that comes next.
    fn word(&mut self) -> Option<&'a str> {
        self.skip();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        Some(&self.rest[..end]).filter(|word| !word.is_empty())
    }

    fn wrong(&self, why: &str) -> UnsupportedExpression {
        let at: String = self.rest.chars().take(24).collect();
        UnsupportedExpression { text: self.text.to_owned(), at, why: why.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dra::device::Device;

    fn device() -> Device {
        serde_json::from_str::<crate::dra::device::Written>(
            r#"{"name": "gpu-0",
                "attributes": {"productName": {"string": "NVIDIA H100 80GB HBM3"},
                               "type": {"string": "gpu"}, "minor": {"int": 3},
                               "mig": {"bool": false},
                               "driverVersion": {"version": "580.65.6"},
                               "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"}},
                "capacity": {"memory": {"value": "80Gi"}}}"#,
        )
        .unwrap()
        .device("gpu.nvidia.com", "n1")
    }

    #[test]
    fn what_selectors_usually_say_is_understood() {
        for (text, matches) in [
            (r#"device.driver == "gpu.nvidia.com""#, true),
            (
                r#"device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"#,
                true,
            ),
            (r#"device.attributes["gpu.nvidia.com"].productName.matches("^.*H100.*$")"#, true),
            (
                r#"device.attributes["gpu.nvidia.com"].productName.lowerAscii().contains("a100")"#,
                false,
            ),
            (
                r#"device.attributes["gpu.nvidia.com"].productName in ["NVIDIA A100", "NVIDIA H100 80GB HBM3"]"#,
                true,
            ),
            (r#"device.attributes["resource.kubernetes.io"].pcieRoot.startsWith("pci0000")"#, true),
            (
                r#"device.attributes["gpu.nvidia.com"].minor < 4 && !device.attributes["gpu.nvidia.com"].mig"#,
                true,
            ),
            (r#"device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0"#, true),
            (r#"device.capacity["gpu.nvidia.com"].memory.isGreaterThan(quantity("80Gi"))"#, false),
            (
                r#"device.attributes["gpu.nvidia.com"].driverVersion.compareTo(semver("580.10.0")) > 0"#,
                true,
            ),
            (r#"has(device.attributes["gpu.nvidia.com"].colour)"#, false),
            (r#""minor" in device.attributes["gpu.nvidia.com"]"#, true),
            // What is not there matches nothing, and spoils no alternative.
            (r#"device.attributes["gpu.nvidia.com"].colour == "red""#, false),
            (r#"device.attributes["gpu.nvidia.com"].colour != "red""#, false),
            (r#"device.attributes["other.com"].x == 1 || (device.driver != "x")"#, true),
        ] {
            let selector = DeviceSelector::parse(text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(selector.matches(&device()), matches, "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_says_where() {
        for text in [
            "device.allowMultipleAllocations == true",
            r#"device.attributes["a"].b.c == 1"#,
            r#"device.attributes["a"].exists(x, x == 1)"#,
            "size(device.driver) > 2",
            r#"device.driver == "open"#,
            "device.driver ==",
            r#"device.attributes["gpu.nvidia.com"].productName.matches("(")"#,
            "device.driver == 'a' ? true : false",
            "",
        ] {
            let error = DeviceSelector::parse(text).err().unwrap_or_else(|| panic!("{text}"));
            assert!(error.to_string().contains("not understood"), "{error}");
        }
    }
}
