//! Money as people read it.

use crate::Micros;

impl Micros {
    /// For people: two digits and the currency, `$1,214.50`. Less than a cent says so.
    pub fn money(self) -> String {
        let sign = if self.0 < 0 { "-" } else { "" };
        let size = self.0.unsigned_abs();
        if size > 0 && size < 10_000 {
            return format!("{sign}<$0.01");
        }
        let cents = (size + 5_000) / 10_000;
        let digits = (cents / 100).to_string();
        let mut whole = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                whole.push(',');
            }
            whole.push(digit);
        }
        format!("{sign}${whole}.{:02}", cents % 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_has_two_digits_and_the_currency() {
        let shown = [0, 4_200, 500_000_000, 1_214_500_000, 2_994_999, -1_500_000, i64::MAX];
        let expect =
            ["$0.00", "<$0.01", "$500.00", "$1,214.50", "$2.99", "-$1.50", "$9,223,372,036,854.78"];
        assert_eq!(shown.map(|micros| Micros(micros).money()), expect);
    }
}
