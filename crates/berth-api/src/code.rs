//! The stable codes of problems. Each has a page of its own in docs/errors, which is made from this
//! table; a code never changes its meaning and is never given to another problem.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// What the command line ends with when a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Failed = 1,
    Usage = 2,
    Refused = 3,
    NotFound = 4,
}

macro_rules! codes {
    ($($code:ident $name:ident $status:literal $exit:ident $title:literal
        cause: $cause:literal
        next: $next:literal)*) => {
        /// What kind of problem it is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $title] $name,)*
        }

        impl Code {
            pub const ALL: &[Code] = &[$(Code::$name),*];

            pub const fn code(self) -> &'static str {
                match self {
                    $(Code::$name => stringify!($code),)*
                }
            }

            /// The HTTP status of its answer.
            pub const fn status(self) -> u16 {
                match self {
                    $(Code::$name => $status,)*
                }
            }

            pub const fn exit(self) -> Exit {
                match self {
                    $(Code::$name => Exit::$exit,)*
                }
            }

            pub const fn title(self) -> &'static str {
                match self {
                    $(Code::$name => $title,)*
                }
            }

            /// How it comes about.
            pub const fn cause(self) -> &'static str {
                match self {
                    $(Code::$name => $cause,)*
                }
            }

            /// What to do about it.
            pub const fn next(self) -> &'static str {
                match self {
                    $(Code::$name => $next,)*
                }
            }
        }
    };
}

