//! What pods read of their waiting and of their end, and cordoned nodes.

use super::*;
use crate::state::Explanation;
use crate::state::orders::{UNSCHEDULABLE, UnwrittenReason};
use crate::state::time_limits::coming_ends;
use crate::view::PodEvent;
use berth_model::{JobId, Policy, Reason, Span};

impl World {
    /// A node that is not as the others.
    fn node_as(&self, name: &str, change: impl FnOnce(&mut Value)) -> NodeView {
        let has = json!({ "cpu": "8", "memory": "8Gi", "nvidia.com/gpu": "2", "pods": "10" });
        let mut object = json!({
            "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
            "spec": {},
            "status": {
                "allocatable": has,
                "capacity": has,
                "conditions": [{ "type": "Ready", "status": "True" }],
            },
        });
        change(&mut object);
        self.reader.node(&serde_json::from_value(object).unwrap())
    }

    /// A pod without GPUs.
    fn light(&self, name: &str, change: impl FnOnce(&mut Value)) -> PodView {
        self.pod(name, "berth", 0, |pod| {
            pod["spec"]["containers"][0]["resources"] = json!({});
            change(pod);
        })
    }

    fn put_node(&mut self, node: NodeView) -> Vec<ApiOrder> {
        self.observe(Observation::Nodes(WatchUpdate::Changes(vec![Change::Applied(node)])))
    }

    /// The job of a pod.
    fn job_of(&self, pod: &str) -> JobId {
        self.state.pods[pod].task.expect("it is a task").0
    }

    /// What people read of the waiting of a job.
    fn told(&mut self, job: JobId) -> Vec<Reason> {
        let reasons = self.engine.core.state.reasons(job);
        let core = &self.engine.core;
        let groups = core.state.asks_of(job).unwrap_or_default();
        self.state.refine(core, Some(job), groups, reasons)
    }

    fn why(&mut self, pod: &str) -> String {
        let job = self.job_of(pod);
        let words: Vec<String> = self.told(job).iter().map(ToString::to_string).collect();
        words.join("; ")
    }

    /// Binds what is ordered, and lets it run.
    fn run(&mut self, name: &str, gpus: u32, change: impl Fn(&mut Value)) -> Vec<ApiOrder> {
        let pod = self.pod(name, "berth", gpus, &change);
        let orders = self.put([pod]);
        let (bind, node) = orders
            .iter()
            .find_map(|order| match order {
                ApiOrder::Bind(bind) => Some((bind.lease, bind.node.to_string())),
                _ => None,
            })
            .unwrap_or_else(|| panic!("{name} is bound: {orders:?}"));
        self.observe(Observation::OrderDone(OrderOutcome::Bound(bind)));
        let running = self.pod(name, "berth", gpus, |pod| {
            change(pod);
            pod["spec"]["nodeName"] = json!(node);
            pod["status"]["phase"] = json!("Running");
        });
        self.put([running])
    }

    /// What is ordered while so much time passes, an hour at a time.
    fn pass(&mut self, hours: u32) -> Vec<ApiOrder> {
        let mut orders = Vec::new();
        for _ in 0..hours {
            self.now = self.now + Span::hours(1);
            orders.extend(self.observe(Observation::Tick));
        }
        orders
    }
}

fn pod_events(orders: &[ApiOrder]) -> Vec<&PodEvent> {
    let events = orders.iter().filter_map(|order| match order {
        ApiOrder::WritePodEvent(event) => Some(event),
        _ => None,
    });
    events.collect()
}

fn reasons_of(orders: &[ApiOrder]) -> Vec<(&str, &'static str, &str)> {
    let reasons = orders.iter().filter_map(|order| match order {
        ApiOrder::WriteReason { pod, reason, message, .. } => {
            Some((pod.name.as_str(), *reason, message.as_str()))
        }
        _ => None,
    });
    reasons.collect()
}

#[test]
fn a_pod_without_a_limit_runs_for_more_than_a_day() {
    let mut world = World::new(&["a"]);
    world.run("web", 1, |pod| pod["spec"]["restartPolicy"] = json!("Always"));
    world.run("work", 1, |pod| pod["spec"]["restartPolicy"] = json!("Never"));
    let orders = world.pass(24 * 40);
    assert_eq!(evicted(&orders), Vec::<&Uid>::new());
    assert!(coming_ends(&world.engine.core, world.now).is_empty());
}

