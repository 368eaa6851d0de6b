use super::*;

fn lease(job: u64) -> LeaseId {
    LeaseId { job: JobId::new(job), task: 0, attempt: 0 }
}

fn time(text: &str) -> Time {
    Time(text.parse::<Span>().unwrap().0)
}

fn money(text: &str) -> Micros {
    text.parse().unwrap()
}

/// Plays a script, a line per event, and compares the rows with those of `expect`:
/// `lease from-to kind amount`, idle rows with `-` for the lease.
fn check(script: &str, expect: &str) {
    let mut ledger = Ledger::new();
    let mut rows = Vec::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        rows.extend(play(&mut ledger, &line.split_whitespace().collect::<Vec<_>>()));
    }
    let found: Vec<String> = rows.iter().map(show).collect();
    let expect: Vec<&str> = expect.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(found, expect);
}

fn play(ledger: &mut Ledger, words: &[&str]) -> Vec<CostRow> {
    let at = time(words[0]);
    let node = Name::new("n");
    let id = || lease(words[2].parse().unwrap());
    match words[1] {
        "join" => ledger.node_joined(at, &node, money(words[2])),
        "reprice" => ledger.node_repriced(at, &node, money(words[2])),
        "leave" => ledger.node_left(at, &node),
        "open" => {
            let keys = Keys {
                queue: Name::new("q"),
                project: Name::new("p"),
                experiment: Name::new("e"),
                user: Name::new("u"),
            };
            ledger.lease_opened(at, id(), keys, &node, Milli::ONE, money(words[3]));
            Vec::new()
        }
        "bind" => ledger.lease_bound(at, id()),
        "stop" => ledger.lease_stopping(at, id()),
        "price" => ledger.lease_repriced(at, id(), money(words[3])),
        "close" => ledger.lease_closed(at, id(), None).rows,
        "tick" => {
            let useless = words.get(2).map_or(Micros::ZERO, |text| money(text));
            ledger.tick(at, &|_| useless)
        }
        "due" => {
            let useless = words.get(2).map_or(Micros::ZERO, |text| money(text));
            let owing = words.get(3).map(|queue| Name::new(queue)).into_iter().collect();
            ledger.bill_due(at, &|_| useless, &owing)
        }
        other => panic!("no such event: {other}"),
    }
}

fn show(row: &CostRow) -> String {
    let lease = row.lease.map_or("-".to_owned(), |lease| lease.job.to_string());
    let (from, to) = (Span(row.from.0), Span(row.to.0));
    format!("{lease} {from}-{to} {:?} {}", row.kind, row.amount)
}

#[test]
fn a_machine_nobody_holds_is_idle_for_its_whole_price() {
    check("0s join 2\n 30m tick\n 1h leave", "- 0s-30m Unallocated 1\n - 30m-1h Unallocated 1");
}

#[test]
fn a_lease_is_held_until_it_is_bound_and_used_from_then_on() {
    check(
        "0s join 2
         0s open 1 1
         6m bind 1
         1h tick",
        "1 0s-6m Held 0.1
         - 0s-1h Unallocated 1
         1 6m-1h Used 0.9",
    );
}

#[test]
fn the_grace_of_a_stopped_lease_is_on_a_row_of_its_own() {
    check(
        "0s join 1
         0s open 1 1
         0s bind 1
         1h stop 1
         66m close 1",
        "1 0s-1h Used 1
         1 1h-1h6m Used 0.1",
    );
}

#[test]
fn what_runs_on_gets_a_row_for_each_full_hour_and_none_in_between() {
    check(
        "0s join 4
         10m open 1 1
         10m bind 1
         11m due
         59m due
         61m due
         62m due
         119m due
         125m due",
        "- 0s-1h Unallocated 3.166667
         1 10m-1h Used 0.833333
         - 1h-2h Unallocated 3
         1 1h-2h Used 1",
    );
}

#[test]
fn a_queue_whose_budget_has_to_know_is_billed_at_once_and_the_others_are_not() {
    check(
        "0s join 4
         0s open 1 1
         30m due 0 other
         30m due 0 q
         1h due",
        "1 0s-30m Held 0.5
         - 0s-1h Unallocated 3
         1 30m-1h Held 0.5",
    );
}

#[test]
fn a_machine_whose_idle_part_becomes_useless_gets_a_row_then() {
    check(
        "0s join 4
         30m due 1
         45m due 1
         1h due 1",
        "- 0s-30m Unallocated 2
         - 30m-1h Fragmented 0.5
         - 30m-1h Unallocated 1.5",
    );
}

#[test]
fn closing_a_lease_settles_what_was_idle_beside_it() {
    check(
        "0s join 4
         0s open 1 1
         0s open 2 1
         1h close 1
         2h tick",
        "- 0s-1h Unallocated 2
         1 0s-1h Held 1
         - 1h-2h Unallocated 3
         2 0s-2h Held 2",
    );
}

#[test]
fn a_closed_lease_closes_only_once_and_unknown_ones_cost_nothing() {
    check(
        "0s join 1
         0s open 1 1
         1h close 1
         2h close 1
         2h bind 7
         2h stop 7",
        "1 0s-1h Held 1",
    );
}

