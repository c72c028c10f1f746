use super::*;
use crate::state::TestStore;

fn open(store: &TestStore) -> Ledger {
    Ledger::open((*store).clone(), Clock::at(1000)).unwrap()
}

fn terms(limits: BudgetLimits, parent: Option<&str>) -> AccountTerms {
    AccountTerms { limits, parent: parent.map(str::to_owned), raise: "raise it".to_owned(), listener: None }
}

fn account(ledger: &Ledger, payer: &str, limits: BudgetLimits, parent: Option<&str>) {
    ledger.account(payer, terms(limits, parent), || Ok(Spent::default())).unwrap();
}

fn cost(input: u64, output: u32) -> RequestCost {
    let prices = Prices { input_per_mtok: 1e6, output_per_mtok: 2e6, ..Prices::default() };
    RequestCost { input, output, least_output: 10, prices, outlives_crash: true }
}

fn spend(ledger: &Ledger, payer: &str, input: u64, output: u64) -> Result<()> {
    let mut reservation = ledger.reserve(payer, &cost(input, 100))?;
    reservation.note(1, Usage::new(input, output), (input + 2 * output) as f64);
    reservation.settle(5, |_| Ok(())).wait()
}

#[test]
fn what_is_reserved_cannot_be_reserved_again_and_what_is_not_used_comes_back() {
    let store = TestStore::new();
    let ledger = open(&store);
    account(&ledger, "ada", BudgetLimits { rounds: Some(2), tokens: Some(500), ..BudgetLimits::default() }, None);
    let first = ledger.reserve("ada", &cost(100, 100)).unwrap();
    let second = ledger.reserve("ada", &cost(250, 100)).unwrap();
    assert_eq!((first.output(), second.output()), (100, 50), "an answer is as long as what is left pays for");
    let third = ledger.reserve("ada", &cost(1, 1)).err().unwrap();
    let said = "ada has used up its rounds, of which a part is reserved for requests under way; raise it";
    assert_eq!((third.code, third.message.as_str()), (acheron_base::Code::BudgetExceeded, said));
    assert_eq!(ledger.left("ada").tokens, Some(0));
    first.settle(0, |_| Ok(())).wait().unwrap();
    drop(second);
    assert_eq!((ledger.left("ada").tokens, ledger.left("ada").rounds), (Some(500), Some(2)), "neither noted a cost");
    spend(&ledger, "ada", 400, 80).unwrap();
    assert!(ledger.reserve("ada", &cost(11, 10)).err().unwrap().message.starts_with("ada has used up its tokens"));
}

#[test]
fn money_bounds_an_answer_and_a_parent_pays_for_its_helper() {
    let store = TestStore::new();
    let ledger = open(&store);
    account(&ledger, "ada", BudgetLimits { money: Some(200.0), ..BudgetLimits::default() }, None);
    account(&ledger, "ada-scout", BudgetLimits::default(), Some("ada"));
    assert_eq!(ledger.reserve("ada-scout", &cost(100, 100)).unwrap().output(), 50);
    spend(&ledger, "ada-scout", 100, 20).unwrap();
    assert_eq!((ledger.spent("ada").money, ledger.spent("ada-scout").money), (140.0, 140.0));
    assert!(ledger.reserve("ada-scout", &cost(61, 10)).err().unwrap().message.starts_with("ada has used up its money"));
    ledger.change("ada", |terms| terms.limits.money = Some(1000.0));
    assert_eq!(ledger.reserve("ada-scout", &cost(61, 100)).unwrap().output(), 100);
}

