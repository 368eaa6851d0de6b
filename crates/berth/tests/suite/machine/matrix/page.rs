//! docs/authorization.md as a table.

use berth_api::{ROUTES, Route};

const PAGE: &str = include_str!("../../../../../../docs/authorization.md");

/// Whoever asks, in the order of the page's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    NoToken,
    NoRole,
    Viewer,
    Researcher,
    TeamLead,
    ClusterViewer,
    Operator,
    Admin,
}

impl Column {
    pub const ALL: [Column; 8] = [
        Column::NoToken,
        Column::NoRole,
        Column::Viewer,
        Column::Researcher,
        Column::TeamLead,
        Column::ClusterViewer,
        Column::Operator,
        Column::Admin,
    ];

    /// As the page calls it.
    pub fn title(self) -> &'static str {
        match self {
            Column::NoToken => "no token",
            Column::NoRole => "no role",
            Column::Viewer => "viewer",
            Column::Researcher => "researcher",
            Column::TeamLead => "team lead",
            Column::ClusterViewer => "cluster viewer",
            Column::Operator => "operator",
            Column::Admin => "admin",
        }
    }

    /// The name of the person who is just that.
    pub fn user(self) -> String {
        self.title().replace(' ', "-")
    }
}

/// Whose the thing is that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The asking person made it, in the team where they have their role.
    Own,
    /// Somebody else of that team made it.
    Team,
    /// It belongs to another team.
    Other,
}

impl Whose {
    pub const ALL: [Whose; 3] = [Whose::Own, Whose::Team, Whose::Other];
}

/// How far somebody reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Nothing,
    Own,
    Team,
    All,
}

impl Reach {
    fn parse(cell: &str) -> Reach {
        match cell {
            "–" => Reach::Nothing,
            "own" => Reach::Own,
            "team" => Reach::Team,
            "all" => Reach::All,
            other => panic!("the page has a cell `{other}`"),
        }
    }

    pub fn covers(self, whose: Whose) -> bool {
        match self {
            Reach::Nothing => false,
            Reach::Own => whose == Whose::Own,
            Reach::Team => whose != Whose::Other,
            Reach::All => true,
        }
    }
}

pub struct Page {
    rows: Vec<(&'static Route, Vec<Reach>)>,
}

impl Page {
    pub fn read() -> Page {
        let mut lines = PAGE.lines();
        let head = lines.find(|line| line.starts_with("| route |")).expect("the matrix");
        let lines = lines.take_while(|line| line.starts_with("| "));
        let titles: Vec<&str> = cells(head).skip(2).collect();
        assert_eq!(titles, Column::ALL.map(Column::title), "the columns of the page");
        let rows: Vec<_> = lines.filter(|line| !line.starts_with("| ---")).map(row).collect();
        assert_eq!(rows.len(), ROUTES.len(), "the page has every route");
        Page { rows }
    }

    /// Those that somebody asks for by a token, about things that are somebody's. Signing in is not
    /// among them, nor is the code of a command line, which is nobody's: `sign_in` tries these.
    pub fn routes(&self) -> impl Iterator<Item = &'static Route> {
        let signs_in =
            |route: &Route| route.path.starts_with("/v1/session/") || route.path == "/v1/session";
        self.rows.iter().map(|(route, _)| *route).filter(move |route| !signs_in(route))
    }

    pub fn reach(&self, id: &str, column: Column) -> Reach {
        let row = self.rows.iter().find(|(route, _)| route.id == id).expect("a route of the page");
        row.1[column as usize]
    }
}

fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.trim_matches('|').split('|').map(str::trim)
}

fn row(line: &str) -> (&'static Route, Vec<Reach>) {
    let mut all = cells(line);
    let place = all.next().expect("a route");
    let route = ROUTES.iter().find(|route| format!("{} {}", route.method, route.path) == place);
    let route = route.unwrap_or_else(|| panic!("`{place}` is no route"));
    (route, all.skip(1).map(Reach::parse).collect())
}
