use super::*;

fn spent(rounds: u64, tokens: u64, ms: u64, money: f64) -> Spent {
    Spent { rounds, usage: Usage::new(tokens, 0), ms, money }
}

#[test]
fn the_worst_limit_counts() {
    let limits = BudgetLimits { rounds: Some(10), tokens: Some(1000), seconds: Some(60), money: Some(2.0) };
    for (used, wanted) in [
        (spent(7, 700, 47_000, 1.5), Standing::Fine),
        (spent(8, 0, 0, 0.0), Standing::Soft("rounds")),
        (spent(10, 0, 0, 0.0), Standing::Over("rounds")),
        (spent(8, 1000, 0, 0.0), Standing::Over("tokens")),
        (spent(0, 0, 48_000, 0.0), Standing::Soft("seconds")),
        (spent(0, 0, 60_000, 0.0), Standing::Over("seconds")),
        (spent(0, 0, 0, 2.0), Standing::Over("money")),
    ] {
        assert_eq!(standing(&limits, &used), wanted, "{used:?}");
    }
    assert_eq!(standing(&BudgetLimits::default(), &spent(9, 9, 9, 9.0)), Standing::Fine);
}

#[test]
fn money_needs_prices() {
    let limits = BudgetLimits { money: Some(1.0), ..BudgetLimits::default() };
    let prices = Prices { input_per_mtok: 1.0, output_per_mtok: 0.0, ..Prices::default() };
    assert!(limits.check(None).is_err());
    assert!(limits.check(Some(&Prices::default())).is_err());
    assert!(limits.check(Some(&prices)).is_ok());
    assert!(BudgetLimits::default().check(None).is_ok());
}

#[test]
fn what_an_agent_has_left_bounds_its_turn() {
    let turn = BudgetLimits { rounds: Some(32), money: None, ..BudgetLimits::default() };
    let agent = BudgetLimits { rounds: Some(100), money: Some(5.0), ..BudgetLimits::default() };
    let bound = turn.and(&agent.less(&spent(90, 0, 0, 4.0)));
    assert_eq!((bound.rounds, bound.money), (Some(10), Some(1.0)));
}