#[test]
fn a_limit_of_the_pod_or_of_a_mark_ends_it_after_that_was_announced() {
    let mut world = World::new(&["a"]);
    world.run("own", 1, |pod| pod["spec"]["activeDeadlineSeconds"] = json!(7_200));
    world.run("marked", 1, |pod| {
        pod["metadata"]["annotations"] = json!({ "berth.dev/time-limit": "2h" });
    });
    assert!(coming_ends(&world.engine.core, world.now).is_empty(), "that is far away");
    let ends = coming_ends(&world.engine.core, world.now + Span::mins(115));
    assert_eq!(ends.len(), 2, "{ends:?}");
    let orders = world.turn(|state, _| ends.iter().for_each(|end| state.announce_end(*end)));
    let events: Vec<(&str, &str)> =
        pod_events(&orders).iter().map(|event| (&*event.pod.name, event.reason)).collect();
    assert_eq!(events, [("own", "TimeLimitNear"), ("marked", "TimeLimitNear")]);
    let announced = |order: &ApiOrder| match order {
        ApiOrder::AnnounceEnd { message, .. } => message.contains("time limit of 2h"),
        _ => false,
    };
    assert_eq!(orders.iter().filter(|order| announced(order)).count(), 2, "and conditions");
    let orders = world.pass(3);
    let mut ended = evicted(&orders);
    ended.sort();
    assert_eq!(ended, ["marked", "own"]);
    assert!(pod_events(&orders).iter().all(|event| event.reason == "TimeLimitReached"));
    assert_eq!(pod_events(&orders).len(), 2);
}

#[test]
fn a_policy_limits_classes_of_work_and_no_service_by_the_way() {
    let mut world = World::new(&["a", "b"]);
    world.turn(|_, turn| {
        let policy = Policy { pod_time_limit: Span::hours(2), ..Policy::default() };
        let policy = Policy { version: turn.core.state.policy().version + 1, ..policy };
        turn.all(vec![berth_model::Event::PolicySet { policy: Box::new(policy) }]).unwrap();
    });
    world.run("web", 1, |pod| pod["spec"]["restartPolicy"] = json!("Always"));
    world.run("work", 1, |pod| pod["spec"]["restartPolicy"] = json!("OnFailure"));
    world.run("endless", 1, |pod| {
        pod["spec"]["restartPolicy"] = json!("OnFailure");
        pod["metadata"]["annotations"] = json!({ "berth.dev/time-limit": "none" });
    });
    assert_eq!(evicted(&world.pass(48)), ["work"]);
}

#[test]
fn pods_that_an_earlier_version_gave_the_default_of_jobs_are_freed_of_it() {
    let mut world = World::new(&["a"]);
    world.run("web", 1, |_| {});
    let job = world.job_of("web");
    world.turn(|_, turn| {
        let change = berth_model::JobChange::TimeLimit(Span::hours(24));
        assert!(turn.apply_observed(berth_model::Event::JobChanged { job, change }));
        turn.amend_detail(job, |detail| detail.time_limit = None);
    });
    world.turn(|state, turn| state.lift_default_limits(turn));
    assert_eq!(evicted(&world.pass(48)), Vec::<&Uid>::new());
}

#[test]
fn a_gang_that_misses_pods_says_so_on_those_there_are() {
    let mut world = World::new(&["a", "b"]);
    let member = |world: &World, name: &str| {
        world.pod(name, "berth", 1, |pod| {
            pod["metadata"]["labels"] = json!({ "berth.dev/gang": "train" });
            pod["metadata"]["annotations"] = json!({ "berth.dev/gang-size": "3" });
        })
    };
    let pods = [member(&world, "w-0"), member(&world, "w-1")];
    assert!(reasons_of(&world.put(pods)).is_empty(), "its controller may be at it");
    assert!(world.state.has_waiting(), "it is looked at again");
    world.now = world.now + Span::secs(10);
    let orders = world.observe(Observation::Tick);
    let why = "2 of 3 pods of gang train exist; it starts when the others exist too";
    assert_eq!(
        reasons_of(&orders),
        [("w-0", "GangIncomplete", why), ("w-1", "GangIncomplete", why)]
    );
    let events = pod_events(&orders);
    assert_eq!(events.len(), 2);
    assert!(events.iter().all(|event| event.reason == "GangIncomplete"), "{events:?}");
    assert!(events[0].note.contains("berth why train"), "{events:?}");
    let gangs = world.state.incomplete_gangs(world.now);
    assert_eq!((gangs.len(), gangs[0].pods, gangs[0].needed), (1, 2, 3));
    assert!(!world.state.has_waiting(), "nothing has to be told any more");
    assert!(reasons_of(&world.observe(Observation::Tick)).is_empty(), "once is enough");
    let second = Change::Deleted(member(&world, "w-1"));
    world.observe(Observation::Pods(WatchUpdate::Changes(vec![second])));
    let orders = world.observe(Observation::Tick);
    let told = reasons_of(&orders);
    assert!(told.len() == 1 && told[0].2.starts_with("1 of 3 pods"), "{told:?}");
    let second = member(&world, "w-1");
    world.put([second]);
    let last = member(&world, "w-2");
    assert_eq!(binds(&world.put([last])).len(), 3);
    assert!(world.state.incomplete_gangs(world.now).is_empty());
    assert!(!world.state.has_waiting());
}