#[test]
fn what_was_spent_outlives_the_host_and_a_request_under_way_is_charged_for_what_was_sent() {
    let store = TestStore::new();
    let ledger = open(&store);
    account(&ledger, "ada", BudgetLimits::default(), None);
    spend(&ledger, "ada", 10, 5).unwrap();
    std::mem::forget(ledger.reserve("ada", &cost(30, 100)).unwrap()); // the host is killed here
    ledger.charge("ada", &Spent { ms: 7, ..Spent::default() }, |_| Ok(())).wait().unwrap();
    let store = store.again();
    let ledger = open(&store);
    let before = || panic!("it is known");
    ledger.account("ada", AccountTerms::default(), before).unwrap();
    let usage = Usage::new(40, 5);
    assert_eq!(ledger.spent("ada"), Spent { rounds: 2, usage, ms: 12, money: 50.0 });
    assert_eq!(ledger.left("ada"), BudgetLimits::default());
}

#[test]
fn a_settlement_and_what_it_is_written_with_are_one_commit() {
    let store = TestStore::new();
    let ledger = open(&store);
    account(&ledger, "ada", BudgetLimits::default(), None);
    let mut reservation = ledger.reserve("ada", &cost(1, 100)).unwrap();
    reservation.note(1, Usage::new(1, 1), 0.0);
    let failed = reservation.settle(0, |_| Err(Error::no_space("full"))).wait();
    assert_eq!(failed.err().unwrap().message, "full");
    let row = store.look(|conn| spending::of(conn, "ada")).unwrap();
    assert_eq!(row.map_or(0, |row| row.rounds), 0, "neither is there");
}

#[test]
fn the_seconds_that_are_left_are_shared_by_the_requests_under_way() {
    let store = TestStore::new();
    let clock = Clock::at(1000);
    let ledger = Ledger::open(store.clone(), clock.clone()).unwrap();
    account(&ledger, "ada", BudgetLimits { seconds: Some(10), ..BudgetLimits::default() }, None);
    assert_eq!(ledger.ms_left("ada"), Some(10_000));
    let _both = [ledger.reserve("ada", &cost(1, 1)).unwrap(), ledger.reserve("ada", &cost(1, 1)).unwrap()];
    assert_eq!(ledger.ms_left("ada"), Some(5_000));
    clock.advance(4_000);
    assert_eq!(ledger.ms_left("ada"), Some(1_000));
    clock.advance(1_000);
    assert_eq!(ledger.ms_left("ada"), Some(0));
}

#[tokio::test]
async fn a_limit_is_told_once_when_four_fifths_are_passed_and_again_after_it_was_raised() {
    let store = TestStore::new();
    let ledger = open(&store);
    let told = Arc::new(Mutex::new(Vec::new()));
    let rounds = |limit| BudgetLimits { rounds: Some(limit), ..BudgetLimits::default() };
    for (payer, parent, limit) in [("parent", None, 8), ("helper", Some("parent"), 5)] {
        let heard = told.clone();
        let listener: LimitListener = Arc::new(move |passed: &PassedLimit| {
            heard.lock().push(format!("{payer}: {} at {}", passed.what, passed.spent.rounds));
        });
        let terms = AccountTerms { listener: Some(listener), ..terms(rounds(limit), parent) };
        ledger.account(payer, terms, || Ok(Spent::default())).unwrap();
    }
    let round = |ledger: &Ledger| {
        let mut held = ledger.reserve("helper", &RequestCost::default()).unwrap();
        held.note(1, Usage::default(), 0.0);
        held.settle(0, |_| Ok(()))
    };
    for _ in 0..3 {
        round(&ledger).await.unwrap();
    }
    assert!(told.lock().is_empty());
    round(&ledger).await.unwrap();
    assert_eq!(*told.lock(), ["helper: rounds at 4"]);
    ledger.change("helper", |terms| terms.limits = rounds(10));
    // A request that is dropped, and time without a request, count as well.
    for _ in 0..3 {
        drop(round(&ledger));
    }
    assert_eq!(*told.lock(), ["helper: rounds at 4", "parent: rounds at 7"]);
    ledger.charge("helper", &Spent { rounds: 1, ..Spent::default() }, |_| Ok(())).await.unwrap();
    assert_eq!(told.lock().last().unwrap(), "helper: rounds at 8");
}
