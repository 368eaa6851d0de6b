use super::*;
use berth_model::{Bytes, Cpu, Milli, Span, Time};

fn read(text: &str) -> Vec<Job> {
    jobs("t.csv", text, &Select::default()).unwrap()
}

fn refused(text: &str) -> String {
    jobs("t.csv", text, &Select::default()).unwrap_err().to_string()
}

fn ids(jobs: &[Job]) -> Vec<&str> {
    jobs.iter().map(|job| job.id.as_str()).collect()
}

#[test]
fn columns_are_found_by_name_in_any_order() {
    let found = read("gpus,mem_gib,cpu,submit_s,job_id\n0.46,12,6.5,10.25,a\n");
    assert_eq!(found[0].gpus, Milli(460));
    assert_eq!(found[0].memory, Some(Bytes::gib(12)));
    assert_eq!(found[0].cpu, Some(Cpu(6_500)));
    assert_eq!(found[0].submit, Time(10_250));
    assert_eq!(found[0].line, 2);
}

#[test]
fn an_empty_field_is_not_known_and_not_nought() {
    let found = read("job_id,submit_s,duration_s,gpus,team,limit_s\na,0,,1,,0\n");
    assert_eq!((found[0].duration, &found[0].team), (None, &None));
    assert_eq!(found[0].limit, Some(Span::ZERO));
}

#[test]
fn jobs_come_in_order_of_submission_and_then_of_the_file() {
    let found = read("job_id,submit_s,gpus\nlate,9,1\nb,3,1\na,3,1\nfirst,-2,1\n");
    assert_eq!(ids(&found), ["first", "b", "a", "late"]);
}

#[test]
fn a_malformed_field_names_file_line_column_and_what_was_expected() {
    assert_eq!(
        refused("job_id,submit_s,duration_s,gpus\na,0,5,1\n\nb,0,5m,1\n"),
        "t.csv, line 4, column 3 (duration_s): found `5m`, expected seconds such as 90 or 12.5"
    );
    assert_eq!(
        refused("job_id,submit_s,gpus\na,0,\n"),
        "t.csv, line 2, column 3 (gpus): found nothing, expected a number of GPUs such as 8 or 0.5"
    );
    assert_eq!(
        refused("job_id,submit_s,duration_s,gpus\na,0,-5,1\n"),
        "t.csv, line 2, column 3 (duration_s): found `-5`, expected seconds such as 90 or 12.5"
    );
    assert_eq!(
        refused("job_id,submit_s,gpus,nodes\na,0,1,1.5\n"),
        "t.csv, line 2, column 4 (nodes): found `1.5`, expected a whole number such as 8"
    );
}

#[test]
fn a_line_with_too_few_fields_is_refused() {
    assert_eq!(
        refused("job_id,submit_s,gpus\na,0\n"),
        "t.csv, line 2: found 2 fields, expected 3 as in the header"
    );
}

#[test]
fn an_unknown_column_is_refused_with_a_suggestion() {
    assert_eq!(
        refused("job_id,submit,gpus\n"),
        "t.csv, line 1, column 2 (submit): job traces have no column of this name; \
         did you mean `submit_s`?"
    );
    assert!(refused("job_id,job_id\n").contains("column 2 (job_id): this column was there before"));
}

#[test]
fn a_missing_column_or_an_empty_file_is_refused() {
    assert_eq!(
        refused("job_id,submit_s\n"),
        "t.csv, line 1: there is no column `gpus`, which job traces need"
    );
    assert_eq!(refused(""), "t.csv: the file is empty, expected a header for job traces");
}

const SETS: &str = "set,job_id,submit_s,duration_s,gpus,model\n\
                    muri_trace1,0,0,5,1,dqn\nmuri_trace3,1,0,5,1,dqn\npollux_1,2,0,,1,bert\n";

#[test]
fn of_several_workloads_one_has_to_be_chosen() {
    let chosen = jobs("t.csv", SETS, &Select::set("muri_trace3")).unwrap();
    assert_eq!(ids(&chosen), ["1"]);
    assert_eq!(
        refused(SETS),
        "t.csv: the file holds several workloads: choose muri_trace1, muri_trace3 or pollux_1"
    );
    let error = jobs("t.csv", SETS, &Select::set("muri_trace")).unwrap_err();
    assert!(error.to_string().contains("did you mean `muri_trace1`?"), "{error}");
}

