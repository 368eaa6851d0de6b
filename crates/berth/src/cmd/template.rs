//! `berth template`.

use super::code::Snapshot;
use crate::complete;
use crate::context::{Context, read_file};
use crate::fail::Result;
use crate::show::{Look, Page, Table};
use berth_api::wire::{Items, Template as Row, TemplateSet};
use berth_file::job;
use clap::Subcommand;
use std::path::{Path, PathBuf};

#[derive(Subcommand, Debug)]
pub enum Template {
    /// Save a job file as a template, with the files of the folder that it names as its code
    Set {
        #[arg(value_name = "NAME", add = complete::templates())]
        name: String,
        /// The job file; `-` reads standard input
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
        /// The team (your default team)
        #[arg(short, long, value_name = "TEAM", add = complete::teams())]
        team: Option<String>,
    },
    /// List templates
    List,
    /// Print the job file of a template
    Show {
        #[arg(value_name = "NAME", add = complete::templates())]
        name: String,
    },
    /// Delete a template
    Rm {
        #[arg(value_name = "NAME", add = complete::templates())]
        name: String,
    },
}

pub async fn run(context: &Context, args: &Template) -> Result<()> {
    let client = context.client()?;
    match args {
        Template::Set { name, file, team } => {
            let team = context.team(team.as_deref());
            let text = with_code(context, file, team.as_deref()).await?;
            let body = TemplateSet { team, file: text };
            let saved = client.set_template(name, &body).await?;
            let said = |saved: &Row| {
                format!("Saved template {0}; run it with `berth run @{0}`", saved.name)
            };
            context.done(saved, |saved| saved.name.clone(), said)
        }
        Template::List => {
            let names = |all: &Items<Row>| all.items.iter().map(|one| one.name.clone()).collect();
            context.show(&Page::new(client.templates().await?, list, names))
        }
        Template::Show { name } => {
            let text = |template: &Row, _: &Look| template.file.clone();
            let template = client.template(name).await?;
            context.show(&Page::new(template, text, |template| vec![template.name.clone()]))
        }
        Template::Rm { name } => {
            client.delete_template(name).await?;
            context.gone(name, &format!("Deleted template {name}"))
        }
    }
}

/// The file as it is saved. A folder that it names as its code is sent, and stands in it as a snapshot:
/// the server, and whoever runs the template elsewhere, see no folder of this machine.
async fn with_code(context: &Context, path: &Path, team: Option<&str>) -> Result<String> {
    let text = read_file(path)?;
    // Its mistakes are the server's to tell.
    let Ok(parsed) = job::read(&text) else { return Ok(text) };
    let mut file = parsed.file;
    let beside = path.parent().unwrap_or(Path::new(""));
    match Snapshot::take(&mut file, beside)? {
        None => Ok(text),
        Some(code) => {
            code.send(context, team).await?;
            Ok(job::write(&file))
        }
    }
}

fn list(all: &Items<Row>, look: &Look) -> String {
    let mut table = Table::new(&["NAME", "TEAM", "BY", "SINCE"]);
    for template in &all.items {
        table.row(vec![
            template.name.as_str().into(),
            template.team.as_str().into(),
            template.by.as_str().into(),
            look.at(template.created).into(),
        ]);
    }
    table.or(look, "No templates.")
}
