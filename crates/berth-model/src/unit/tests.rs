use super::*;

fn round_trip<T: FromStr + fmt::Display>(text: &str) -> String
where
    T::Err: fmt::Debug,
{
    text.parse::<T>().unwrap().to_string()
}

#[test]
fn spans_read_and_write_the_same_text() {
    for text in ["5m", "1h30m", "2d", "90s"] {
        let span: Span = text.parse().unwrap();
        assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
    }
    assert_eq!("90".parse::<Span>().unwrap(), Span::secs(90));
    assert_eq!("1.5h".parse::<Span>().unwrap(), Span::mins(90));
    assert!("5 parsecs".parse::<Span>().is_err());
    assert!("".parse::<Span>().is_err());
}

#[test]
fn moments_read_and_write_rfc_3339() {
    assert_eq!(round_trip::<Time>("2026-11-15T09:00:00Z"), "2026-11-15T09:00:00Z");
    assert_eq!(round_trip::<Time>("2026-11-15T10:00:00+01:00"), "2026-11-15T09:00:00Z");
    assert_eq!(round_trip::<Time>("2024-02-29T23:59:59.25Z"), "2024-02-29T23:59:59.250Z");
    assert_eq!("1970-01-01T00:00:00Z".parse::<Time>().unwrap(), Time(0));
    assert_eq!(Time::MAX.to_string().parse::<Time>().unwrap(), Time::MAX);
    for bad in [
        "2026-13-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "yesterday",
        "2026-11-15T25:00:00Z",
        "26-11-15T09:00:00Z",
        "99999999999999999-11-15",
        "2026-11-15T09:00:00+99:00",
        "2026-11-15T09:00:00Z01:00",
        "2026-11-15T09:00:00+999999999999999999:00",
    ] {
        assert!(bad.parse::<Time>().is_err(), "{bad}");
    }
}

#[test]
fn memory_tells_decimal_from_binary_units() {
    assert_eq!("40GB".parse::<Bytes>().unwrap(), Bytes::gb(40));
    assert_eq!("2TiB".parse::<Bytes>().unwrap(), Bytes::gib(2048));
    for text in ["512GiB", "40GB", "0B", "1TiB", "1500MB", "-3GB", "7B"] {
        assert_eq!(round_trip::<Bytes>(text), text);
    }
    assert!("12 parrots".parse::<Bytes>().is_err());
}

#[test]
fn money_and_shares_are_exact() {
    assert_eq!("12.25".parse::<Micros>().unwrap(), Micros(12_250_000));
    assert_eq!("0.0000004".parse::<Micros>().unwrap(), Micros(0));
    assert_eq!("2.5e1".parse::<Micros>().unwrap(), Micros(25_000_000));
    assert_eq!(round_trip::<Milli>("0.5"), "0.5");
    assert_eq!(round_trip::<Cpu>("500m"), "0.5");
    assert_eq!("99999999999999999999".parse::<Micros>().ok(), None);
    assert_eq!("1.5e-2147483648".parse::<Micros>().ok(), None);
    assert_eq!("1e2147483647".parse::<Micros>().ok(), None);
}
