//! Objects in binary, for tests.

/// Seven bits at a time.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

pub fn number(field: u32, value: i64) -> Vec<u8> {
    [varint(u64::from(field) << 3), varint(value.cast_unsigned())].concat()
}

pub fn bytes(field: u32, value: impl AsRef<[u8]>) -> Vec<u8> {
    let value = value.as_ref();
    [&varint(u64::from(field) << 3 | 2), &varint(value.len() as u64), value].concat()
}

pub fn entry(field: u32, key: &str, value: impl AsRef<[u8]>) -> Vec<u8> {
    bytes(field, [bytes(1, key), bytes(2, value)].concat())
}

/// With what the API server wraps around it.
pub fn wrapped(object: &[u8]) -> Vec<u8> {
    let kind = bytes(1, [bytes(1, "v1"), bytes(2, "Kind")].concat());
    [b"k8s\0".to_vec(), kind, bytes(2, object), bytes(3, ""), bytes(4, "")].concat()
}
