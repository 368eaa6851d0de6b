//! Values on their way between rows and the database. Two types are enough, and both databases
//! mean the same by them: 64-bit integers and text.

use berth_model::{JobId, LeaseId, Micros, Milli, Name, Time};
use sqlx::Row as _;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::{Arguments, error::BoxDynError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Int,
    Text,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    Int(Option<i64>),
    Text(Option<String>),
}

impl Value {
    pub fn null(of: Type) -> Value {
        match of {
            Type::Int => Value::Int(None),
            Type::Text => Value::Text(None),
        }
    }

    /// As text; none for what is not there.
    pub(crate) fn shown(&self) -> Option<String> {
        match self {
            Value::Int(number) => number.map(|number| number.to_string()),
            Value::Text(text) => text.clone(),
        }
    }

    /// PostgreSQL keeps no NUL characters; refusing them everywhere keeps both databases alike.
    pub fn has_nul(&self) -> bool {
        matches!(self, Value::Text(Some(text)) if text.contains('\0'))
    }
}

/// What `$1`, `$2`, … of a statement stand for.
#[derive(Default)]
pub(crate) struct Binds {
    arguments: AnyArguments,
    #[cfg(test)]
    values: Vec<Value>,
}

impl Binds {
    /// Encoding an integer or a text cannot fail in either driver.
    pub fn push(&mut self, value: Value) {
        #[cfg(test)]
        self.values.push(value.clone());
        let added = match value {
            Value::Int(number) => self.arguments.add(number),
            Value::Text(text) => self.arguments.add(text),
        };
        added.expect("integers and texts can always be bound");
    }

    #[cfg(test)]
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    pub fn push_all(&mut self, values: impl IntoIterator<Item = Value>) {
        for value in values {
            self.push(value);
        }
    }

    /// Adds a value and gives its placeholder.
    pub fn mark(&mut self, value: Value) -> String {
        self.push(value);
        format!("${}", self.arguments.len())
    }

    pub fn into_arguments(self) -> AnyArguments {
        self.arguments
    }
}

/// Reads the columns of a row from left to right.
pub struct Reader<'r> {
    row: &'r AnyRow,
    at: usize,
}

