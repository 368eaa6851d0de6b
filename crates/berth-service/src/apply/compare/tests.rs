use super::*;
use crate::apply::set_up::Rules;
use berth_file::documents::read;

fn lab() -> SetUp {
    let mut lab = QueueSpec::new("lab");
    lab.priority = 1;
    let mut nlp = QueueSpec::new("nlp");
    nlp.parent = Some("lab".into());
    let queues = [lab, nlp].map(|queue| (queue.name.clone(), queue)).into();
    let teams = ["lab", "nlp"].map(String::from).into();
    let projects = [("nlp".to_owned(), "chat".to_owned())].into();
    let rules = Rules { queues, ..Rules::default() };
    SetUp { rules, teams, projects, ..SetUp::default() }
}

fn outcome(text: &str, prune: bool) -> Outcome {
    compare(&read(text).unwrap(), &lab(), prune).unwrap()
}

fn shown(outcome: &Outcome) -> Vec<String> {
    let each = outcome.changes.iter().map(|change| {
        let Change { kind, name, path, change, old, new } = change;
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        format!("{change:?} {} {name} [{path}] {} {}", kind.word(), text(old), text(new))
    });
    each.collect()
}

#[test]
fn documents_that_say_what_is_so_change_nothing() {
    let found = outcome(
        "kind: team\nname: nlp\nparent: lab\n---\nkind: queue\nname: lab\npriority: 1\n---\n\
         kind: policy\n---\nkind: project\nname: chat\nteam: nlp\n",
        false,
    );
    assert_eq!(shown(&found), Vec::<String>::new());
    assert!(found.events.is_empty() && found.documents.is_empty());
}

#[test]
fn a_change_is_told_field_by_field() {
    let found = outcome("kind: queue\nname: lab\npriority: 2\nquota: {gpu: 8}\n", false);
    assert_eq!(shown(&found), ["Change queue lab [priority] 1 2", "Add queue lab [quota.gpu] - 8"]);
    assert_eq!(found.events.len(), 1);
    let back = outcome("kind: queue\nname: lab\n", false);
    assert_eq!(shown(&back), ["Change queue lab [priority] 1 0"]);
}

#[test]
fn a_new_team_gets_its_queue_and_parents_come_first() {
    let found = outcome(
        "kind: team\nname: alpha\nparent: zeta\n---\nkind: team\nname: zeta\nparent: lab\n",
        false,
    );
    let set: Vec<&str> = found
        .events
        .iter()
        .map(|event| match event {
            Event::QueueSet { queue } => queue.name.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(set, ["zeta", "alpha"]);
    assert_eq!(found.documents.changes.len(), 2);
}

#[test]
fn a_budget_goes_with_its_queue_and_stays_when_the_queue_changes() {
    let text = "kind: budget\nqueue: lab\nlimit: 100\n";
    let found = outcome(text, false);
    assert_eq!(shown(&found), ["Add budget lab [] - 100 per month, notify"]);
    let Event::QueueSet { queue } = &found.events[0] else { panic!("a queue is set") };
    let mut now = lab();
    now.rules.queues.insert(queue.name.clone(), (**queue).clone());
    let again = read("kind: queue\nname: lab\npriority: 9\n").unwrap();
    let again = compare(&again, &now, false).unwrap();
    let Event::QueueSet { queue } = &again.events[0] else { panic!("a queue is set") };
    assert!(queue.budget.is_some());
}

#[test]
fn a_new_queue_is_shown_with_what_it_is_given_and_without_defaults() {
    let text = "kind: queue\nname: audio\nparent: lab\nquota: {gpu: 8}\nweight: 2\npriority: 0\n";
    assert_eq!(
        shown(&outcome(text, false)),
        [
            "Add queue audio [] - -",
            "Add queue audio [parent] - lab",
            "Add queue audio [quota.gpu] - 8",
            "Add queue audio [weight] - 2"
        ]
    );
}

#[test]
fn the_policy_gets_the_next_version_and_only_when_it_changes() {
    let found = outcome("kind: policy\ngrace: 2m\n", false);
    assert_eq!(shown(&found), ["Change policy policy [grace] 5m 2m"]);
    let Event::PolicySet { policy } = &found.events[0] else { panic!("a policy is set") };
    assert_eq!(policy.version, 2);
}

#[test]
fn pruning_removes_what_no_document_names_the_lowest_first() {
    let found = outcome("kind: policy\n", true);
    assert_eq!(
        shown(&found),
        ["Remove project chat [] nlp -", "Remove team nlp [] - -", "Remove team lab [] - -"]
    );
    let leaving: Vec<&str> = found.leaving.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(leaving, ["nlp", "lab"]);
    assert!(found.leaving.iter().all(|one| one.is_team));
    let kept = outcome("kind: policy\n", false);
    assert!(kept.changes.is_empty());
}

#[test]
fn what_leads_nowhere_is_refused_with_a_suggestion() {
    let text = "kind: team\nname: x\nparent: lba\n---\nkind: budget\nqueue: nlpp\nlimit: 1\n";
    let found = compare(&read(text).unwrap(), &lab(), false).unwrap_err();
    let messages: Vec<&str> = found.iter().map(|one| one.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "there is no queue `lba`; did you mean `lab`?",
            "there is no queue `nlpp`; did you mean `nlp`?"
        ]
    );
    assert_eq!((found[0].at.line, found[1].at.line), (1, 5));
}

#[test]
fn two_documents_about_the_same_are_refused() {
    let text = "kind: team\nname: x\n---\nkind: team\nname: x\n";
    let found = compare(&read(text).unwrap(), &lab(), false).unwrap_err();
    assert_eq!(found[0].message, "team x is in two documents, first at line 1");
}

#[test]
fn a_limit_of_classes_is_told_by_role_and_names_classes_there_are() {
    let classes = "kind: classes\nclasses: {urgent: 500, low: 10}\n---\n";
    let queue =
        |limit: &str| format!("kind: queue\nname: nlp\nparent: lab\nclass_limit: {limit}\n");
    let wanted = format!("{classes}{}", queue("{researcher: low, team_lead: urgent}"));
    let found = shown(&outcome(&wanted, false));
    assert!(
        found.contains(&"Add queue nlp [class_limit.researcher] - low".to_owned()),
        "{found:?}"
    );
    assert!(found.contains(&"Add queue nlp [class_limit.team_lead] - urgent".to_owned()));
    let wrong = format!("{classes}{}", queue("{researcher: urgnt}"));
    let mistakes = compare(&read(&wrong).unwrap(), &lab(), false).unwrap_err();
    assert_eq!(mistakes[0].message, "there is no class `urgnt`; did you mean `urgent`?");
}
