use super::*;

/// Formats the parsed filter, or the error.
fn shown(entity: Entity, text: &str) -> String {
    match filter(entity, text) {
        Ok(clauses) => {
            let one = |clause: &Clause| {
                let Clause { field, op, value } = clause;
                let value = match value {
                    Value::Number(number) => format!(" {number}"),
                    Value::Text(text) => format!(" '{text}'"),
                    Value::List(list) => format!(" {list:?}"),
                    Value::Nothing => String::new(),
                };
                format!("{:?}:{} {}{value}", field.kind, field.key, op.word())
            };
            clauses.iter().map(one).collect::<Vec<_>>().join(" & ")
        }
        Err(error) => error.message,
    }
}

#[track_caller]
fn reads(text: &str, expected: &str) {
    assert_eq!(shown(Entity::Run, text), expected, "{text}");
}

#[track_caller]
fn refused(entity: Entity, text: &str, says: &str) {
    let said = shown(entity, text);
    assert!(said.contains(says), "{text}: {said}");
}

#[test]
fn every_kind_of_comparison_is_read() {
    reads("", "");
    reads("metrics.acc > 0.5", "Metric:acc > 0.5");
    reads("metric.`val loss` <= -1e-3", "Metric:val loss <= -0.001");
    reads("metrics.\"a/b\"!=1", "Metric:a/b != 1");
    reads("params.lr = '0.1' and tags.team LIKE 'v%'", "Param:lr = '0.1' & Tag:team LIKE 'v%'");
    reads("parameter.lr iLiKe \"X\"", "Param:lr ILIKE 'X'");
    reads("tags.x IS NULL AND params.y is not null", "Tag:x IS NULL & Param:y IS NOT NULL");
    reads("run_id IN ('a', \"b\")", "Text:run_id IN [\"a\", \"b\"]");
    reads("attributes.run_id not in ('a',)", "Text:run_id NOT IN [\"a\"]");
    reads("attributes.`run name` = 'x'", "Text:run_name = 'x'");
    reads("status != 'FAILED'", "Text:status != 'FAILED'");
    reads("created >= 1700000000000", "Number:start_time >= 1700000000000");
    reads("datasets.digest IN ('d')", "Dataset:digest IN [\"d\"]");
    reads("metrics.berth.cost_usd < 50", "Metric:berth.cost_usd < 50");
    reads("metrics.a = +.5;", "Metric:a = 0.5");
    reads("tags.`mlflow.parentRunId` = 'r'", "Tag:mlflow.parentRunId = 'r'");
}

#[test]
fn an_error_says_where_it_is_and_what_was_expected() {
    let run = Entity::Run;
    refused(
        run,
        "metrics.acc >> 1",
        "numeric value type for metric: acc. Found '>' (at character 14",
    );
    refused(run, "metrics.acc ! 1", "expected a comparison: =, !=, <");
    refused(run, "metrics.acc ! 1", "at character 13, found '!'");
    refused(run, "metrics.acc > 1 OR metrics.b > 2", "expected AND or the end");
    refused(run, "metrics.acc > 1 OR metrics.b > 2", "at character 17, found 'OR'");
    refused(run, "(metrics.acc > 1)", "expected an identifier");
    refused(run, "NOT params.a = 'x'", "Invalid attribute key 'NOT'");
    refused(run, "params.lr = 'x", "a closing ' for the text");
    refused(run, "params.lr = 0.1", "Expected a quoted string value for param (e.g. 'my-value')");
    refused(run, "params.lr = 0.1", "at character 13");
    refused(run, "metrics.acc > 1 AND", "at character 20, found the end");
    refused(run, "metrics. > 1", "a key after the dot");
    refused(run, "run_id IN 'a'", "expected a list");
    refused(run, "run_id IN ()", "a quoted string in the list");
    refused(run, "run_id IN ('a' 'b')", "a comma or a closing parenthesis");
    refused(run, "tags.a IS 'b'", "NULL or NOT NULL after IS");
    refused(run, "metrics.a > 1; metrics.b > 2", "multiple expression");
    refused(run, "metrics.a = 1e", "Expected numeric value type");
    refused(run, "metrics.a = 12abc", "Expected numeric value type");
}