impl<'r> Reader<'r> {
    pub fn new(row: &'r AnyRow) -> Reader<'r> {
        Reader { row, at: 0 }
    }

    pub fn int(&mut self) -> Result<Option<i64>, BoxDynError> {
        let value = self.row.try_get::<Option<i64>, _>(self.at)?;
        self.at += 1;
        Ok(value)
    }

    pub fn text(&mut self) -> Result<Option<String>, BoxDynError> {
        let value = self.row.try_get::<Option<String>, _>(self.at)?;
        self.at += 1;
        Ok(value)
    }

    pub fn value(&mut self, of: Type) -> Result<Value, BoxDynError> {
        match of {
            Type::Int => Ok(Value::Int(self.int()?)),
            Type::Text => Ok(Value::Text(self.text()?)),
        }
    }

    fn is_null(&self) -> Result<bool, BoxDynError> {
        use sqlx::ValueRef as _;
        Ok(self.row.try_get_raw(self.at)?.is_null())
    }
}

/// A field of a row: one or more columns.
pub trait Field: Sized {
    const TYPES: &'static [Type];
    fn write(&self, out: &mut Vec<Value>);
    fn read(from: &mut Reader<'_>) -> Result<Self, BoxDynError>;
}

impl Field for i64 {
    const TYPES: &'static [Type] = &[Type::Int];
    fn write(&self, out: &mut Vec<Value>) {
        out.push(Value::Int(Some(*self)));
    }
    fn read(from: &mut Reader<'_>) -> Result<i64, BoxDynError> {
        from.int()?.ok_or_else(|| "a number is missing".into())
    }
}

impl Field for u64 {
    const TYPES: &'static [Type] = &[Type::Int];
    /// Numbers that were stored fit. A number in a query may not: it is capped at one that no row
    /// has, so that no row is found.
    fn write(&self, out: &mut Vec<Value>) {
        out.push(Value::Int(Some(i64::try_from(*self).unwrap_or(i64::MAX))));
    }
    fn read(from: &mut Reader<'_>) -> Result<u64, BoxDynError> {
        Ok(i64::read(from)?.try_into()?)
    }
}

impl Field for u32 {
    const TYPES: &'static [Type] = &[Type::Int];
    fn write(&self, out: &mut Vec<Value>) {
        i64::from(*self).write(out);
    }
    fn read(from: &mut Reader<'_>) -> Result<u32, BoxDynError> {
        Ok(i64::read(from)?.try_into()?)
    }
}

impl Field for i32 {
    const TYPES: &'static [Type] = &[Type::Int];
    fn write(&self, out: &mut Vec<Value>) {
        i64::from(*self).write(out);
    }
    fn read(from: &mut Reader<'_>) -> Result<i32, BoxDynError> {
        Ok(i64::read(from)?.try_into()?)
    }
}

impl Field for bool {
    const TYPES: &'static [Type] = &[Type::Int];
    fn write(&self, out: &mut Vec<Value>) {
        i64::from(*self).write(out);
    }
    fn read(from: &mut Reader<'_>) -> Result<bool, BoxDynError> {
        Ok(i64::read(from)? != 0)
    }
}

impl Field for String {
    const TYPES: &'static [Type] = &[Type::Text];
    fn write(&self, out: &mut Vec<Value>) {
        out.push(Value::Text(Some(self.clone())));
    }
    fn read(from: &mut Reader<'_>) -> Result<String, BoxDynError> {
        from.text()?.ok_or_else(|| "a text is missing".into())
    }
}

impl Field for Name {
    const TYPES: &'static [Type] = &[Type::Text];
    fn write(&self, out: &mut Vec<Value>) {
        out.push(Value::Text(Some(self.to_string())));
    }
    fn read(from: &mut Reader<'_>) -> Result<Name, BoxDynError> {
        String::read(from).map(Name::from)
    }
}

/// Bytes are kept as hexadecimal text, the one form that both databases and a backup share.
impl Field for Vec<u8> {
    const TYPES: &'static [Type] = &[Type::Text];
    fn write(&self, out: &mut Vec<Value>) {
        hex::encode(self).write(out);
    }
    fn read(from: &mut Reader<'_>) -> Result<Vec<u8>, BoxDynError> {
        hex::decode(String::read(from)?).map_err(|_| "not hexadecimal".into())
    }
}

macro_rules! integer_field {
    ($($name:ident),*) => {$(
        impl Field for $name {
            const TYPES: &'static [Type] = &[Type::Int];
            fn write(&self, out: &mut Vec<Value>) {
                self.0.write(out);
            }
            fn read(from: &mut Reader<'_>) -> Result<$name, BoxDynError> {
                i64::read(from).map($name)
            }
        }
    )*};
}

integer_field!(Time, Micros, Milli);

/// What stands for "no element" in a key, where NULL would not be equal to itself.
pub(crate) const NO_ELEMENT: i64 = -1;

impl Field for JobId {
    const TYPES: &'static [Type] = &[Type::Int, Type::Int];
    fn write(&self, out: &mut Vec<Value>) {
        self.number.write(out);
        self.element.map_or(NO_ELEMENT, i64::from).write(out);
    }
    fn read(from: &mut Reader<'_>) -> Result<JobId, BoxDynError> {
        let number = u64::read(from)?;
        let element = match i64::read(from)? {
            NO_ELEMENT => None,
            element => Some(element.try_into()?),
        };
        Ok(JobId { number, element })
    }
}

impl Field for LeaseId {
    const TYPES: &'static [Type] = &[Type::Int, Type::Int, Type::Int, Type::Int];
    fn write(&self, out: &mut Vec<Value>) {
        self.job.write(out);
        self.task.write(out);
        self.attempt.write(out);
    }
    fn read(from: &mut Reader<'_>) -> Result<LeaseId, BoxDynError> {
        Ok(LeaseId { job: JobId::read(from)?, task: u32::read(from)?, attempt: u32::read(from)? })
    }
}

impl<T: Field> Field for Option<T> {
    const TYPES: &'static [Type] = T::TYPES;
    fn write(&self, out: &mut Vec<Value>) {
        match self {
            Some(field) => field.write(out),
            None => out.extend(T::TYPES.iter().map(|of| Value::null(*of))),
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Option<T>, BoxDynError> {
        if from.is_null()? {
            from.at += T::TYPES.len();
            return Ok(None);
        }
        T::read(from).map(Some)
    }
}

/// Stores an enum by the word that `as_str` gives and `parse` takes.
macro_rules! stored_word {
    ($name:ident) => {
        impl $crate::value::Field for $name {
            const TYPES: &'static [$crate::value::Type] = &[$crate::value::Type::Text];
            fn write(&self, out: &mut Vec<$crate::value::Value>) {
                out.push($crate::value::Value::Text(Some(self.as_str().to_owned())));
            }
            fn read(
                from: &mut $crate::value::Reader<'_>,
            ) -> Result<$name, sqlx::error::BoxDynError> {
                Ok(<String as $crate::value::Field>::read(from)?.parse()?)
            }
        }
    };
}
pub(crate) use stored_word;

/// What a row is found by.
pub trait Key {
    #[doc(hidden)]
    fn values(&self) -> KeyValues;
}

/// The columns of a key, in their order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyValues(pub(crate) Vec<Value>);

impl Key for &str {
    fn values(&self) -> KeyValues {
        KeyValues(vec![Value::Text(Some((*self).to_owned()))])
    }
}

impl Key for (&str, &str) {
    fn values(&self) -> KeyValues {
        KeyValues([self.0, self.1].map(|text| Value::Text(Some(text.to_owned()))).to_vec())
    }
}

impl Key for (&str, &str, &str) {
    fn values(&self) -> KeyValues {
        let texts = [self.0, self.1, self.2];
        KeyValues(texts.map(|text| Value::Text(Some(text.to_owned()))).to_vec())
    }
}

/// A team, a name and its version.
impl Key for (&str, &str, u64) {
    fn values(&self) -> KeyValues {
        let mut values = (self.0, self.1).values().0;
        self.2.write(&mut values);
        KeyValues(values)
    }
}

/// A series of figures, its level and the start of a chunk.
impl Key for (&str, u32, Time) {
    fn values(&self) -> KeyValues {
        let mut values = vec![Value::Text(Some(self.0.to_owned()))];
        self.1.write(&mut values);
        self.2.write(&mut values);
        KeyValues(values)
    }
}

/// A lease, and the start of a row of its energy.
impl Key for (LeaseId, Time) {
    fn values(&self) -> KeyValues {
        let mut values = Vec::new();
        self.0.write(&mut values);
        self.1.write(&mut values);
        KeyValues(values)
    }
}

macro_rules! field_key {
    ($($name:ident),*) => {$(
        impl Key for $name {
            fn values(&self) -> KeyValues {
                let mut values = Vec::new();
                self.write(&mut values);
                KeyValues(values)
            }
        }
    )*};
}

field_key!(u64, JobId, LeaseId);
