use super::*;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

/// A home with a project in it.
struct World {
    home: TempDir,
    variables: BTreeMap<String, String>,
}

impl World {
    fn new() -> World {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().display().to_string();
        std::fs::create_dir_all(home.path().join("code/deep")).unwrap();
        World { home, variables: BTreeMap::from([("HOME".to_owned(), path)]) }
    }

    fn file(self, name: &str, text: &str) -> World {
        self.file_with(name, text, 0o600)
    }

    fn file_with(self, name: &str, text: &str, mode: u32) -> World {
        let path = self.home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    fn variable(mut self, name: &str, value: &str) -> World {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    fn load(&self, flags: &Flags) -> Result<Settings> {
        let variables = self.variables.clone();
        let variable = Box::new(move |name: &str| variables.get(name).cloned());
        Settings::load(flags, &Places { variable, here: self.home.path().join("code/deep") })
    }

    /// Key, value, and where from, with the home left out of paths.
    fn explain(&self, flags: &Flags) -> Vec<String> {
        let home = format!("{}/", self.home.path().display());
        let rows = self.load(flags).unwrap_or_else(|failure| panic!("{failure}")).explain();
        rows.iter()
            .map(|(key, value, source)| format!("{key}={value} {}", source.replace(&home, "")))
            .collect()
    }

    fn refusal(&self) -> String {
        let home = format!("{}/", self.home.path().display());
        match self.load(&Flags::default()) {
            Ok(_) => panic!("it was not refused"),
            Err(failure) => failure.to_string().replace(&home, ""),
        }
    }
}

#[test]
fn without_any_setting_the_default_server_is_asked_without_a_token() {
    assert_eq!(
        World::new().explain(&Flags::default()),
        [
            "url=http://127.0.0.1:7117 default",
            "token= default",
            "team= default",
            "project= default",
            "output=table default"
        ]
    );
}

#[test]
fn what_the_local_server_wrote_is_found() {
    let world = World::new()
        .file(".berth/server.json", r#"{"url": "http://127.0.0.1:9000", "pid": 4}"#)
        .file(".berth/admin.token", "hush\n");
    let rows = world.explain(&Flags::default());
    assert_eq!(rows[0], "url=http://127.0.0.1:9000 local server, .berth/server.json");
    assert_eq!(rows[1], "token=(hidden) local server, .berth/admin.token");
    let token = world.load(&Flags::default()).unwrap().token.unwrap();
    assert_eq!(token.value, "hush");
}

#[test]
fn each_layer_gives_way_to_the_one_above() {
    let url = |world: &World, flags: &Flags| world.explain(flags)[0].clone();
    let none = Flags::default();
    let world = World::new().file(".berth/server.json", r#"{"url": "http://local"}"#);
    assert_eq!(url(&world, &none), "url=http://local local server, .berth/server.json");
    let world = world.file(".config/berth/config.toml", "url = 'http://user'\nteam = 'nlp'\n");
    assert_eq!(url(&world, &none), "url=http://user user file .config/berth/config.toml");
    let world = world.file("code/.berth.toml", "url = 'http://project'\noutput = 'json'\n");
    assert_eq!(url(&world, &none), "url=http://project project file code/.berth.toml");
    let world = world.variable("BERTH_URL", "http://variable");
    assert_eq!(url(&world, &none), "url=http://variable variable BERTH_URL");
    let (server, output) = (Some("http://flag".into()), Some(Format::Wide));
    let flags = Flags { server, output, no_pager: false };
    assert_eq!(url(&world, &flags), "url=http://flag flag --server");
    let rows = world.explain(&flags);
    assert_eq!(rows[2], "team=nlp user file .config/berth/config.toml");
    assert_eq!(rows[4], "output=wide flag --output");
    assert_eq!(world.explain(&none)[4], "output=json project file code/.berth.toml");
}

#[test]
fn a_token_that_others_can_read_is_refused() {
    let world = World::new().file_with(".berth/admin.token", "hush", 0o644);
    let refusal = world.refusal();
    assert!(refusal.starts_with(
        "error: .berth/admin.token holds a token and others can read it (mode 644)\n\
         next: Close it with `chmod 600 .berth/admin.token`"
    ));
    let world = World::new().file_with(".config/berth/config.toml", "token = 'hush'", 0o640);
    assert!(world.refusal().contains("chmod 600 .config/berth/config.toml"));
    let world = World::new().file_with(".config/berth/config.toml", "team = 'nlp'", 0o644);
    assert!(world.load(&Flags::default()).is_ok());
}

#[test]
fn the_token_of_the_local_server_goes_nowhere_else() {
    let world = World::new()
        .file(".berth/server.json", r#"{"url": "http://127.0.0.1:9000"}"#)
        .file(".berth/admin.token", "hush")
        .variable("BERTH_URL", "http://elsewhere");
    assert!(world.load(&Flags::default()).unwrap().token.is_none());
}

#[test]
fn only_the_local_server_without_containers_runs_jobs_on_this_machine() {
    let runs_here = |server: &str, url: Option<&str>| {
        let world = World::new().file(".berth/server.json", server);
        let world = match url {
            Some(url) => world.variable("BERTH_URL", url),
            None => world,
        };
        world.load(&Flags::default()).unwrap().runs_here
    };
    let local = r#"{"url": "http://127.0.0.1:9000"}"#;
    assert!(runs_here(local, None));
    assert!(runs_here(local, Some("http://127.0.0.1:9000")));
    assert!(runs_here(r#"{"url": "https://localhost:9000"}"#, None));
    assert!(!runs_here(local, Some("http://127.0.0.1:9001")), "such as a forwarded port");
    let may = |url: &str| {
        let world = World::new().file(".berth/server.json", local).variable("BERTH_URL", url);
        world.load(&Flags::default()).unwrap().may_run_here
    };
    assert!(may("http://127.0.0.1:9001"), "the server of another user, if it says so");
    assert!(!may("http://127.0.0.1:9000") && !may("http://10.0.0.4:9000"));
    assert!(!runs_here(r#"{"url": "http://10.0.0.4:9000"}"#, None));
    assert!(!runs_here(r#"{"url": "http://127.0.0.1:9000", "containers": true}"#, None));
}

#[test]
fn a_project_file_cannot_send_the_users_token_to_a_server_of_its_choice() {
    let world = World::new()
        .file(".config/berth/config.toml", "token = 'hush'\nurl = 'http://ours'")
        .file("code/.berth.toml", "url = 'http://theirs'");
    let refusal = world.refusal();
    assert!(refusal.starts_with("error: code/.berth.toml names the server http://theirs"));
    assert!(!refusal.contains("hush"));
    let world = world.file("code/.berth.toml", "url = 'http://ours'");
    assert_eq!(world.load(&Flags::default()).unwrap().token.unwrap().value, "hush");
    let world =
        world.file("code/.berth.toml", "url = 'http://theirs'").variable("BERTH_TOKEN", "other");
    assert_eq!(world.load(&Flags::default()).unwrap().token.unwrap().value, "other");
}

#[test]
fn a_file_with_a_mistake_names_its_line_and_not_what_stands_there() {
    let world =
        World::new().file(".config/berth/config.toml", "team = 'nlp'\ntoken = 'hush\nurl = 1\n");
    let refusal = world.refusal();
    assert!(refusal.starts_with("error: .config/berth/config.toml:2: "), "{refusal}");
    assert!(!refusal.contains("hush"), "{refusal}");
    let world = World::new().file("code/.berth.toml", "colour = 'red'\n");
    assert!(world.refusal().contains("unknown field `colour`"));
    let world = World::new().variable("BERTH_OUTPUT", "xml");
    assert!(
        world.refusal().starts_with("error: `xml` of the variable BERTH_OUTPUT is not an output")
    );
}

#[test]
fn inside_a_job_the_token_that_is_kept_fresh_is_used_unless_its_user_named_another() {
    let token = |world: &World| {
        let settings = world.load(&Flags::default()).unwrap_or_else(|failure| panic!("{failure}"));
        settings.token.map(|token| (token.value, token.source.to_string()))
    };
    let world = World::new().file("job/.berth-token-0-0", "brj_fresh\n");
    let path = world.home.path().join("job/.berth-token-0-0").display().to_string();
    let world = world.variable("BERTH_TOKEN_FILE", &path);
    let fresh = Some(("brj_fresh".to_owned(), "variable BERTH_TOKEN_FILE".to_owned()));
    assert_eq!(token(&world), fresh);
    let world = world.variable("BERTH_TOKEN", "brj_of_the_start");
    assert_eq!(token(&world), fresh);
    let world = world.variable("BERTH_TOKEN", "brt_personal");
    let named = Some(("brt_personal".to_owned(), "variable BERTH_TOKEN".to_owned()));
    assert_eq!(token(&world), named);
    // A file that is gone leaves the token of the start.
    let world =
        world.variable("BERTH_TOKEN", "brj_of_the_start").variable("BERTH_TOKEN_FILE", "/no");
    let start = Some(("brj_of_the_start".to_owned(), "variable BERTH_TOKEN".to_owned()));
    assert_eq!(token(&world), start);
}
