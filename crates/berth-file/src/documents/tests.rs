use super::*;
use crate::world::World;
use berth_model::{Amount, BudgetAction, BudgetPeriod, QueueOrder, Snapshot, Span};

fn one(text: &str) -> Want {
    read(text).unwrap().pop().unwrap().want
}

fn mistakes(text: &str) -> Vec<String> {
    read(text).unwrap_err().iter().map(|mistake| mistake.to_string()).collect()
}

#[test]
fn a_stream_has_as_many_wishes_as_documents_and_each_knows_its_line() {
    let text = "# the lab\nkind: team\nname: nlp\n---\n---\nkind: project\nname: chat\nteam: nlp\n";
    let found = read(text).unwrap();
    let lines: Vec<usize> = found.iter().map(|document| document.at.line).collect();
    assert_eq!(lines, [2, 6]);
    let project = Want::Project { team: Name::new("nlp"), name: Name::new("chat") };
    assert_eq!(found[1].want, project);
    assert_eq!(read("").unwrap(), []);
}

#[test]
fn a_queue_is_read_whole() {
    let text =
        "kind: queue\nname: nlp\nparent: lab\nquota: {gpu: 4}\norder: fifo\nmin_runtime: 30m\n";
    let Want::Queue(queue) = one(text) else { panic!("it is a queue") };
    assert_eq!(queue.parent.as_deref(), Some("lab"));
    assert_eq!(queue.quota.gpu.total, Some(Amount::Of(Milli::whole(4))));
    assert_eq!((queue.order, queue.min_runtime), (Some(QueueOrder::Fifo), Some(Span::mins(30))));
}

#[test]
fn a_quota_may_name_gpus_as_jobs_do() {
    for gpus in ["8xH100", "'H100:8'", "{H100: 8}"] {
        let text = format!("kind: queue\nname: nlp\nquota: {{gpu: {gpus}}}\n");
        let Want::Queue(queue) = one(&text) else { panic!("it is a queue") };
        let models = [(Name::new("H100"), Amount::Of(Milli::whole(8)))].into();
        assert_eq!((queue.quota.gpu.total, queue.quota.gpu.models), (None, models), "{gpus}");
    }
    let Want::Queue(queue) = one("kind: queue\nname: nlp\nquota: {gpu: unlimited}\n") else {
        panic!("it is a queue")
    };
    assert_eq!(queue.quota.gpu.total, Some(Amount::Unlimited));
}

#[test]
fn what_a_queue_has_used_and_spent_is_no_wish() {
    for key in ["credits", "past_use", "spent"] {
        let found = mistakes(&format!("kind: queue\nname: nlp\n{key}: 1\n"));
        assert!(found[0].contains(&format!("`{key}`")), "{found:?}");
    }
}

/// A document of a queue is an entry of a world file with its kind, so that one can be made
/// from the other.
#[test]
fn a_queue_is_written_as_in_a_world_file() {
    let text = "kind: queue\nname: nlp\nquota: {gpu: {total: 8, H100-80GB: 4}, cpu: 50%}\n\
                weight: 1.5\npriority: 3\nlimit: {memory: 1TiB}\nborrow: unlimited\n\
                lend: {gpu: 2}\nuser_limit: {gpu: 0.5}\norder: strict\nmin_runtime: 10m\n\
                preempt_after: 1h\ntime_sharing: true\n";
    let Want::Queue(queue) = one(text) else { panic!("it is a queue") };
    let entry: String =
        text.lines().skip(1).map(|line| format!("    {line}\n")).collect::<String>();
    let world = format!("queues:\n  -\n{entry}");
    let Snapshot { queues, .. } = World::parse(&world).unwrap().snapshot;
    assert_eq!(*queue, queues[0].spec);
}

#[test]
fn a_budget_has_a_limit_and_the_rest_has_defaults() {
    let Want::Budget { queue, budget } =
        one("kind: budget\nqueue: nlp\nlimit: 500\nthresholds: [50%, 80%]\n")
    else {
        panic!("it is a budget")
    };
    assert_eq!((queue.as_str(), budget.limit), ("nlp", Micros::dollars(500)));
    assert_eq!((budget.per, budget.action), (BudgetPeriod::Month, BudgetAction::Notify));
    assert_eq!(budget.thresholds, [Milli(500), Milli(800)]);
    assert!(mistakes("kind: budget\nqueue: nlp\n")[0].contains("no `limit`"));
}

#[test]
fn knobs_that_a_policy_leaves_out_are_as_they_come() {
    let Want::Policy(policy) = one("kind: policy\ngrace: 2m\n") else { panic!("a policy") };
    assert_eq!(*policy, Policy { grace: Span::mins(2), ..Policy::default() });
}

