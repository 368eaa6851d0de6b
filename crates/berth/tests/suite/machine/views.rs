//! What pages and commands show beyond one job: orders, times, files, searches and previews, and who
//! sees what of them.

use super::http::Request;
use super::people::People;
use super::server::until;
use serde_json::{Value, json};
use std::io::BufRead;

fn texts(items: &Value, key: &str) -> Vec<String> {
    let all = items.as_array().into_iter().flatten();
    all.map(|item| item[key].as_str().unwrap_or_default().to_owned()).collect()
}

/// All pages of a list of jobs.
fn pages(people: &People, token: &str, query: &str) -> Vec<String> {
    let (mut names, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = people.get(token, &format!("/v1/jobs?{query}{cursor}")).json();
        names.extend(texts(&page["jobs"], "name"));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={}", next.replace(':', "%3A")),
            None => return names,
        }
    }
}

#[test]
fn jobs_come_in_the_order_that_is_asked_for_page_by_page() {
    let people = People::start("4xL4");
    for (name, gpus, priority) in [("bb", 1, 10), ("aa", 2, 30), ("cc", 3, 20)] {
        let file = format!(
            "team: vision\nname: {name}\ngpus: {gpus}\npriority: {priority}\nhold: true\nrun: x\n"
        );
        people.job(&people.kim, &file);
    }
    people.job(&people.lea, "team: vision\nname: leas\nhold: true\nrun: x\n");
    people.job(&people.admin, "team: audio\nname: other\nhold: true\nrun: x\n");
    for (query, expect) in [
        ("mine=true&sort=name", "aa bb cc"),
        ("mine=true&sort=-name", "cc bb aa"),
        ("mine=true&sort=gpus", "bb aa cc"),
        ("mine=true&sort=-priority", "aa cc bb"),
        ("mine=true&sort=id", "bb aa cc"),
        ("mine=true&sort=-submitted", "cc aa bb"),
        ("mine=true&sort=state", "cc aa bb"),
        ("mine=true&sort=eta", "bb aa cc"),
        ("sort=name", "aa bb cc leas"),
        ("state=paused,running&sort=-name", "leas cc bb aa"),
        ("state=done&sort=-name", ""),
    ] {
        for limit in [1, 2, 100] {
            let found = pages(&people, &people.kim, &format!("{query}&limit={limit}"));
            assert_eq!(found.join(" "), expect, "{query}, {limit} at a time");
        }
    }
    for (query, code) in [("sort=colour", "BRT0003"), ("sort=cost&cursor=17", "BRT0023")] {
        let answer = people.get(&people.kim, &format!("/v1/jobs?{query}"));
        assert_eq!(answer.code().as_deref(), Some(code), "{query}");
    }
    let shown = people.server.run_ok(&["ps", "--sort", "-name", "-o", "json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(texts(&shown["jobs"], "name"), ["other", "leas", "cc", "bb", "aa"]);
    let one = people.get(&people.kim, "/v1/jobs/cc").json();
    assert!(one["projected_micros"].as_i64() > Some(0), "{one}");
}

#[test]
fn a_job_that_gave_way_says_to_whom_and_its_leases_say_the_same() {
    let people = People::start("1xL4");
    let low = people.job(&people.kim, "team: vision\nname: low\ngpus: 1\nrun: sleep 600\n");
    people.until_is(&low, "running");
    let high = people
        .job(&people.lea, "team: vision\nname: first\ngpus: 1\npriority: high\nrun: sleep 600\n");
    people.until_is(&high, "running");
    let timeline = people.get(&people.kim, &format!("/v1/jobs/{low}/timeline")).json();
    let segments = &timeline["segments"];
    let states = texts(segments, "state");
    // A job that starts with the plan that met it first has not waited.
    assert!(["waiting", "starting"].contains(&states[0].as_str()), "{timeline}");
    assert_eq!(states.last().map(String::as_str), Some("preempted"), "{timeline}");
    assert!(states.contains(&"running".to_owned()), "{timeline}");
    let last = segments.as_array().and_then(|all| all.last()).expect("segments");
    assert_eq!((&last["by"]["job"], &last["by"]["name"]), (&json!(high), &json!("first")));
    assert_eq!(last["to"], Value::Null);
    let all = segments.as_array().expect("segments");
    for pair in all.windows(2) {
        assert_eq!(pair[0]["to"], pair[1]["from"], "{timeline}");
    }
    let cost: i64 = all.iter().filter_map(|segment| segment["cost_micros"].as_i64()).sum();
    assert_eq!(timeline["cost_micros"], cost);

    let list = people.get(&people.kim, "/v1/leases").json();
    assert_eq!(texts(&list["leases"], "state"), ["running", "ended"], "{list}");
    assert_eq!(list["leases"][1]["end_reason"], last["cause"], "{list}");
    let of_low = people.get(&people.kim, &format!("/v1/leases?job={low}")).json();
    assert_eq!(texts(&of_low["leases"], "job"), [low.as_str()]);

    // Others see that a GPU is held and by which team, and nothing more of the job.
    let mia = people.join("mia", "audio", "researcher");
    let seen = people.get(&mia, "/v1/leases").json();
    let first = &seen["leases"][0];
    assert_eq!(
        (&first["team"], &first["name"], &first["user"]),
        (&json!("vision"), &Value::Null, &Value::Null)
    );
    for path in ["timeline", "files", "files/content?path=x", "logs/search?text=x", "stop/preview"]
    {
        assert_eq!(people.get(&mia, &format!("/v1/jobs/{low}/{path}")).status, 404, "{path}");
    }
    assert_eq!(people.get(&mia, &format!("/v1/leases?job={low}")).status, 404);
    let shown = people.server.run_ok(&["timeline", &low]);
    assert!(shown.contains("preempted") && shown.contains("first"), "{shown}");
    assert!(people.server.run_ok(&["leases"]).contains("running"));

    // What it would do is told before it is done, and nothing is changed by that.
    let preview = people.get(&people.lea, &format!("/v1/jobs/{high}/stop/preview")).json();
    assert_eq!(texts(&preview["starts"], "name"), ["low"], "{preview}");
    let drain = people.get(&people.lea, "/v1/nodes/box/drain/preview").json();
    assert_eq!(texts(&drain["stops"], "job"), [high.as_str()], "{drain}");
    assert!(drain["lost_micros"].as_i64() >= Some(0), "{drain}");
    let shown = people.server.run_ok(&["drain", "box", "--preview"]);
    assert!(shown.contains("first"), "{shown}");
    assert!(people.server.run_ok(&["stop", &high, "--preview"]).contains("low"));
    assert_eq!(people.server.job(&high)["state"], "running");
    assert_eq!(people.server.json(&["nodes"])["items"][0]["state"], "ready");

    let why = people.get(&people.kim, &format!("/v1/jobs/{low}/why")).json();
    for sooner in why["sooner"].as_array().expect("changes") {
        let applies = !sooner["set"].is_null() || !sooner["clone"].is_null();
        assert!(applies || sooner["command"].is_null(), "{why}");
    }
}

#[test]
fn files_of_a_job_are_listed_and_read_and_no_link_leads_out() {
    let people = People::start("1xL4");
    let file = "team: vision\nname: writes\nrun: |\n  mkdir out\n  printf 0123456789 > out/data\n  \
                ln -s /etc/passwd out/link\n  ln -s / out/root\n  echo done\n";
    let job = people.job(&people.kim, file);
    people.until_is(&job, "done");
    let list = |path: &str| people.get(&people.kim, &format!("/v1/jobs/{job}/files?path={path}"));
    let entries = list("out").json();
    assert_eq!(texts(&entries["entries"], "name"), ["data", "link", "root"]);
    assert_eq!(texts(&entries["entries"], "kind"), ["file", "link", "link"]);
    assert_eq!(entries["entries"][0]["bytes"], 10);
    let top = list("").json();
    assert_eq!(top["entries"].to_string().matches("berth-token").count(), 0, "{top}");
    let content = |path: &str, range: Option<&str>| {
        let path = format!("/v1/jobs/{job}/files/content?path={path}");
        let mut request = Request::new("GET", path).token(Some(&people.kim));
        request.headers.extend(range.map(|range| ("range", range.to_owned())));
        let answer = request.send(&people.server.url);
        (answer.status, answer.body)
    };
    assert_eq!(content("out/data", None), (200, "0123456789".to_owned()));
    assert_eq!(content("out/data", Some("bytes=2-4")), (206, "234".to_owned()));
    assert_eq!(content("out/data", Some("bytes=-3")), (206, "789".to_owned()));
    assert_eq!(content("out/data", Some("bytes=10-")).0, 416);
    for path in
        ["out/link", "out/root/etc/passwd", "../../admin.token", "nothing", "%2Fetc%2Fpasswd"]
    {
        assert_eq!(content(path, None).0, 404, "{path}");
    }
    assert_eq!(content("out", None).0, 400);
    assert!(people.server.run_ok(&["files", &job, "out"]).contains("data"));
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("copy");
    let to = to.to_str().unwrap();
    people.server.run_ok(&["cp", &format!("{job}:out/data"), to]);
    assert_eq!(std::fs::read_to_string(to).unwrap(), "0123456789");
    let again = people.server.berth(&["cp", &format!("{job}:out/data"), to]);
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    people.server.run_ok(&["cp", "--force", &format!("{job}:out/data"), to]);
    assert_eq!(people.server.run_ok(&["cp", &format!("{job}:out/data"), "-"]), "0123456789");
}

/// All that is told, whatever its length.
fn read_stream(people: &People, path: &str) -> String {
    let request = Request::new("GET", path).token(Some(&people.kim));
    let (status, mut stream) = request.stream(&people.server.url);
    assert_eq!(status, 200);
    let (mut all, mut line) = (String::new(), String::new());
    loop {
        line.clear();
        stream.read_line(&mut line).expect("it goes on");
        all.push_str(&line);
        // The last chunk of HTTP has no bytes.
        if line == "0\r\n" || line.is_empty() {
            return all;
        }
    }
}

#[test]
fn lines_of_a_log_are_found_across_chunks_and_ranks_and_counted() {
    let people = People::start("1xL4");
    // More than one chunk of a log, so that lines lie across its end.
    let file = "team: vision\nname: talks\nrun: |\n  i=0; while [ $i -lt 6000 ]; do \
                echo \"step $i loss=0.$i and some more text so that lines are long\"; i=$((i+1)); \
                done\n";
    let job = people.job(&people.kim, file);
    people.until_is(&job, "done");
    let search = |query: &str| {
        people.get(&people.kim, &format!("/v1/jobs/{job}/logs/search?{query}")).json()
    };
    let all = search("text=loss%3D&limit=3");
    assert_eq!((&all["total"], &all["complete"]), (&json!(6000), &json!(true)), "{all}");
    assert_eq!(all["matches"].as_array().map(Vec::len), Some(3));
    let second = &all["matches"][1];
    assert_eq!(
        (&second["line"], &second["rank"], &second["attempt"]),
        (&json!(1), &json!(0), &json!(0))
    );
    let next = all["next"].as_str().expect("more");
    let more = search(&format!("text=loss%3D&limit=3&cursor={next}"));
    assert_eq!((&more["matches"][0]["line"], &more["total"]), (&json!(3), &json!(6000)));
    assert_eq!(search("text=STEP%2059%5B0-4%5D%24&regex=true&ignore_case=true")["total"], 0);
    assert_eq!(search("text=STEP%205999%20&ignore_case=true")["total"], 1);
    assert_eq!(search("text=%5Estep%20%5Cd%2B99%20&regex=true")["total"], 59);
    let bad = people.get(&people.kim, &format!("/v1/jobs/{job}/logs/search?text=(&regex=true"));
    assert_eq!(bad.code().as_deref(), Some("BRT0003"));

    // The lines around one, by its number.
    let line = search("text=step%203000%20")["matches"][0]["line"].as_u64().expect("a line");
    let window = format!("/v1/jobs/{job}/logs?from_line={line}&before=2&lines=5");
    let window = read_stream(&people, &window);
    let steps: Vec<&str> =
        window.split("step ").skip(1).map(|rest| rest.split(' ').next().unwrap()).collect();
    assert_eq!(steps, ["2998", "2999", "3000", "3001", "3002"]);

    let found = people.server.run_ok(&["logs", &job, "--search", "loss="]);
    assert_eq!(found.lines().count(), 6000, "a line that lies across two chunks is found too");
    assert_eq!(
        people.server.run_ok(&["logs", &job, "--search", "loss=", "--count"]).trim(),
        "6000"
    );
    let one = people.server.run_ok(&["logs", &job, "--search", "step 42 ", "--everywhere"]);
    assert!(one.starts_with("0.0.0:42: step 42 loss"), "{one}");
}

#[test]
fn who_comes_back_to_the_events_hears_what_was_missed_and_no_other_teams() {
    let mut people = People::start("1xL4");
    let mia = people.join("mia", "audio", "researcher");
    let names = |people: &People, token: &str, after: u64, last: &str| {
        let mut request = Request::new("GET", "/v1/events?kind=job,gap").token(Some(token));
        request.headers.push(("last-event-id", after.to_string()));
        let (status, mut stream) = request.stream(&people.server.url);
        assert_eq!(status, 200);
        let (mut heard, mut seq, mut line) = (Vec::new(), 0, String::new());
        loop {
            line.clear();
            assert_ne!(stream.read_line(&mut line).expect("it goes on"), 0);
            let Some(json) = line.find('{').map(|at| &line[at..line.rfind('}').unwrap() + 1])
            else {
                continue;
            };
            let event: Value = serde_json::from_str(json).expect("an event");
            let number = event["seq"].as_u64().expect("a number");
            assert!(number > seq, "numbers go up: {event}");
            seq = number;
            let name = event["name"].as_str().or(event["kind"].as_str()).unwrap_or_default();
            heard.push(name.to_owned());
            if name == last {
                return (heard, seq);
            }
        }
    };
    // A number that the server has not given is a gap, which says where it goes on.
    let (_, start) = names(&people, &people.kim, 1, "gap");
    let held = |people: &People, token: &str, name: &str, team: &str| {
        people.job(token, &format!("team: {team}\nname: {name}\nhold: true\nrun: x\n"));
    };
    held(&people, &people.kim, "a", "vision");
    held(&people, &mia, "theirs", "audio");
    held(&people, &people.kim, "b", "vision");
    let (heard, last) = names(&people, &people.kim, start, "b");
    assert_eq!(heard, ["a", "b"]);
    held(&people, &people.kim, "c", "vision");
    assert_eq!(names(&people, &people.kim, last, "c").0, ["c"]);
    let (heard, _) = names(&people, &people.admin, start, "c");
    assert_eq!(heard, ["a", "theirs", "b", "c"]);
    people.server.stop();
    people.server.start_again();
    assert_eq!(names(&people, &people.kim, last, "gap").0, ["gap"], "it started anew");
}

#[test]
fn what_runs_has_cost_the_same_wherever_one_looks_although_no_row_is_written_yet() {
    let people = People::start("2xL4");
    let budget = json!({ "limit_micros": 1_000_000_000, "per": "month", "action": "notify" });
    people.admin("PUT", "/v1/budgets/vision", &budget);
    let ended = people.job(&people.kim, "team: vision\nname: ended\ngpus: 1\nrun: sleep 0.1\n");
    people.until_is(&ended, "done");
    let job = people.job(&people.kim, "team: vision\nname: runs\ngpus: 1\nrun: sleep 600\n");
    people.until_is(&job, "running");
    let read = |path: &str| people.get(&people.kim, path).json();
    let sum = |list: &Value, key: &str| -> i64 {
        list.as_array().expect("a list").iter().filter_map(|one| one[key].as_i64()).sum()
    };
    let of = |path: String| read(&format!("{path}{job}"));
    // Each is asked a moment after the one before, and the job costs more all the time.
    let first = of("/v1/jobs/".into())["cost_micros"].as_i64().expect("a cost");
    let attempts = sum(&read(&format!("/v1/jobs/{job}/attempts"))["items"], "cost_micros");
    let timeline = read(&format!("/v1/jobs/{job}/timeline"))["cost_micros"].as_i64().unwrap();
    let report = of("/v1/cost?by=user&job=".into())["total_micros"].as_i64().unwrap();
    let series = of("/v1/cost/series?by=team&step=hour&job=".into())["total_micros"].as_i64();
    let rows = sum(&of("/v1/cost/rows?limit=1000&job=".into())["rows"], "amount_micros");
    let all = [first, attempts, timeline, report, series.unwrap(), rows];
    assert!(first > 0 && all.is_sorted(), "{all:?}");
    let team = read("/v1/cost?by=team")["total_micros"].as_i64().unwrap();
    let spent = read("/v1/budgets")["items"][0]["spent_micros"].as_i64().unwrap();
    assert!(team >= rows && spent + 10 >= team, "{rows} {team} {spent}");

    // By their cost, a page at a time. Once the one that runs has cost more than the one that ended,
    // it does so for good.
    let cost = |job: &str| read(&format!("/v1/jobs/{job}"))["cost_micros"].as_i64();
    let paid = cost(&ended);
    until("it has cost more", || cost(&job) > paid);
    for (sort, order) in [("-cost", ["runs", "ended"]), ("cost", ["ended", "runs"])] {
        let page = read(&format!("/v1/jobs?sort={sort}&limit=1"));
        let next = page["next"].as_str().expect("a next page");
        let rest = read(&format!("/v1/jobs?sort={sort}&limit=1&cursor={next}"));
        let names = [texts(&page["jobs"], "name"), texts(&rest["jobs"], "name")].concat();
        assert_eq!(names, order, "{sort}");
    }
    // Rows come a page at a time, too, and none is left out or shown twice.
    let (mut amounts, mut cursor) = (0, String::new());
    loop {
        let page = read(&format!("/v1/cost/rows?team=vision&limit=1{cursor}"));
        amounts += page["rows"].as_array().map_or(0, Vec::len);
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let rows = read("/v1/cost/rows?team=vision&limit=1000");
    assert_eq!(amounts, rows["rows"].as_array().map_or(0, Vec::len));
}

#[test]
fn money_is_told_over_time_by_row_by_cause_and_as_a_table() {
    let people = People::start("1xL4");
    let budget = json!({ "limit_micros": 1_000_000_000, "per": "month", "action": "notify" });
    people.admin("PUT", "/v1/budgets/vision", &budget);
    let job = people.job(&people.kim, "team: vision\nname: paid\ngpus: 1\nrun: sleep 1\n");
    people.until_is(&job, "done");
    let read = |path: &str| people.get(&people.kim, path).json();
    let total = read("/v1/cost?by=team")["total_micros"].as_i64().expect("a sum");
    assert!(total > 0);
    for step in ["day", "hour"] {
        let series = read(&format!("/v1/cost/series?by=team&step={step}"));
        assert_eq!(series["keys"], json!(["vision"]), "{series}");
        let points = series["points"].as_array().expect("points");
        let sum: i64 = points.iter().filter_map(|point| point["amounts"]["vision"].as_i64()).sum();
        assert_eq!((sum, series["total_micros"].as_i64()), (total, Some(total)));
    }
    let rows = read("/v1/cost/rows?team=vision");
    let rows = rows["rows"].as_array().expect("rows");
    let sum: i64 = rows.iter().filter_map(|row| row["amount_micros"].as_i64()).sum();
    assert_eq!(sum, total);
    assert!(rows.iter().all(|row| row["job"] == job.as_str()));
    let idle = read("/v1/cost/idle");
    let causes = texts(&idle["causes"], "cause");
    assert_eq!(causes, ["starting", "held_idle", "lost_failed", "lost_machine"], "{idle}");
    let idle = people.get(&people.admin, "/v1/cost/idle").json();
    assert!(texts(&idle["causes"], "cause").contains(&"unallocated".to_owned()), "{idle}");
    let forecast = read("/v1/budgets/vision/forecast");
    assert_eq!(forecast["limit_micros"], 1_000_000_000);
    assert!(forecast["spent_micros"].as_i64() > Some(0), "{forecast}");
    assert!(forecast["forecast"].as_array().map(Vec::len) >= Some(2), "{forecast}");
    let mia = people.join("mia", "audio", "researcher");
    assert_eq!(people.get(&mia, "/v1/budgets/vision/forecast").status, 403);
    assert_eq!(people.get(&mia, "/v1/cost/rows?team=vision").json()["rows"], json!([]));
    let csv = people.get(&people.kim, "/v1/cost/rows?team=vision&format=csv");
    assert!(csv.body.starts_with("from,to,kind,node,job,"), "{}", csv.body);
    assert_eq!(csv.body.lines().count(), rows.len() + 1);
    let mut request = Request::new("GET", "/v1/cost?by=team").token(Some(&people.kim));
    request.headers.push(("accept", "text/csv".to_owned()));
    assert!(request.send(&people.server.url).body.starts_with("team,amount,gpu_hours,jobs,"));
    for args in [
        &["cost", "--over", "day"][..],
        &["cost", "--rows", "5"],
        &["cost", "--idle"],
        &["cost", "--csv"],
        &["budget", "forecast", "vision"],
        &["gpus", "--since", "1h"],
    ] {
        assert!(!people.server.run_ok(args).is_empty(), "{args:?}");
    }
    let gpus = people.get(&mia, "/v1/gpus/figures?figure=power").json();
    assert_eq!((&gpus["rows"][0]["node"], &gpus["unit"]), (&json!("box"), &json!("mW")), "{gpus}");
    let values = gpus["rows"][0]["values"].as_array().map(Vec::len);
    assert!((100..=240).contains(&values.unwrap_or_default()), "{gpus}");
    assert_eq!(people.get(&mia, "/v1/gpus/figures?figure=cpu").status, 400);
    assert_eq!(people.get(&people.kim, "/v1/jobs?figures=true").status, 200);
}