#[test]
fn a_pod_that_tolerates_the_cordon_is_bound_to_a_cordoned_node_and_others_are_not() {
    let mut world = World::new(&[]);
    let cordoned = |node: &mut Value| {
        node["spec"]["unschedulable"] = json!(true);
        node["spec"]["taints"] =
            json!([{ "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule" }]);
    };
    let node = world.node_as("a", cordoned);
    world.put_node(node);
    let plain = world.light("plain", |_| {});
    assert_eq!(binds(&world.put([plain])), []);
    let daemon = world.light("daemon", |pod| {
        pod["spec"]["tolerations"] = json!([{
            "key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule",
        }]);
        pod["spec"]["affinity"] = json!({ "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
                { "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["a"] }] },
            ] },
        } });
    });
    assert_eq!(binds(&world.put([daemon])), [on("daemon", "a")]);
    world.observe(Observation::Tick);
    let why = world.why("plain");
    assert!(why.contains("none of 1 node will do: 1 cordoned"), "{why}");
    // Also where the control plane has not added its taint yet.
    let node = world.node_as("a", |node| node["spec"]["unschedulable"] = json!(true));
    world.put_node(node);
    let other = world.light("other", |_| {});
    assert_eq!(binds(&world.put([other])), []);
}

#[test]
fn a_node_selector_that_no_node_meets_is_told_in_its_own_words() {
    let mut world = World::new(&[]);
    for (name, generation) in [("a", "12"), ("b", "11")] {
        let node =
            world.node_as(name, |node| node["metadata"]["labels"]["gen"] = json!(generation));
        world.put_node(node);
    }
    let tainted = world.node_as("c", |node| {
        node["spec"]["taints"] = json!([{ "key": "team", "value": "b", "effect": "NoSchedule" }]);
    });
    world.put_node(tainted);
    let old = world.light("old", |pod| {
        pod["spec"]["affinity"] = json!({ "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
                { "matchExpressions": [{ "key": "gen", "operator": "Lt", "values": ["10"] }] },
            ] },
        } });
    });
    world.put([old]);
    let why = world.why("old");
    assert!(why.contains("none of 3 nodes will do"), "{why}");
    assert!(
        why.contains("2 without what its node selector or affinity asks for (gen<10)"),
        "{why}"
    );
    assert!(why.contains("1 with a taint that it does not tolerate (team=b:NoSchedule)"), "{why}");
    assert!(!why.contains("=yes") && !why.contains("tolerates no taint"), "{why}");
}

#[test]
fn a_node_selector_is_not_told_as_a_rule_about_other_pods() {
    let mut world = World::new(&["a", "b"]);
    let picky = world.light("picky", |pod| {
        pod["metadata"]["labels"] = json!({ "app": "web" });
        pod["spec"]["nodeSelector"] = json!({ "disk": "ssd" });
        pod["spec"]["topologySpreadConstraints"] = json!([{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": { "matchLabels": { "app": "web" } },
        }]);
    });
    world.put([picky]);
    let why = world.why("picky");
    assert!(why.contains("2 without what its node selector or affinity asks for"), "{why}");
    assert!(!why.contains("on hold"), "{why}");
}

#[test]
fn a_port_that_a_pod_of_another_scheduler_has_is_told_and_waiting_helps() {
    let mut world = World::new(&["a"]);
    let ports = json!([{ "containerPort": 80, "hostPort": 8080 }]);
    let other = world.pod("other", "default-scheduler", 0, |pod| {
        pod["spec"]["containers"][0]["resources"] = json!({});
        pod["spec"]["nodeName"] = json!("a");
        pod["spec"]["containers"][0]["ports"] = ports.clone();
        pod["status"]["phase"] = json!("Running");
    });
    world.put([other]);
    let ours = world.light("ours", |pod| {
        pod["spec"]["containers"][0]["ports"] = ports.clone();
    });
    world.put([ours]);
    let job = world.job_of("ours");
    let told = world.told(job);
    let [Reason::NodesRuledOut { nodes: 1, causes }] = &told[..] else { panic!("{told:?}") };
    assert!(causes[0].passes, "{causes:?}");
    assert_eq!(causes[0].why, "where the host port 8080/TCP is in use");
}