#[test]
fn a_node_that_leaves_ends_the_bills_of_its_leases() {
    check("0s join 1\n 0s open 1 1\n 1h leave\n 2h close 1\n 3h tick", "1 0s-1h Held 1");
}

#[test]
fn a_new_price_counts_from_its_moment_on() {
    check(
        "0s join 2
         1h reprice 4
         1h reprice 4
         90m tick",
        "- 0s-1h Unallocated 2
         - 1h-1h30m Unallocated 2",
    );
}

#[test]
fn leases_priced_above_their_node_show_as_a_negative_shared_row() {
    check(
        "0s join 2
         0s open 1 2
         1h reprice 1
         2h price 1 1
         3h tick",
        "- 1h-2h Shared -1
         1 0s-2h Held 4
         1 2h-3h Held 1",
    );
}

#[test]
fn rounding_is_shared_and_never_negative_idle() {
    // The lease began half a unit later than the node, so its unit falls due at another time.
    check(
        "0s join 0.000002
         15m open 1 0.000002
         30m tick
         45m tick
         1h tick",
        "- 0s-30m Unallocated 0.000001
         1 15m-30m Held 0
         - 30m-45m Shared -0.000001
         1 30m-45m Held 0.000001
         - 45m-1h Shared 0.000001
         1 45m-1h Held 0",
    );
}

#[test]
fn idle_that_suits_no_request_is_fragmented_up_to_what_is_idle() {
    check(
        "0s join 4
         0s open 1 3
         1h tick 0.25
         2h tick 9",
        "- 0s-1h Fragmented 0.25
         - 0s-1h Unallocated 0.75
         1 0s-1h Held 3
         - 1h-2h Fragmented 1
         1 1h-2h Held 3",
    );
}

#[test]
fn an_event_stamped_in_the_past_counts_as_now() {
    check(
        "1h join 1\n 2h tick\n 1h open 1 1\n 90m tick\n 3h close 1",
        "- 1h-2h Unallocated 1\n 1 2h-3h Held 1",
    );
}

#[test]
fn lost_work_is_told_beside_the_rows_and_not_in_them() {
    let mut ledger = Ledger::new();
    for line in ["0s join 2", "0s open 1 2", "0s bind 1"] {
        play(&mut ledger, &line.split(' ').collect::<Vec<_>>());
    }
    let closed = ledger.lease_closed(time("1h"), lease(1), Some(Span::mins(15)));
    let loss =
        Loss { job: JobId::new(1), span: Span::mins(15), gpus: Milli::ONE, amount: money("0.5") };
    assert_eq!(closed.loss, Some(loss));
    assert_eq!(closed.rows.iter().map(|row| row.amount).sum::<Micros>(), money("2"));
}

#[test]
fn a_job_that_changes_queue_is_charged_to_the_new_one_from_then_on() {
    let mut ledger = Ledger::new();
    for line in ["0s join 2", "0s open 1 1", "0s open 2 1"] {
        play(&mut ledger, &line.split(' ').collect::<Vec<_>>());
    }
    let mut rows = ledger.queue_changed(time("1h"), JobId::new(1), &Name::new("other"));
    assert_eq!(ledger.unbilled(time("90m"), lease(1)), money("0.5"));
    rows.extend(ledger.tick(time("2h"), &|_| Micros::ZERO));
    let charged: Vec<String> =
        rows.iter().map(|row| format!("{} {}", show(row), row.queue.as_deref().unwrap())).collect();
    assert_eq!(charged, ["1 0s-1h Held 1 q", "1 1h-2h Held 1 other", "2 0s-2h Held 2 q"]);
}

#[test]
#[should_panic(expected = "a node that has an account")]
fn a_lease_on_a_machine_without_an_account_is_a_bug() {
    play(&mut Ledger::new(), &["0s", "open", "1", "1"]);
}

#[test]
fn a_price_that_is_set_to_what_it_was_changes_no_bill() {
    // A restart after trouble adds the node again, which reprices its leases at the same price.
    let (node, price, end) = (Name::new("n"), Micros(2_500_000), Time(998));
    let keys = Keys {
        queue: Name::new("q"),
        project: Name::new("p"),
        experiment: Name::new("e"),
        user: Name::new("u"),
    };
    for cut in [1, 7, 400, 401, 997] {
        let mut ledger = Ledger::new();
        ledger.node_joined(Time(0), &node, Micros::dollars(20));
        ledger.lease_opened(Time(0), lease(1), keys.clone(), &node, Milli::ONE, price);
        let mut rows = ledger.lease_repriced(Time(cut), lease(1), price);
        rows.extend(ledger.lease_closed(end, lease(1), None).rows);
        let of_lease = rows.iter().filter(|row| row.lease.is_some());
        let paid: i64 = of_lease.map(|row| row.amount.0).sum();
        assert_eq!(paid, cumulative(price, Span(998)).0, "cut at {cut} ms");
    }
}
