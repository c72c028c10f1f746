//! `--budget 2usd` or `--budget 500ktok`: what one run may use up.

use crate::agent::budget::BudgetLimits;
use acheron_base::{Error, Result, quoted};

/// Parses an amount of money or of tokens.
pub fn parse(text: &str) -> Result<BudgetLimits> {
    let refused = || {
        Error::invalid(format!(
            "{} is not a budget: write `2usd`, `0.50usd`, `500ktok`, `2mtok` or `40000tok`",
            quoted(text)
        ))
    };
    let lower = text.trim().to_ascii_lowercase();
    let split = lower.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(refused)?;
    let (number, unit) = lower.split_at(split);
    let number: f64 = number.parse().map_err(|_| refused())?;
    let tokens = |factor: f64| {
        let all = (number * factor).round();
        // Beyond this an f64 does not count by ones.
        (1.0..=9e15).contains(&all).then_some(all as u64)
    };
    let tokens = match unit.trim() {
        "usd" if number > 0.0 => return Ok(BudgetLimits { money: Some(number), ..BudgetLimits::default() }),
        "tok" | "tokens" => tokens(1.0),
        "ktok" => tokens(1e3),
        "mtok" => tokens(1e6),
        _ => None,
    };
    Ok(BudgetLimits { tokens: Some(tokens.ok_or_else(refused)?), ..BudgetLimits::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_money_or_tokens() {
        let money = |amount| BudgetLimits { money: Some(amount), ..BudgetLimits::default() };
        let tokens = |amount| BudgetLimits { tokens: Some(amount), ..BudgetLimits::default() };
        for (text, expected) in [
            ("2usd", money(2.0)),
            ("0.5 USD", money(0.5)),
            ("500ktok", tokens(500_000)),
            ("1.5mtok", tokens(1_500_000)),
            ("40000tok", tokens(40_000)),
        ] {
            assert_eq!(parse(text).unwrap(), expected, "{text}");
        }
        for text in ["", "2", "usd", "0usd", "-1usd", "2eur", "1.2.3usd", "0tok", "9999999999999999999mtok", "1e3tok"] {
            let refused = parse(text).unwrap_err().message;
            assert!(refused.contains("write `2usd`"), "{text}: {refused}");
        }
    }
}