#[test]
fn gpus_and_cores_that_pods_of_other_schedulers_have_are_told_as_theirs() {
    let mut world = World::new(&["a"]);
    let other = world.pod("other", "default-scheduler", 1, |pod| {
        pod["spec"]["nodeName"] = json!("a");
        pod["spec"]["containers"][0]["resources"]["requests"] =
            json!({ "cpu": "6", "nvidia.com/gpu": "1" });
        pod["status"]["phase"] = json!("Running");
    });
    world.put([other]);
    let (gpus, cores) = (
        world.plain("gpus", 2),
        world.light("cores", |pod| {
            pod["spec"]["containers"][0]["resources"] = json!({ "requests": { "cpu": "4" } });
        }),
    );
    world.put([gpus, cores]);
    for pod in ["gpus", "cores"] {
        let job = world.job_of(pod);
        let told = world.told(job);
        assert!(matches!(told[0], Reason::HeldByOthers { nodes: 1, .. }), "{pod}: {told:?}");
    }
    let large = world.plain("large", 3);
    world.put([large]);
    let job = world.job_of("large");
    let told = world.told(job);
    assert!(matches!(told[0], Reason::TooLargeForDomain { .. }), "no node has that: {told:?}");
}

#[test]
fn a_pod_that_waits_gets_an_event_for_each_blocker_and_no_more_than_one_a_minute() {
    let mut world = World::new(&["a"]);
    let large = world.plain("large", 3);
    world.put([large]);
    let job = world.job_of("large");
    let mut events = |seconds: i64, blocker: &str| {
        let why = Explanation {
            reason: "Unschedulable",
            text: format!("it waits for {blocker}"),
            event: Some(format!("It waits for {blocker}")),
            key: blocker.to_owned(),
            lasting: None,
        };
        let now = Time(0) + Span::secs(seconds);
        let orders = world.turn(|state, _| state.explain(job, &why, now));
        pod_events(&orders).iter().map(|event| event.note.clone()).collect::<Vec<_>>()
    };
    assert_eq!(events(0, "GPUs"), ["It waits for GPUs"]);
    assert!(events(2, "GPUs").is_empty());
    assert!(events(30, "its queue").is_empty(), "blockers that take turns are no flood");
    assert_eq!(events(61, "its queue"), ["It waits for its queue"]);
    assert!(events(300, "its queue").is_empty());
    assert_eq!(events(700, "its queue").len(), 1, "it is counted now and then");
}

#[test]
fn a_reason_is_written_on_the_newer_version_that_was_seen_before_the_conflict() {
    let mut world = World::new(&[]);
    let pod_of = |world: &World, version: &str| {
        world.pod("slow", "berth", 1, |pod| pod["metadata"]["resourceVersion"] = json!(version))
    };
    let version_of = |orders: &[ApiOrder]| {
        orders.iter().find_map(|order| match order {
            ApiOrder::WriteReason { version, .. } => Some(version.clone()),
            _ => None,
        })
    };
    let pod = pod_of(&world, "1");
    let at = pod.at.clone();
    world.put([pod]);
    let uid = at.uid.clone();
    let orders = world.turn(|state, _| state.report_reason(&uid, "its group is missing"));
    assert_eq!(version_of(&orders).as_deref(), Some("1"));
    let newer = pod_of(&world, "2");
    world.put([newer]);
    let unwritten = |version: &str, again: bool| {
        Observation::OrderDone(OrderOutcome::ReasonNotWritten(UnwrittenReason {
            pod: at.clone(),
            version: version.to_owned(),
            reason: UNSCHEDULABLE,
            message: "its group is missing".to_owned(),
            again,
        }))
    };
    let orders = world.observe(unwritten("1", false));
    assert_eq!(version_of(&orders).as_deref(), Some("2"), "{orders:?}");
    let orders = world.observe(unwritten("2", true));
    assert_eq!(version_of(&orders).as_deref(), Some("2"), "the API server failed: {orders:?}");
    let orders = world.observe(unwritten("2", false));
    assert_eq!(version_of(&orders), None, "the version that conflicts is yet to be seen");
    let orders = world.turn(|state, _| state.report_reason(&uid, "its group is missing"));
    assert_eq!(version_of(&orders).as_deref(), Some("2"), "then it is written anew");
}
