//! Derives the job file of a recipe from the submitted file.

use berth_api::wire::RecipeDifference;
use berth_file::job::{How, JobFile, Parameter, Sweep};
use berth_model::{ArraySpec, DataRef};

/// Keys that concern the time of the submission and not the run.
const OF_THE_MOMENT: [&str; 5] = ["after", "begin", "deadline", "hold", "schedule"];

/// The values that replace those of the file.
#[derive(Debug, Clone, Default)]
pub(super) struct Had<'a> {
    /// The team of the job.
    pub team: &'a str,
    /// The element of an array or a sweep.
    pub element: Option<u32>,
    /// Its data by path, with the hashes.
    pub data: &'a [(String, DataRef)],
}

/// The file that repeats the run, and the keys that it omits.
pub(super) fn repeatable(old: &JobFile, had: &Had<'_>) -> (JobFile, Vec<RecipeDifference>) {
    let mut left_out = Vec::new();
    for key in OF_THE_MOMENT.into_iter().filter(|key| says(old, key)) {
        left_out.push(RecipeDifference {
            what: key.to_owned(),
            then: "in the job file".to_owned(),
            now: "left out".to_owned(),
            next: format!("the new job starts as soon as it can; add `{key}` if it should not"),
            blocks: false,
        });
    }
    let mut file = old.without(&OF_THE_MOMENT.into());
    file.team.get_or_insert_with(|| had.team.to_owned());
    for (path, data) in had.data {
        file.data.insert(path.clone(), data.to_string());
    }
    if let Some(element) = had.element {
        one_element(&mut file, element);
    }
    (file, left_out)
}

fn says(file: &JobFile, key: &str) -> bool {
    match key {
        "after" => !file.after.is_empty(),
        "begin" => file.begin.is_some(),
        "deadline" => file.deadline.is_some(),
        "hold" => file.hold.is_some(),
        _ => file.schedule.is_some(),
    }
}

/// Reduces an array or a sweep to one element.
fn one_element(file: &mut JobFile, element: u32) {
    if let Some(array) = &mut file.array {
        *array = ArraySpec { elements: vec![element], at_most: None };
    }
    if let Some(sweep) = &mut file.sweep {
        let values = sweep.values(element);
        let one = |(name, value): &(&str, &str)| Parameter {
            name: (*name).to_owned(),
            values: vec![(*value).to_owned()],
        };
        let parameters = values.iter().map(one).collect();
        *sweep = Sweep { how: How::Product, parameters, at_most: None };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_file::job;

    const HASH: &str = "d751713988987e9331980363e24189ce.dir";

    fn repeat(text: &str, had: &Had<'_>) -> (String, Vec<String>) {
        let (file, left_out) = repeatable(&job::read(text).unwrap().file, had);
        (job::write(&file), left_out.into_iter().map(|one| one.what).collect())
    }

    #[test]
    fn the_new_file_asks_for_the_team_and_the_content_that_the_run_had() {
        let data = [("/data".to_owned(), format!("dvc:c4@v3#{HASH}").parse().unwrap())];
        let had = Had { team: "nlp", element: None, data: &data };
        let old = "name: train\ndata: {/data: 'dvc:c4', /scratch: work}\ngpus: H100:8\nrun: make\n";
        let (new, left_out) = repeat(old, &had);
        let read = job::read(&new).unwrap().file;
        assert_eq!(read.data["/data"], format!("dvc:c4@v3#{HASH}"), "what `c4` was then");
        assert_eq!(read.data["/scratch"], "work");
        assert_eq!((read.team.as_deref(), left_out.len()), (Some("nlp"), 0));
        let again = read.without(&["data", "team"].into());
        assert_eq!(again, job::read(old).unwrap().file.without(&["data", "team"].into()));
    }

    #[test]
    fn what_was_about_the_moment_is_left_out_and_said() {
        let had = Had { team: "nlp", ..Had::default() };
        let old = "begin: 6h\ndeadline: 2d\nafter: [prepare]\nteam: audio\nrun: make\n";
        let (new, left_out) = repeat(old, &had);
        assert_eq!(new, "team: audio\nrun: make\n");
        assert_eq!(left_out, ["after", "begin", "deadline"]);
    }

    #[test]
    fn one_element_is_repeated_by_itself() {
        let had = |element| Had { team: "nlp", element: Some(element), data: &[] };
        let (new, _) = repeat("array: 0-9\nrun: make\n", &had(7));
        assert_eq!(job::read(&new).unwrap().file.array.unwrap().elements, [7]);
        let sweep = "sweep: {lr: [0.1, 0.2], seed: [1, 2, 3]}\nrun: make\n";
        let (new, _) = repeat(sweep, &had(4));
        let found = job::read(&new).unwrap().file.sweep.unwrap();
        assert_eq!(found.values(0), [("lr", "0.2"), ("seed", "2")]);
        assert_eq!(found.len(), Some(1));
    }
}