#[test]
fn prices_are_exact_and_never_negative() {
    let Want::Prices { prices, watts, .. } = one("kind: prices\nprices: {H100-80GB: 2.49}\n")
    else {
        panic!("prices")
    };
    assert_eq!(prices.unwrap()["H100-80GB"], Micros(2_490_000));
    assert_eq!(watts, None);
    assert!(mistakes("kind: prices\nwatts: {L4: -72}\n")[0].starts_with("line 2"));
}

#[test]
fn a_target_of_messages_has_an_address_or_none_and_an_odd_one_is_not_repeated() {
    let target = Name::new("slack:#nlp");
    let url = Some("https://hooks.example/x".to_owned());
    assert_eq!(
        one("kind: notify\nname: 'slack:#nlp'\nurl: https://hooks.example/x\n"),
        Want::Notify { target: target.clone(), url }
    );
    assert_eq!(one("kind: notify\nname: 'slack:#nlp'\n"), Want::Notify { target, url: None });
    assert!(mistakes("kind: notify\nname: mail:ada\n")[0].contains("slack:#team"));
    let odd = mistakes("kind: notify\nname: alerts\nurl: hush\n");
    assert!(odd[0].starts_with("line 3") && !odd[0].contains("hush"), "{}", odd[0]);
}

#[test]
fn a_mistake_has_its_line_and_a_suggestion() {
    let found = mistakes(
        "kind: queue\nname: nlp\nquotta: {gpu: 4}\n---\nkind: teem\nname: x\n---\n\
         kind: policy\ngrace: soon\n",
    );
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].starts_with("line 3, column "), "{}", found[0]);
    assert!(found[0].ends_with("unknown key `quotta` in a queue; did you mean `quota`?"));
    assert!(found[1].starts_with("line 5") && found[1].contains("did you mean `team`?"));
    assert!(found[2].starts_with("line 9") && found[2].contains("grace"), "{}", found[2]);
}

#[test]
fn what_is_no_yaml_or_no_map_is_refused_with_its_line() {
    for (text, line) in [("kind: [team\n", 1), ("\n\n- a\n- b\n", 3), ("kind: team\n---\nx\n", 3)] {
        let found = read(text).unwrap_err();
        let last = found.last().unwrap();
        assert!(last.at.line >= line, "{text:?}: {found:?}");
    }
}

fn object(kind: &str, name: &str, spec: &str) -> String {
    format!(
        "apiVersion: berth.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n"
    )
}

#[test]
fn an_object_for_kubernetes_is_the_document_of_its_kind() {
    let spec = "{parent: lab, quota: {gpu: 4}, order: fifo}";
    let document = "kind: queue\nname: nlp\nparent: lab\nquota: {gpu: 4}\norder: fifo\n";
    assert_eq!(one(&object("Queue", "nlp", spec)), one(document));
    let policy = object("Policy", "default", "{grace: 2m}");
    assert_eq!(one(&policy), one("kind: policy\ngrace: 2m\n"));
    let budget = object("Budget", "nlp", "{limit: 500, per: week}");
    let document = one("kind: budget\nqueue: nlp\nlimit: 500\nper: week\n");
    assert_eq!(one(&budget), document);
    let budget = object("Budget", "nlp-weekly", "{queue: nlp, limit: 500, per: week}");
    assert_eq!(one(&budget), document, "the queue may have another name than the object");
    // What the cluster wrote into an object is no wish.
    let seen = object("Queue", "nlp", spec) + "status: {running: 3}\n";
    assert_eq!(one(&seen), one(&object("Queue", "nlp", spec)));
}

#[test]
fn an_object_that_makes_no_sense_is_refused_with_its_line() {
    let odd = |kind: &str, name: &str, spec: &str| mistakes(&object(kind, name, spec)).remove(0);
    assert!(odd("Queue", "a", "{quotta: {}}").contains("did you mean `quota`?"));
    assert!(odd("Queues", "a", "{}").starts_with("line 2"));
    assert!(odd("Queue", "a", "{name: b}").contains("in its metadata"));
    assert!(odd("Policy", "mine", "{}").contains("called `default`"));
    assert!(odd("Job", "a", "{run: sleep 1}").contains("berth run"));
    let pool = "{max: 4, offerings: [{type: p5, gpus: 8, model: H100-80GB, price: 98}]}";
    assert!(odd("Pool", "a", pool).contains("cannot be bought yet"));
    assert!(odd("Pool", "a", "{max: soon}").contains("`max`"));
    let foreign = mistakes("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n");
    assert!(foreign[0].contains("for kubectl"), "{foreign:?}");
}