#[test]
fn variants_are_workloads_too() {
    let text = "variant,job_id,submit_s,duration_s,gpus,gpu_type,cpu,mem_gib,queue,status,wait_s\n\
                cpu0,0000,0,12,1,A|B,12,16,LS,Running,0\nmultigpu20,0001,,,8,,1,1,BE,,\n";
    let found = jobs("t.csv", text, &Select::set("multigpu20")).unwrap();
    assert_eq!((ids(&found), found[0].submit), (vec!["0001"], Time(0)));
    let found = jobs("t.csv", text, &Select::set("cpu0")).unwrap();
    assert_eq!(found[0].gpu_types().collect::<Vec<_>>(), ["A", "B"]);
}

#[test]
fn a_team_and_a_stretch_of_time_can_be_chosen() {
    let text = "job_id,submit_s,gpus,team\na,0,1,x\nb,5,1,y\nc,9,1,x\n";
    assert_eq!(ids(&jobs("t.csv", text, &Select::team("x")).unwrap()), ["a", "c"]);
    let later = Select { from: Some(Time(5_000)), until: Some(Time(9_000)), ..Select::default() };
    assert_eq!(ids(&jobs("t.csv", text, &later).unwrap()), ["b"]);
    let error = jobs("t.csv", text, &Select::team("z")).unwrap_err();
    assert_eq!(error.to_string(), "t.csv: there is no team `z`; did you mean `x`?");
}

#[test]
fn only_jobs_of_the_same_moment_change_places_when_ties_are_shuffled() {
    let mut text = "job_id,submit_s,gpus\n".to_owned();
    for job in 0..40 {
        text += &format!("{job},{},1\n", job / 20);
    }
    let straight = read(&text);
    let mut shuffled = straight.clone();
    shuffle_ties(&mut shuffled, 3);
    assert_ne!(ids(&shuffled), ids(&straight));
    let times = |jobs: &[Job]| jobs.iter().map(|job| job.submit).collect::<Vec<_>>();
    assert_eq!(times(&shuffled), times(&straight));
    let mut again = straight.clone();
    shuffle_ties(&mut again, 3);
    assert_eq!(again, shuffled);
}

#[test]
fn nodes_are_read_with_what_is_known_of_them() {
    let text = "node_id,gpu_type,gpus,gpu_mem_gib,cpu,mem_gib,team,gpus_revised\n\
                m0,,2,12,,,,8\nm1,V100,4,16,96,512,vc,\n";
    let found = nodes("n.csv", text).unwrap();
    assert_eq!((found[0].gpus, found[0].gpus_revised), (2, Some(8)));
    assert_eq!(found[1].gpu_memory, Some(Bytes::gib(16)));
    let error = nodes("n.csv", "node_id,gpus\nm0,two\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "n.csv, line 2, column 2 (gpus): found `two`, expected a whole number such as 8"
    );
}

#[test]
fn jobs_survive_being_written_and_read() {
    let text = "job_id,submit_s,duration_s,gpus,nodes,gpu_type,cpu,mem_gib,team,user,queue,\
                status,wait_s,limit_s,deadline_s,model\n\
                a,-3,12.5,0.46,1,A|B,6.5,30.517,\"x, y\",u,LS,done,0,60,90,bert\n\
                b,4,,16,,,,,,,,,,,,\n";
    let first = read(text);
    assert_eq!(to_csv(&first), text);
    assert_eq!(read(&to_csv(&first)), first);
}

#[test]
fn the_bundled_month_fills_its_cluster_to_nine_tenths() {
    let jobs = jobs("month", MONTH, &Select::default()).unwrap();
    assert_eq!(jobs.len(), 3_505);
    let gpu_ms: i128 =
        jobs.iter().map(|job| i128::from(job.gpus.0) * i128::from(job.duration.unwrap().0)).sum();
    let month_of_cluster = 192_000 * i128::from(berth_model::Span::days(30).0);
    let load = gpu_ms * 100 / month_of_cluster;
    assert!((88..=92).contains(&load), "{load} %");
}
