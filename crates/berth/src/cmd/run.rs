//! `berth run` and `berth plan`.

use super::attach::{self, Ended};
use super::code::Snapshot;
use super::export::{self, Export};
use super::flags::JobFlags;
use super::plan;
use crate::complete;
use crate::context::{Context, read_file, someone_is_there};
use crate::fail::{BadValue, Exit, Failure, Result};
use crate::prompt;
use crate::show::{self, Format, Page};
use berth_api::client::Error;
use berth_api::wire::{JobSubmitted, SubmitQuery, Warning};
use berth_api::{Code, Problem};
use berth_file::job::{self, JobFile, JobKind, Parsed};
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::timeout;

/// How long the server has to say what else is wrong with a file that has mistakes.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is to be run: a file, a template, flags, in this order laid over each other.
#[derive(Args, Debug)]
pub struct JobArgs {
    /// A template to start from
    // A list, so that the error for a command without `--` points at its first word.
    #[arg(value_name = "@TEMPLATE", value_parser = template, add = complete::at_templates())]
    templates: Vec<String>,
    /// A job file (YAML or JSON); `-` reads standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    keys: JobFlags,
}

fn template(text: &str) -> Result<String, BadValue> {
    match text.strip_prefix('@') {
        Some(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => Err(BadValue::new(
            "put a command after `--`, a file after `-f`, and `@` before a template",
        )),
    }
}

#[derive(Args, Debug)]
pub struct Run {
    #[command(flatten)]
    what: JobArgs,
    /// Only show what would happen, as `berth plan` does
    #[arg(long)]
    dry_run: bool,
    /// Submit the job and return at once
    #[arg(short, long, conflicts_with = "wait")]
    detach: bool,
    /// Wait until the job ends, without showing its output
    #[arg(long)]
    wait: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Variables of this terminal that the job gets: all, none, or names separated by commas (all
    /// if the job runs on this machine, none elsewhere)
    #[arg(long, value_name = "NAMES", value_parser = export::parse)]
    export: Option<Export>,
}

#[derive(Args, Debug)]
pub struct Plan {
    #[command(flatten)]
    what: JobArgs,
}

/// A job file as it is sent, and where its keys stood in the file it came from.
struct Draft {
    text: String,
    query: SubmitQuery,
    parsed: Option<(PathBuf, Parsed)>,
    team: Option<String>,
    code: Option<Snapshot>,
}

impl JobArgs {
    fn template(&self) -> Result<Option<&String>> {
        match self.templates.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            _ => Err(Failure::usage("a job takes one template, and several are given")),
        }
    }

    /// The file to send, over the variables of this terminal that go with it.
    async fn draft(&self, context: &Context, export: Option<&Export>) -> Result<Draft> {
        let template = self.template()?;
        let parsed = match &self.file {
            Some(path) => Some((path.clone(), self.read(context, path).await?)),
            None => None,
        };
        let base = parsed.as_ref().map(|(_, parsed)| parsed.file.clone()).unwrap_or_default();
        let file = base.merge(&self.keys.0);
        let under = match template {
            Some(name) => read_template(&context.client()?.template(name).await?.file)?,
            None => JobFile::default(),
        };
        // A notebook has a command of its own.
        let is_notebook = file.kind.or(under.kind) == Some(JobKind::Notebook);
        // The server says what else is wrong with a file.
        let has_file = self.file.is_some();
        if file.run.is_none()
            && under.run.is_none()
            && file.model.is_none()
            && !is_notebook
            && !has_file
        {
            return Err(Failure::usage("there is nothing to run").next(
                "Put the command after `--`, such as `berth run -g 1 -- python train.py`, or name \
                 a job file with -f.",
            ));
        }
        let (mut file, here) = with_defaults(file, &under, context)?;
        // Last, because the server may be asked.
        let export = match export {
            Some(export) => export.clone(),
            None if runs_here(context).await? => Export::All,
            None => Export::None,
        };
        export::lay_under(&mut file, &under, export::choose(&export, std::env::vars_os())?);
        let beside = match (&self.keys.0.code, &self.file) {
            (None, Some(path)) => path.parent().unwrap_or(Path::new("")),
            _ => Path::new(""),
        };
        let code = Snapshot::take(&mut file, &Path::new(&here).join(beside))?;
        let team = file.team.clone().or(under.team);
        let (template, here) = (template.cloned(), Some(here));
        let query = SubmitQuery { template, here, ..SubmitQuery::default() };
        Ok(Draft { text: job::write(&file), query, parsed, team, code })
    }
}

impl JobArgs {
    /// Reads the file. All that is wrong with it is shown at its place, also what only the server knows.
    async fn read(&self, context: &Context, path: &Path) -> Result<Parsed> {
        let (parsed, mistakes) = job::read_partly(&read_file(path)?);
        let Some(mistakes) = mistakes else { return Ok(parsed) };
        let mut problem = Problem::of_mistakes(&mistakes);
        let file = parsed.file.clone().merge(&self.keys.0);
        let query =
            SubmitQuery { template: self.templates.first().cloned(), ..SubmitQuery::default() };
        // Without an answer, what is known here is enough.
        let file = job::write(&file);
        let planned = async { context.client().ok()?.plan(&file, &query).await.err() };
        if let Ok(Some(Error::Problem(more))) = timeout(PATIENCE, planned).await
            && more.known_code() == Some(Code::JobRefused)
        {
            let more = more.errors.into_iter().filter(|error| !mistakes.concern(&error.path));
            problem.errors.extend(more);
        }
        place(&mut problem, Some((path, &parsed)));
        Err(problem.into())
    }
}

/// Shows each mistake at its place in the file that the user wrote, in the order of the file.
fn place(problem: &mut Problem, file: Option<(&Path, &Parsed)>) {
    for error in &mut problem.errors {
        let at = file.and_then(|(_, parsed)| parsed.at(&error.path));
        if let Some(at) = at {
            (error.line, error.column) = (Some(at.line), Some(at.column));
        }
    }
    problem.errors.sort_by_key(|error| error.line.unwrap_or(usize::MAX));
    let lines = problem.errors.iter().map(|error| {
        let key = format!("`{}`", error.path);
        let message = match error.path.is_empty() || error.message.contains(&key) {
            true => error.message.clone(),
            false => format!("{key}: {}", error.message),
        };
        match (file, error.line, error.column) {
            (Some((path, _)), Some(line), Some(column)) => {
                format!("{}:{line}:{column}: {message}", path.display())
            }
            _ => message,
        }
    });
    problem.detail = lines.collect::<Vec<_>>().join("\n       ");
}

fn read_template(text: &str) -> Result<JobFile> {
    let parsed =
        job::read(text).map_err(|mistakes| Failure::from(Problem::of_mistakes(&mistakes)))?;
    Ok(parsed.file)
}

/// What is set for all jobs of this user or project, where neither file nor template says it, and
/// the folder one is in.
fn with_defaults(
    mut file: JobFile,
    under: &JobFile,
    context: &Context,
) -> Result<(JobFile, String)> {
    if file.team.is_none() && under.team.is_none() {
        file.team = context.settings.team.as_ref().map(|team| team.value.clone());
    }
    if file.project.is_none() && under.project.is_none() {
        file.project = context.settings.project.as_ref().map(|project| project.value.clone());
    }
    let here = std::env::current_dir()
        .map_err(|error| Failure::io("finding the folder this was started in", &error))?;
    // With code it is a folder of that.
    if file.code.is_none() && under.code.is_none() {
        file.workdir = file.workdir.map(|directory| here.join(directory).display().to_string());
    }
    Ok((file, here.display().to_string()))
}

impl Draft {
    /// Warnings, each with its place in the file that the user wrote.
    fn warn(&self, warnings: &[Warning]) {
        for Warning { key, message, .. } in warnings {
            let place = self.parsed.as_ref().and_then(|(path, parsed)| {
                Some(format!("{}:{}: ", path.display(), parsed.at(key)?.line))
            });
            show::note(&format!("warning: {}{key}: {message}", place.unwrap_or_default()));
        }
    }

    async fn plan(&self, context: &Context) -> Result<berth_api::wire::Plan> {
        let planned = context.client()?.plan(&self.text, &self.query).await;
        planned.map_err(|error| self.located(error))
    }

    async fn submit(&self, context: &Context) -> Result<JobSubmitted> {
        if let Some(code) = &self.code {
            code.send(context, self.team.as_deref()).await?;
        }
        let submitted = context.client()?.submit(&self.text, &self.query).await;
        submitted.map_err(|error| self.located(error))
    }

    /// The server saw the file as it was sent; people look for the mistake in their own.
    fn located(&self, error: Error) -> Failure {
        let Error::Problem(mut problem) = error else { return error.into() };
        let file = self.parsed.as_ref();
        if problem.errors.len() > 1 {
            for error in &mut problem.errors {
                (error.line, error.column) = (None, None);
            }
            place(&mut problem, file.map(|(path, parsed)| (path.as_path(), parsed)));
            return Failure::from(*problem);
        }
        for mistake in &mut problem.errors {
            let at = file.and_then(|(path, parsed)| Some((path, parsed.at(&mistake.path)?)));
            (mistake.line, mistake.column) =
                (at.map(|(_, at)| at.line), at.map(|(_, at)| at.column));
            if let Some((path, at)) = at {
                problem.detail =
                    format!("{}:{}:{}: {}", path.display(), at.line, at.column, problem.detail);
            }
        }
        Failure::from(*problem)
    }
}

pub async fn plan(context: &Context, args: &Plan) -> Result<()> {
    let draft = args.what.draft(context, Some(&Export::None)).await?;
    show_plan(context, &draft).await
}

async fn show_plan(context: &Context, draft: &Draft) -> Result<()> {
    let plan = draft.plan(context).await?;
    draft.warn(&plan.warnings);
    context.show(&plan::page(plan))
}

/// While it stands for the job, only the job's own failure has the job's exit code.
pub async fn run(context: &Context, args: &Run) -> Result<()> {
    let ended = submit(context, args).await;
    match args.is_attached(context) {
        true => ended.map_err(Failure::while_attached),
        false => ended,
    }
}

impl Run {
    fn is_attached(&self, context: &Context) -> bool {
        let comes_back = self.detach || self.dry_run;
        !comes_back && (self.wait || !context.format.is_for_programs())
    }
}

/// Whether jobs are processes of this machine. Where the server's folder is another user's, the server
/// says which machine it is on. One that does not answer says so again at the submission.
async fn runs_here(context: &Context) -> Result<bool> {
    if context.settings.runs_here || !context.settings.may_run_here {
        return Ok(context.settings.runs_here);
    }
    let machine = context.client()?.me().await.ok().and_then(|me| me.machine);
    Ok(machine.is_some() && machine == berth_node::this_machine())
}

async fn submit(context: &Context, args: &Run) -> Result<()> {
    let draft = args.what.draft(context, args.export.as_ref()).await?;
    if args.dry_run {
        return show_plan(context, &draft).await;
    }
    if !args.yes && someone_is_there() {
        let plan = draft.plan(context).await?;
        show::note(plan::page(plan).print(Format::Table, &context.look())?.trim_end());
        if !prompt::proceed()? {
            return Err(Failure::new(Exit::Failed, "nothing was submitted"));
        }
    }
    let submitted = draft.submit(context).await?;
    draft.warn(&submitted.warnings);
    follow(context, args, submitted).await
}

/// What comes after the submission. A program that asked for JSON gets it and nothing else: it
/// follows the log with a command of its own.
async fn follow(context: &Context, args: &Run, submitted: JobSubmitted) -> Result<()> {
    let Some(id) = submitted.id.filter(|_| !args.detach) else {
        return announce(context, submitted);
    };
    let job = id.to_string();
    if context.format.is_for_programs() {
        if !args.wait {
            return announce(context, submitted);
        }
        let ended = attach::wait(context, &job, false).await?;
        if let Ended::Over(job) = &ended {
            context.show(&super::ps::one((**job).clone()))?;
        }
        return ended.result();
    }
    show::note(&announcement(&submitted));
    // Elements of an array have logs of their own, and would be told all at once.
    let ended = match args.wait || submitted.elements > 1 {
        true => attach::wait(context, &job, true).await?,
        false => attach::stream(context, &job).await?,
    };
    ended.farewell(context);
    ended.result()
}

/// Says what was submitted, and what one does next.
pub fn announce(context: &Context, submitted: JobSubmitted) -> Result<()> {
    let page = Page::new(
        submitted,
        |submitted, _| announcement(submitted),
        |submitted| submitted.id.iter().map(ToString::to_string).collect(),
    );
    context.show(&page)
}

fn announcement(submitted: &JobSubmitted) -> String {
    let name = &submitted.name;
    let (title, commands) = match (&submitted.id, &submitted.schedule) {
        (Some(id), _) => {
            let elements = match submitted.elements {
                0 | 1 => String::new(),
                many => format!(" with {many} elements"),
            };
            let repeated = if submitted.repeated { " (already submitted)" } else { "" };
            (
                format!("Submitted {id} {name}{elements}{repeated}"),
                [
                    (format!("berth logs -f {id}"), "show its output"),
                    (format!("berth why {id}"), "show why it waits and until when"),
                    (format!("berth stop {id}"), "stop it"),
                ],
            )
        }
        (None, Some(schedule)) => (
            format!("Scheduled {schedule} {name}"),
            [
                ("berth schedule list".to_owned(), "show when it runs next"),
                (format!("berth schedule pause {schedule}"), "pause it"),
                (format!("berth schedule rm {schedule}"), "delete it"),
            ],
        ),
        (None, None) => return format!("{name} is valid; nothing was submitted"),
    };
    let width = commands.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
    let line = |(command, what): &(String, &str)| format!("  {command:<width$}  {what}");
    let lines: Vec<String> = commands.iter().map(line).collect();
    format!("{title}\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submitted(id: Option<&str>, schedule: Option<&str>) -> JobSubmitted {
        JobSubmitted {
            id: id.map(|id| id.parse().unwrap()),
            name: "bert".into(),
            schedule: schedule.map(str::to_owned),
            elements: 1,
            warnings: Vec::new(),
            repeated: false,
        }
    }

    #[test]
    fn a_submission_names_the_three_commands_that_come_next() {
        let expect = "\
Submitted 17 bert
  berth logs -f 17  show its output
  berth why 17      show why it waits and until when
  berth stop 17     stop it";
        assert_eq!(announcement(&submitted(Some("17"), None)), expect);
        let scheduled = announcement(&submitted(None, Some("s1")));
        assert!(scheduled.starts_with("Scheduled s1 bert\n  berth schedule list"), "{scheduled}");
    }

    #[test]
    fn only_a_word_with_an_at_sign_is_a_template() {
        assert_eq!(template("@sft").unwrap(), "sft");
        assert!(
            template("python").unwrap_err().to_string().starts_with("put a command after `--`")
        );
        assert!(template("@").is_err());
    }
}
