//! Who may do what, tried out cell by cell: docs/authorization.md is the table, every route of it
//! is asked for over HTTP by somebody of every role, about things of their own, of their team and
//! of another team.

mod attempt;
mod page;
mod stage;

use super::http::Answer;
use attempt::Attempt;
use berth_api::access::Scope;
use berth_api::{Code, Route};
use page::{Column, Page, Whose};
use stage::Stage;

#[test]
fn every_route_is_open_to_whom_the_page_says_and_to_nobody_else() {
    let (page, stage) = (Page::read(), Stage::set());
    let mut wrong = Vec::new();
    for route in page.routes() {
        let cells = Column::ALL.into_iter().flat_map(|column| {
            Whose::ALL.map(|whose| Cell { page: &page, stage: &stage, route, column, whose })
        });
        let (open, closed): (Vec<Cell<'_>>, Vec<Cell<'_>>) = cells.partition(Cell::is_open);
        wrong.extend(check_closed(&stage, &closed));
        wrong.extend(open.iter().filter_map(|cell| cell.told(cell.check_open())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// All that a request could change is read once for all who are refused; the last row of the audit
/// log says who it was.
fn check_closed(stage: &Stage, cells: &[Cell<'_>]) -> Vec<String> {
    let attempts: Vec<Attempt> = cells.iter().map(Cell::prepare).collect();
    let before = stage.everything();
    let mut head = stage.audit_head();
    let mut wrong = Vec::new();
    for (cell, attempt) in cells.iter().zip(&attempts) {
        let answer = stage.send(attempt.request(cell.route, stage.token_of(cell.column)));
        wrong.extend(cell.told(cell.refused(attempt, &answer)));
        let now = stage.audit_head();
        if head != now {
            wrong.extend(cell.told(Err(format!("refused, and yet something changed: {answer:?}"))));
            head = now;
        }
    }
    if before != stage.everything() {
        let ids = cells.iter().map(|cell| cell.route.id).take(1);
        wrong.extend(ids.map(|id| format!("{id} was refused, and changed something")));
    }
    wrong
}

struct Cell<'a> {
    page: &'a Page,
    stage: &'a Stage,
    route: &'static Route,
    column: Column,
    whose: Whose,
}

impl Cell<'_> {
    fn is_open(&self) -> bool {
        self.page.reach(self.route.id, self.column).covers(self.whose)
    }

    fn prepare(&self) -> Attempt {
        Attempt::prepare(self.stage, self.route, self.column, self.whose)
    }

    fn told(&self, checked: Result<(), String>) -> Option<String> {
        let Cell { route, column, whose, .. } = self;
        let named =
            |why| format!("{} {} for {column:?}, {whose:?}: {why}", route.method, route.path);
        checked.err().map(named)
    }

    fn check_open(&self) -> Result<(), String> {
        let Cell { stage, route, column, .. } = *self;
        let attempt = self.prepare();
        let answer = stage.send(attempt.request(route, stage.token_of(column)));
        if route.id == "drain_node" {
            stage.resume_work();
        }
        admitted(&attempt, &answer)
    }

    fn refused(&self, attempt: &Attempt, answer: &Answer) -> Result<(), String> {
        // A list leaves out what one may not see.
        if let Some(shows) = &attempt.shows
            && answer.status == 200
        {
            let leaks = answer.body.contains(shows.as_str());
            return if leaks { Err(format!("{shows} is shown")) } else { Ok(()) };
        }
        expect(answer, self.refusal())
    }

    /// What one may not even see is not there.
    fn refusal(&self) -> Code {
        let reads = match self.route.path {
            _ if self.column == Column::NoToken => return Code::NoToken,
            path if path.contains("{job}") => "get_job",
            // Both take a job in the matrix.
            "/v1/lineage" | "/v1/runs/{run}/recipe" => "get_job",
            path if path.contains("{token}") => "list_tokens",
            path if path.contains("{session}") => "list_sessions",
            path if path.contains("{project}") => "list_projects",
            path if path.contains("{template}") && self.route.id != "set_template" => {
                "get_template"
            }
            path if path.contains("{schedule}") => "get_schedule",
            path if path.contains("{experiment}") => "experiment_shares",
            path if path.contains("{registered_model}") => "model_shares",
            path if ["/v1/data", "/v1/objects"].iter().any(|start| path.starts_with(start)) => {
                "list_data"
            }
            _ => return Code::Forbidden,
        };
        let sees = self.page.reach(reads, self.column).covers(self.whose);
        match reads {
            _ if sees => Code::Forbidden,
            "get_job" => Code::NoSuchJob,
            _ => Code::NotFound,
        }
    }
}

fn admitted(attempt: &Attempt, answer: &Answer) -> Result<(), String> {
    let shown = attempt.shows.as_ref().is_none_or(|shows| answer.body.contains(shows.as_str()));
    if answer.is_good() && shown { Ok(()) } else { Err(format!("not allowed: {answer:?}")) }
}

fn expect(answer: &Answer, code: Code) -> Result<(), String> {
    let found = (answer.status, answer.code());
    if found == (code.status(), Some(code.code().to_owned())) {
        return Ok(());
    }
    Err(format!("expected {} {}, found {answer:?}", code.status(), code.code()))
}

#[test]
fn a_token_of_a_smaller_scope_is_good_for_less_whoever_has_it() {
    let (page, stage) = (Page::read(), Stage::set());
    let mut wrong = Vec::new();
    for (scope, word) in [(Scope::Read, "read"), (Scope::Jobs, "jobs")] {
        let (_, token) = stage.new_token(&Column::Admin.user(), word, None);
        for route in page.routes() {
            let attempt = Attempt::prepare(&stage, route, Column::Admin, Whose::Team);
            let allowed = scope.allows(route.permission);
            let before = (!allowed).then(|| stage.everything());
            let answer = stage.send(attempt.request(route, Some(&token)));
            let unchanged = before.is_none_or(|before| before == stage.everything());
            let judged = match allowed {
                true => admitted(&attempt, &answer),
                false => expect(&answer, Code::ScopeTooSmall),
            };
            if judged.is_err() || !unchanged {
                wrong.push(format!("{} with {word}: {judged:?}, {unchanged}", route.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_token_that_has_ended_opens_nothing() {
    let (page, stage) = (Page::read(), Stage::set());
    let admin = Column::Admin.user();
    let (_, expired) = stage.new_token(&admin, "all", Some("1ms"));
    let (id, revoked) = stage.new_token(&admin, "all", None);
    stage.admin("DELETE", &format!("/v1/tokens/{id}"), &serde_json::json!({}));
    let unknown = "brt_0000000000000000_0000000000000000";
    let tokens = [
        (expired, Code::TokenEnded),
        (revoked, Code::TokenEnded),
        (unknown.to_owned(), Code::NoToken),
    ];
    let mut wrong = Vec::new();
    for route in page.routes() {
        let attempt = Attempt::prepare(&stage, route, Column::Admin, Whose::Team);
        let before = stage.everything();
        for (token, code) in &tokens {
            let answer = stage.send(attempt.request(route, Some(token)));
            let judged = match route.is_public() {
                true => admitted(&attempt, &answer),
                false => expect(&answer, *code),
            };
            wrong.extend(judged.err().map(|why| format!("{}: {why}", route.id)));
        }
        if before != stage.everything() {
            wrong.push(format!("{} changed something", route.id));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_role_counts_in_the_teams_below_and_nowhere_above() {
    let mut stage = Stage::set();
    stage.admin("POST", "/v1/teams", &serde_json::json!({ "name": "seeing" }));
    let below = serde_json::json!({ "name": "video", "parent": "seeing" });
    stage.admin("POST", "/v1/teams", &below);
    for (column, role) in [(Column::TeamLead, "team_lead"), (Column::Researcher, "researcher")] {
        stage.give("seeing", &column.user(), Some(role));
    }
    stage.enter("deep", None);
    stage.give("video", "deep", Some("team_lead"));
    let add = |column: Column, team: &str| {
        let wish = serde_json::json!({ "name": stage.fresh("project"), "team": team });
        stage.request("POST", "/v1/projects", stage.token_of(column), Some(&wish)).status
    };
    assert_eq!(add(Column::TeamLead, "video"), 201, "the lead of the team above leads video");
    assert_eq!(add(Column::Researcher, "video"), 403);
    let wish = serde_json::json!({ "name": "up", "team": "seeing" });
    let up = stage.request("POST", "/v1/projects", stage.token_named("deep"), Some(&wish));
    assert_eq!(up.status, 403, "{up:?}");
}