#[test]
fn each_kind_of_thing_has_keys_and_comparisons_of_its_own() {
    use Entity::{Experiment, LoggedModel, ModelVersion, RegisteredModel, Run};
    refused(Run, "metrics.a LIKE 'x'", "Invalid comparator 'LIKE'");
    refused(Run, "status IN ('FAILED')", "Invalid comparator 'IN'");
    refused(Run, "foo = 'x'", "Invalid attribute key 'foo' specified. Valid keys are 'run_id'");
    refused(Run, "foo.bar = 'x'", "Invalid entity type 'foo'");
    refused(Run, "datasets.size = 'x'", "Invalid dataset key 'size'");
    refused(Experiment, "metrics.a > 1", "Invalid entity type 'metrics'");
    refused(Experiment, "experiment_id LIKE '1'", "Invalid comparator 'LIKE'");
    refused(RegisteredModel, "tags.a IS NULL", "Invalid comparator 'IS NULL'");
    refused(RegisteredModel, "timestamp > 1", "can be ordered by, but not filtered");
    refused(ModelVersion, "source_path IN ('a')", "Invalid comparator 'IN'");
    refused(LoggedModel, "metric.a > 1", "Invalid entity type 'metric'");
    assert_eq!(shown(LoggedModel, "params.a IN ('x')"), "Param:a IN [\"x\"]");
    assert_eq!(shown(ModelVersion, "version_number >= 2"), "Number:version_number >= 2");
    assert_eq!(shown(Experiment, "tag.a IS NOT NULL"), "Tag:a IS NOT NULL");
}

fn ordered(entity: Entity, texts: &[&str]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    match orders(entity, &texts) {
        Ok(orders) => {
            let one = |o: &Order| format!("{:?}:{} {}", o.field.kind, o.field.key, o.ascending);
            orders.iter().map(one).collect::<Vec<_>>().join(", ")
        }
        Err(error) => error.message,
    }
}

#[test]
fn orders_are_ascending_unless_they_say_otherwise_and_name_each_key_once() {
    use Entity::{Experiment, ModelVersion, Run};
    assert_eq!(
        ordered(Run, &["metrics.acc DESC", "params.`a b` asc", "start_time"]),
        "Metric:acc false, Param:a b true, Number:start_time true"
    );
    assert!(ordered(Run, &["metrics.a", "metrics.a DESC"]).contains("duplicate fields"));
    assert!(ordered(Run, &["metrics.a down"]).contains("expected ASC, DESC or the end"));
    assert!(ordered(Experiment, &["tags.a"]).contains("Invalid order by key"));
    assert!(ordered(ModelVersion, &["run_id"]).contains("Invalid order by key"));
    assert_eq!(ordered(Experiment, &["attribute.name DESC"]), "Text:name false");
}

#[test]
fn patterns_match_whole_texts() {
    for (text, pattern, expected) in [
        ("model-base", "model%", true),
        ("model-base", "%base", true),
        ("model-base", "%o_el%", true),
        ("model-base", "model", false),
        ("model", "mod_l", true),
        ("Model", "model", false),
        ("", "%", true),
        ("", "_", false),
        ("aab", "%ab", true),
        ("abcabd", "%ab_", true),
        ("äx", "_x", true),
    ] {
        assert_eq!(like(text, pattern), expected, "{text} LIKE {pattern}");
    }
}

#[test]
fn filters_and_orders_have_limits() {
    let many = vec!["metrics.a > 1"; MOST_CLAUSES + 1].join(" AND ");
    refused(Entity::Run, &many, "more than 50 comparisons");
    let long = format!("params.a = '{}'", "x".repeat(scan::MOST_BYTES));
    refused(Entity::Run, &long, "bytes; it may have");
}
