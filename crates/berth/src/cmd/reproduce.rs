//! `berth reproduce`: the job file that repeats a run, and what has changed since.

use super::run::announce;
use crate::complete;
use crate::context::Context;
use crate::fail::{Exit, Failure, Result};
use crate::show::{self, Look, Page};
use berth_api::wire::{Recipe, RecipeDifference, RecipeQuery, RecipeSource, SubmitQuery};
use clap::Args;

#[derive(Args, Debug)]
pub struct Reproduce {
    /// run:ID or job:JOB; or only an id, a number or a name
    #[arg(value_name = "RUN", add = complete::all_jobs())]
    run: String,
    /// Submit the job again
    #[arg(long)]
    submit: bool,
    /// Submit it even if data, code or something else has changed
    #[arg(long, requires = "submit")]
    anyway: bool,
    /// The team of the run, as a check
    #[arg(short, long, value_name = "TEAM", add = complete::teams())]
    team: Option<String>,
}

pub async fn run(context: &Context, args: &Reproduce) -> Result<()> {
    let client = context.client()?;
    let query = RecipeQuery { team: args.team.clone() };
    let recipe = client.recipe(&args.run, &query).await?;
    if !args.submit {
        return context.show(&Page::new(recipe, text, |recipe| vec![recipe.run.clone()]));
    }
    if !context.format.is_for_programs() {
        recipe.differs.iter().for_each(|one| show::note(&said(one)));
    }
    if recipe.source == RecipeSource::Artifact && !args.anyway {
        let what = format!(
            "the job file of the run is one of its artifacts, which members of team {} can change",
            recipe.team
        );
        let next = format!("Read it first: `berth reproduce {}`. --anyway submits it.", args.run);
        return Err(Failure::new(Exit::Refused, what).next(next));
    }
    let blocks = recipe.differs.iter().filter(|one| one.blocks);
    let blocks: Vec<&str> = blocks.map(|one| one.what.as_str()).collect();
    if !blocks.is_empty() && !args.anyway {
        let what = format!("the run cannot be repeated as it was: {}", blocks.join(", "));
        let next = format!(
            "`berth reproduce {}` says what to do. --anyway submits the job with what there is now.",
            args.run
        );
        return Err(Failure::new(Exit::Refused, what).next(next));
    }
    let file = if args.anyway { loosened(&recipe) } else { recipe.file.clone() };
    announce(context, client.submit(&file, &SubmitQuery::default()).await?)
}

/// Removes the hashes of changed data, because the server would refuse the file with them.
fn loosened(recipe: &Recipe) -> String {
    let changed = recipe.data.iter().filter(|data| data.now.as_ref() != Some(&data.hash));
    changed.fold(recipe.file.clone(), |file, data| {
        let version = format!("dvc:{}", data.version);
        file.replace(&format!("{version}#{}", data.hash), &version)
    })
}

fn said(difference: &RecipeDifference) -> String {
    let RecipeDifference { what, then, now, next, .. } = difference;
    plain(&format!("{what}: was {then}, is {now}")) + "\n  " + &plain(next)
}

/// A job file, with the differences as comments.
fn text(recipe: &Recipe, _: &Look) -> String {
    let mut remarks = vec![match &recipe.job {
        Some(job) => format!("Repeats run {} of job {job}.", recipe.run),
        None => format!("Repeats run {}, whose job the server no longer has.", recipe.run),
    }];
    if let Some(code) = &recipe.code {
        let commit = code.commit.as_deref().map(|commit| format!(", commit {commit}"));
        let dirty = if code.dirty == Some(true) { " with changes" } else { "" };
        remarks.push(format!("Code {}{}{dirty}", code.snapshot, commit.unwrap_or_default()));
    }
    let data = recipe.data.iter();
    remarks.extend(
        data.map(|data| format!("Data {} is {} at {}", data.version, data.hash, data.path)),
    );
    let (blocks, others): (Vec<_>, Vec<_>) = recipe.differs.iter().partition(|one| one.blocks);
    for (title, list) in [("Cannot be repeated as it was:", blocks), ("May differ:", others)] {
        if !list.is_empty() {
            remarks.push(String::new());
            remarks.push(title.to_owned());
            remarks.extend(list.into_iter().map(said));
        }
    }
    let lines = remarks.iter().flat_map(|remark| remark.split('\n'));
    let remarks: String =
        lines.map(|line| format!("# {}", plain(line)).trim_end().to_owned() + "\n").collect();
    format!("{remarks}{}", recipe.file)
}

/// Replaces all line breaks of YAML, so that a comment cannot add keys to the file.
fn plain(line: &str) -> String {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    line.chars().map(|c| if breaks(c) { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_api::wire::{RecipeData, RecipeSource};
    use berth_file::job;

    const HASH: &str = "d751713988987e9331980363e24189ce.dir";

    fn recipe(now: Option<&str>) -> Recipe {
        let difference = |what: &str, blocks| RecipeDifference {
            what: what.to_owned(),
            then: HASH.to_owned(),
            now: "removed".to_owned(),
            next: "push it again".to_owned(),
            blocks,
        };
        let data = RecipeData {
            path: "/data".to_owned(),
            version: "c4@v3".to_owned(),
            hash: HASH.to_owned(),
            now: now.map(str::to_owned),
        };
        Recipe {
            run: "0b3c".to_owned(),
            job: Some("17".parse().unwrap()),
            team: "nlp".to_owned(),
            source: RecipeSource::Job,
            file: format!("data:\n  /data: 'dvc:c4@v3#{HASH}'\nrun: make\n"),
            job_file: serde_json::Value::Null,
            code: None,
            image: None,
            data: vec![data],
            differs: vec![difference("price", false), difference("data c4@v3", true)],
        }
    }

    #[test]
    fn what_is_printed_is_a_job_file_that_says_what_differs() {
        let text = text(&recipe(None), &Look::fixed());
        let file = job::read(&text).unwrap().file;
        assert_eq!(file.data["/data"], format!("dvc:c4@v3#{HASH}"));
        let blocks = text.find("# Cannot be repeated as it was:\n# data c4@v3: was ").unwrap();
        assert!(text.find("# May differ:\n# price: was ").unwrap() > blocks, "{text}");
        assert!(text.starts_with("# Repeats run 0b3c of job 17.\n"), "{text}");
        let mut odd = recipe(None);
        odd.differs[0].then = "x\rrun: other\u{2028}nodes: 8\ncpu: 4".to_owned();
        assert_eq!(said(&odd.differs[0]).lines().count(), 2);
        assert_eq!(job::read(&super::text(&odd, &Look::fixed())).unwrap().file, file);
    }

    #[test]
    fn a_hash_that_cannot_be_had_any_more_is_left_out_only_where_one_says_so() {
        assert!(loosened(&recipe(Some(HASH))).contains(HASH));
        let file = job::read(&loosened(&recipe(None))).unwrap().file;
        assert_eq!(file.data["/data"], "dvc:c4@v3");
    }
}