codes! {
    BRT0001 BadJobFile 400 Usage "The job file could not be read"
        cause: "The text is not YAML or JSON, has a key that Berth does not know, or has a value \
                that a key does not take. The answer lists every mistake with its line and column."
        next: "Fix the lines above; docs/job-file.md lists all keys with examples."
    BRT0002 JobRefused 422 Usage "The job cannot run as written"
        cause: "Berth read the file, but cannot do what it asks for: it names a GPU model that \
                does not exist, a container image where there are no containers or a deadline in \
                the past, or it has an array and a sweep."
        next: "Change the key that the message names, and try the file with `berth plan`."
    BRT0003 BadRequest 400 Usage "The request is not valid"
        cause: "This route does not accept that body or parameter."
        next: "Compare the request with /openapi.json. If Berth's own command line sent it, check \
               that it is not newer than the server: `berth --version`."
    BRT0004 NoToken 401 Refused "A token is required"
        cause: "The request has no token, or one that Berth does not know. In a browser, you are not \
                signed in, or the cookie came without the key of its session."
        next: "Set BERTH_TOKEN, or `token` in the settings of the command line. On the server's \
               machine the command line finds the token that `berth up` wrote. `berth config \
               explain` shows which token is used."
    BRT0005 TokenEnded 401 Refused "The token has expired or was revoked"
        cause: "A token ends at the time it was created with, or at once when it is revoked. Open \
                streams end with their token."
        next: "Create another one with `berth token create`, or ask an admin for one."
    BRT0006 Forbidden 403 Refused "Permission denied"
        cause: "None of your roles allows this. docs/authorization.md lists what each role can do."
        next: "Ask a lead of the team or an admin. `berth whoami` shows your roles."
    BRT0007 ScopeTooSmall 403 Refused "The scope of the token is too small"
        cause: "The token was created with a smaller scope than this takes, such as only to read \
                or only to run jobs. Your roles have to allow it, too."
        next: "Use another token. `berth login` gets one where your browser is signed in, and an \
               admin can create one for you: `berth token create NAME --user YOU --scope all`."
    BRT0008 NoSuchJob 404 NotFound "There is no such job"
        cause: "No job has that number or name, or you may not see it."
        next: "List jobs with `berth ps --all`."
    BRT0009 NotFound 404 NotFound "Not found"
        cause: "No node, queue, team, user, token, template, schedule, secret or volume has that \
                name, or you may not see it."
        next: "List what there is with the command of that kind, such as `berth nodes`. Things of \
               a team are looked for in your default team; `--team TEAM` names another."
    BRT0010 NoSuchRoute 404 Usage "There is no such route"
        cause: "The API has no such path, or the path does not accept this method."
        next: "See /openapi.json. If Berth's own command line sent the request, check that it is \
               not newer than the server: `berth --version`."
    BRT0011 WrongState 409 Refused "Not possible in the job's current state"
        cause: "The job, node or schedule is in a state that does not allow this. For example, a \
                job that has ended cannot be paused, and a running job cannot be resumed."
        next: "Check its state first: `berth ps ID`."
    BRT0012 Exists 409 Refused "It already exists"
        cause: "Something of the same kind already has that name."
        next: "Choose another name, or change the existing one."
    BRT0013 InUse 409 Refused "It is in use"
        cause: "Something else depends on it: a team has jobs, volumes or data, a user or project \
                has jobs, jobs use a volume, a queue has queues below it, or a node runs work."
        next: "Move or end what uses it first. The message names it."
    BRT0014 KeyReused 422 Refused "The idempotency key was used for another request"
        cause: "An earlier request had the same Idempotency-Key and another body. A key stands for \
                one submission, so that a repeated request makes one job."
        next: "Use a new key for a new request."
    BRT0015 TooLarge 413 Usage "The request is too large"
        cause: "The body is larger than this route accepts. A job file has at most 1 MiB."
        next: "Keep data in volumes and scripts in files, and name them in the job file."
    BRT0016 WrongMediaType 415 Usage "Unsupported Content-Type"
        cause: "This route does not accept that Content-Type."
        next: "Send application/yaml or application/json."
    BRT0017 TooMany 429 Refused "Too many requests at once"
        cause: "You have more open streams or requests than one user may have."
        next: "Close some of them, or wait a moment and try again."
    BRT0018 OverBudget 403 Refused "The budget does not allow it"
        cause: "The budget of the team, or of a team above it, is spent and blocks new work."
        next: "Wait for the next period, or ask an admin for more: `berth budget`."
    BRT0019 NeverFits 422 Refused "The job would never start"
        cause: "Even the empty cluster has no room for the job, or its team may use less than it \
                asks for. It would wait forever, so Berth refuses it. The message names what is \
                too large."
        next: "Ask for less or for other GPUs: `berth gpus` lists the GPUs, and `berth plan` tries \
               a job file."
    BRT0020 NoSuchSecret 422 NotFound "The team does not have a secret that the job names"
        cause: "Secrets belong to teams, and the job's team has no secret of that name."
        next: "Save it with `berth secret set NAME`, or ask a lead of the team to."
    BRT0021 BadDocuments 400 Usage "The documents could not be read"
        cause: "A document is not YAML, has a key or kind that Berth does not know, or has a value \
                that a key does not take. The answer lists the mistakes with their lines."
        next: "Fix the lines above, and check the result with `berth diff -f FILE`."
    BRT0022 Rejected 422 Refused "The scheduler rejected the change"
        cause: "The change contradicts the rules of the cluster: a queue below itself, a negative \
                quota, or a policy that contradicts itself. docs/rejections.md lists all reasons."
        next: "Do what the message says, and try again."
    BRT0023 BadCursor 400 Usage "The cursor is not valid"
        cause: "A cursor works only unchanged, and only for the list and the filters it came with."
        next: "Start from the first page."
    BRT0024 StoreDown 503 Failed "The database does not answer"
        cause: "The server runs, but cannot reach its database. Running jobs continue, and nothing \
                that was acknowledged is lost."
        next: "Try again in a moment. If this lasts, check the server's log and the database."
    BRT0025 StoreFull 507 Failed "The server's disk is full"
        cause: "The server could not write to the database, or the disk that it keeps tasks on is \
                full or almost full. The message has the error of the operating system. Running \
                jobs continue, accepted jobs wait, and what was acknowledged is safe. Everything \
                else is done when there is room, or not at all."
        next: "Free space on the disk. The server continues by itself, and `berth nodes` shows \
               whether the machine takes work again. Then check whether the request was carried \
               out, or send it again with the same Idempotency-Key. A job that fills the disk can \
               be stopped on a full disk too."
    BRT0026 NotReady 503 Failed "The server is starting or stopping"
        cause: "The server reads its log, or is shutting down."
        next: "Try again in a moment. /readyz answers when the server takes requests."
    BRT0027 Internal 500 Failed "Internal error of the server"
        cause: "This is a bug in Berth. The server's log has the details under the instance that \
                the answer names."
        next: "Report it with the instance and the lines of the log. Berth left nothing half done."
    BRT0028 NotHere 501 Refused "This cluster does not support it"
        cause: "The feature needs another kind of cluster, or a setting that is off."
        next: "Do what the message says."
    BRT0029 PriorityTooHigh 403 Refused "You may not use a priority that high"
        cause: "Priority classes are a right: a researcher may use classes up to `high`, a team \
                lead those that do not reach across queues, an operator or admin of the cluster \
                all. A queue can set other limits with `class_limit`. A number counts as the class \
                it reaches."
        next: "Use a lower class, or ask a user with that right to raise the job: `berth set JOB \
               priority=CLASS`. docs/authorization.md lists who may use which class."
    BRT0030 TooSlow 408 Failed "The request was too slow"
        cause: "The body of the request did not arrive within a minute. The server stops waiting, \
                so that slow clients do not block others."
        next: "Send it again over a faster connection or with a smaller body. Nothing was changed."
    BRT0031 CrossSite 403 Refused "The request does not come from Berth's own pages"
        cause: "A signed-in browser sent the request from a page of another origin, or a page of \
                another site sent the browser to a sign-in. Another site, or a job that answers at \
                another port, may have forged it."
        next: "Reload the portal and try again. In a script, use a token instead of the cookie of \
               a browser: `berth token create`. Behind a proxy, check that the server knows its \
               address: `--public-url`."
    BRT0032 TooManySignIns 429 Refused "Too many attempts to sign in"
        cause: "This address, or all addresses together, made more attempts to sign in than the \
                server allows in that time. The header Retry-After has the seconds until the next \
                one."
        next: "Wait that long. If you did not try to sign in, tell the operator of the server; the \
               audit log has the attempts."
    BRT0033 SignInFailed 403 Refused "Signing in with the identity provider failed"
        cause: "The provider's answer does not match what this browser asked for: signing in took \
                longer than ten minutes or began in another browser, the provider refused, or its \
                answer has no valid signature."
        next: "Sign in again. If it fails again, see the server's log and docs/operate/sign-in.md."
    BRT0034 NoAccess 403 Refused "The identity provider knows you, but Berth does not"
        cause: "Berth has no user of this name and creates none, a user of this name exists and is \
                not linked to you, none of your groups at the provider gives a role in Berth, or the \
                name is an account of the machine that jobs run on."
        next: "Ask an admin to add or link you, or to map one of your groups to a role: \
               docs/operate/sign-in.md."
    BRT0035 ProviderDown 503 Failed "The identity provider does not answer"
        cause: "Berth could not reach the provider or understand its answer, so users cannot sign \
                in with it. Users who are signed in stay signed in."
        next: "Try again in a moment, or sign in with a token. The server's log has the error."
}

impl Code {
    /// The code that is written so.
    pub fn find(code: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|known| known.code() == code)
    }

    /// Its page.
    pub fn page(self) -> String {
        let (code, title) = (self.code(), self.title());
        let (status, exit) = (self.status(), self.exit() as i32);
        let (cause, next) = (wrapped(self.cause()), wrapped(self.next()));
        format!(
            "# {code}: {title}\n\nHTTP status {status}; the command line ends with {exit}.\n\n\
             ## Cause\n\n{cause}\n\n## What to do\n\n{next}\n"
        )
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Code, D::Error> {
        let text = String::deserialize(deserializer)?;
        Code::find(&text).ok_or_else(|| serde::de::Error::custom(format!("no code {text}")))
    }
}

impl PartialSchema for Code {
    fn schema() -> RefOr<Schema> {
        let codes = Code::ALL.iter().map(|code| code.code());
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(codes)).into()
    }
}

impl ToSchema for Code {}

/// Lines of at most 80 letters.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > 80 {
            lines.push(word.to_owned());
            continue;
        }
        line.push_str(if line.is_empty() { "" } else { " " });
        line.push_str(word);
    }
    lines.join("\n")
}
