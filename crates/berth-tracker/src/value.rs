//! Values of metrics. Berth stores them as integers with the same order, so that both databases store
//! and compare every value alike, including NaN.

/// The encoding of NaN: above every number.
pub const NAN: i64 = i64::MAX;

/// Encodes a value. Like MLflow, it turns infinities into the largest numbers.
pub fn encode(value: f64) -> i64 {
    if value.is_nan() {
        return NAN;
    }
    // Adding zero turns negative zero into zero, because the two are equal.
    let bits = (value.clamp(f64::MIN, f64::MAX) + 0.0).to_bits().cast_signed();
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

pub fn decode(kept: i64) -> f64 {
    if kept == NAN {
        return f64::NAN;
    }
    let bits = if kept < 0 { kept ^ i64::MAX } else { kept };
    f64::from_bits(bits.cast_unsigned())
}

/// Writes a value as JSON; NaN is a text there.
pub fn write(out: &mut Vec<u8>, kept: i64) {
    let value = decode(kept);
    if value.is_nan() {
        out.extend_from_slice(b"\"NaN\"");
    } else {
        serde_json::to_writer(&mut *out, &value).expect("a number is JSON");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_values_are_in_the_order_of_the_values_and_nan_is_above_them() {
        let values = [f64::MIN, -1e9, -2.5, -1e-300, 0.0, 1e-300, 0.1, 1.0, 2.0, 1e300, f64::MAX];
        let kept: Vec<i64> = values.iter().map(|value| encode(*value)).collect();
        assert!(kept.windows(2).all(|pair| pair[0] < pair[1]), "{kept:?}");
        assert!(kept.iter().all(|kept| *kept < encode(f64::NAN)));
        for (value, kept) in values.iter().zip(kept) {
            assert_eq!(decode(kept).to_bits(), value.to_bits());
        }
    }

    #[test]
    fn infinities_are_the_largest_numbers_and_zeros_are_equal() {
        assert_eq!(encode(f64::INFINITY), encode(f64::MAX));
        assert_eq!(encode(f64::NEG_INFINITY), encode(f64::MIN));
        assert_eq!(encode(-0.0), encode(0.0));
        assert!(decode(encode(f64::NAN)).is_nan());
    }

    #[test]
    fn json_has_numbers_as_numbers_and_nan_as_a_text() {
        let shown = |value: f64| {
            let mut out = Vec::new();
            write(&mut out, encode(value));
            String::from_utf8(out).unwrap()
        };
        assert_eq!(shown(0.1), "0.1");
        assert_eq!(shown(-3.0), "-3.0");
        assert_eq!(shown(f64::NAN), "\"NaN\"");
    }
}
