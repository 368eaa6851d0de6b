//! Runs and points come back whole, however many there are and whatever their texts contain.

use crate::place::{Place, experiment, log, metric, on_both, pair, read, run};
use berth_tracker::{HistoryQuery, Metric, NewerQuery, Point, Store, value};

on_both!(
    texts_come_back_as_they_were_logged,
    a_run_with_much_comes_whole_between_small_ones,
    a_long_history_has_each_point_once_and_in_order,
);

async fn texts_come_back_as_they_were_logged(place: Place) {
    let store = place.open().await;
    let no = experiment(&store, "vision", "one").await;
    let run = run(&store, no, "r1", 1).await;
    let texts = [
        "",
        "plain",
        "\"quoted\" and 'quoted'",
        "back\\slash \\u0041 \\n",
        "lines\nand\ttabs\r\u{1}\u{1f}\u{7f}",
        "[1, {\"not\": \"read\"}]",
        "null",
        "1e400",
        "größer \u{2028} 模型 🚀",
    ];
    let pairs: Vec<_> =
        texts.iter().enumerate().map(|(at, text)| pair(&format!("{at} {text}"), text)).collect();
    let metrics = texts.iter().map(|text| metric(text, 1, 0.5)).collect();
    log(&store, &run, metrics, pairs.clone(), pairs.clone()).await.unwrap();
    let there = read(&store, &run).await;
    assert_eq!(there.params, pairs);
    // The tag of the name comes after the digits.
    assert_eq!(there.tags[..texts.len()], pairs);
    let mut keys: Vec<&str> = there.metrics.iter().map(|one| &*one.key).collect();
    keys.sort_unstable();
    let mut expected = texts.to_vec();
    expected.sort_unstable();
    assert_eq!(keys, expected);
    store.close().await;
}

async fn a_run_with_much_comes_whole_between_small_ones(place: Place) {
    let store = place.open().await;
    let no = experiment(&store, "vision", "one").await;
    let mut runs = Vec::new();
    for start in 0..5 {
        let run = run(&store, no, &format!("r{start}"), start).await;
        // The third has 3 MB, the fourth 800 kB.
        let many = [1, 1, 400, 100, 1][start as usize];
        let long = |kind: &str| -> Vec<_> {
            let text = |at: usize| "é".repeat(2_000 + at % 3);
            (0..many).map(|at| pair(&format!("{kind} {at:03}"), &text(at))).collect()
        };
        let metrics: Vec<Metric> =
            (0..many).map(|at| metric(&format!("m{at:03}"), start, at as f64)).collect();
        log(&store, &run, metrics, long("param"), long("tag")).await.unwrap();
        runs.push((run, many, long("param"), long("tag")));
    }
    // In the order in which they are asked for, and without the one that does not exist.
    let order = [3, 0, 2, 4, 1];
    let mut numbers: Vec<i64> = order.iter().map(|at| runs[*at].0.no).collect();
    numbers.insert(2, 1_000_000);
    let found = store.runs(&numbers).await.unwrap();
    let ids: Vec<&str> = found.iter().map(|run| &*run.id).collect();
    assert_eq!(ids, ["r3", "r0", "r2", "r4", "r1"]);
    for (found, at) in found.iter().zip(order) {
        let (run, many, params, tags) = &runs[at];
        assert_eq!(&found.params, params, "{}", run.id);
        assert_eq!(found.tags[0].0, "mlflow.runName");
        assert_eq!(&found.tags[1..], tags, "{}", run.id);
        let metrics: Vec<(String, f64)> = found
            .metrics
            .iter()
            .map(|one| (one.key.to_string(), value::decode(one.point.value)))
            .collect();
        let expected: Vec<_> = (0..*many).map(|at| (format!("m{at:03}"), at as f64)).collect();
        assert_eq!(metrics, expected, "{}", run.id);
        assert_eq!(read(&store, run).await, *found);
    }
    store.close().await;
}

async fn a_long_history_has_each_point_once_and_in_order(place: Place) {
    let store = place.open().await;
    let no = experiment(&store, "vision", "one").await;
    let run = run(&store, no, "r1", 1).await;
    let point = |step, timestamp, number: f64| {
        let point = Point { step, timestamp, value: value::encode(number) };
        Metric { key: "m".into(), point, model: None }
    };
    // 7,000 points, most of them with a step or a time that another point has too.
    let mut metrics: Vec<Metric> = (0..7_000)
        .map(|at| {
            point(at / 3_000 - 1, at / 1_000, [f64::NAN, -1.5, 2.5][at as usize % 3] * at as f64)
        })
        .collect();
    metrics.extend((0..10).map(|at| point(9, 9, [f64::NAN, 0.5][at % 2])));
    let mut expected: Vec<Point> = metrics.iter().map(|metric| metric.point).collect();
    expected.sort_unstable();
    expected.dedup();
    for some in metrics.chunks(1_000) {
        log(&store, &run, some.to_vec(), vec![], vec![]).await.unwrap();
    }
    let history = async |offset: usize, limit| {
        let offset = offset as u64;
        store.history(HistoryQuery { run: &run, key: "m", offset, limit }).await.unwrap()
    };
    let all = expected.len();
    assert!(all > 4_000, "{all}");
    assert_eq!(history(0, 1_000_000).await, expected);
    for (offset, limit) in [(0, 2_000), (1, 2_000), (1_999, 2_001), (all - 1, 10), (all, 10)] {
        let end = all.min(offset + limit);
        assert_eq!(history(offset, limit).await, expected[offset..end], "{offset}, {limit}");
    }
    let last = expected[10];
    let after = Some((last.step, last.timestamp));
    let query = NewerQuery { run: &run, key: "m", after, limit: 1_000_000 };
    let newer: Vec<Point> = expected
        .iter()
        .filter(|one| (one.step, one.timestamp) > (last.step, last.timestamp))
        .copied()
        .collect();
    assert!(newer.len() > 2_000 && newer.len() < all - 10, "{}", newer.len());
    assert_eq!(store.newer(query).await.unwrap(), newer);
    store.close().await;
}
