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
        cause: "The text is not YAML or JSON, has a key that Berth does not know, or a value that \
                makes no sense. The answer lists every mistake with its line and column."
        next: "Mend the lines that are named; docs/job-file.md lists all keys with examples."
    BRT0002 JobRefused 422 Usage "The job cannot be run as written"
        cause: "The file was read, but what it asks for cannot be done here: a GPU model that does \
                not exist, a container image where there are no containers, a deadline that is \
                over, an array beside a sweep."
        next: "Change the key that is named, and look at the job first with `berth plan`."
    BRT0003 BadRequest 400 Usage "The request could not be read"
        cause: "The body or a parameter of the address is not what this route takes."
        next: "Compare it with /openapi.json. With Berth's own command line, see that it is not \
               newer than the server: `berth --version`."
    BRT0004 NoToken 401 Refused "A token is needed"
        cause: "The request carried no token, or one that Berth does not know. Of a browser: nobody is \
                signed in, or the cookie came without the key of its session."
        next: "Set BERTH_TOKEN, or `token` in the settings of the command line; on the server's \
               machine the token that `berth up` wrote is found by itself. `berth config explain` \
               says which one is used."
    BRT0005 TokenEnded 401 Refused "The token has expired or was revoked"
        cause: "Tokens end at the time they were given, or at once when they are revoked; streams \
                that are open with one end with it."
        next: "Ask for another: `berth token create`, or an admin who makes one for you."
    BRT0006 Forbidden 403 Refused "You may not do this"
        cause: "None of your roles allows it. docs/authorization.md says which role can do what."
        next: "Ask a lead of the team, or an admin. `berth whoami` shows your roles."
    BRT0007 ScopeTooSmall 403 Refused "The token is not good for this"
        cause: "Your roles allow it, but the token you used was made for less: to read, or to run \
                jobs."
        next: "Use another token, or make one with a larger scope: `berth token create --scope all`."
    BRT0008 NoSuchJob 404 NotFound "There is no such job"
        cause: "No job has that number or name, or none that you may see."
        next: "List jobs with `berth ps --all`."
    BRT0009 NotFound 404 NotFound "There is no such thing"
        cause: "Nothing of that kind has that name: a node, queue, team, user, token, template, \
                schedule, secret or volume; or none that you may see."
        next: "List what there is with the command of the same kind, such as `berth nodes`."
    BRT0010 NoSuchRoute 404 Usage "There is no such address"
        cause: "The path is none of this API, or not with this method."
        next: "Look at /openapi.json. With Berth's own command line, see that it is not newer than \
               the server: `berth --version`."
    BRT0011 WrongState 409 Refused "It is not in a state for that"
        cause: "The job, node or schedule is in a state in which this cannot be done: a job that has \
                ended cannot be paused, and one that runs cannot be resumed."
        next: "Look at its state first: `berth ps ID`."
    BRT0012 Exists 409 Refused "There is one already"
        cause: "Something of the same kind has that name."
        next: "Choose another name, or change the one there is."
    BRT0013 InUse 409 Refused "It is in use"
        cause: "Others depend on it: a team with jobs or volumes, a volume that jobs use, a queue \
                with queues below it, a node with running work."
        next: "Move or end what uses it first; the answer says what that is."
    BRT0014 KeyReused 422 Refused "The idempotency key was used for another request"
        cause: "The same Idempotency-Key came with another body before. A key stands for one \
                submission, so that a repeated request makes one job."
        next: "Take a new key for a new request."
    BRT0015 TooLarge 413 Usage "The request is too large"
        cause: "The body is larger than this route takes. Job files have at most 1 MiB."
        next: "Keep data in volumes and scripts in files, and name them in the job file."
    BRT0016 WrongMediaType 415 Usage "The body is of a kind that is not understood"
        cause: "The Content-Type is none that this route takes."
        next: "Send application/yaml or application/json."
    BRT0017 TooMany 429 Refused "Too many requests at once"
        cause: "You have more streams or requests open than one user may have."
        next: "Close some of them, or wait a moment and try again."
    BRT0018 OverBudget 403 Refused "The budget does not allow it"
        cause: "The budget of the team, or of a team above it, is spent and blocks new work."
        next: "Wait for the next period, or ask an admin for more: `berth budget`."
    BRT0019 NeverFits 422 Refused "It would never start"
        cause: "Even the empty cluster has no room for it, or its team is allowed less than it asks \
                for. It would wait forever, so it is refused; the answer says what is too large."
        next: "Ask for less, or for other GPUs: `berth gpus` lists those there are, and `berth plan` \
               tries a job file."
    BRT0020 NoSuchSecret 422 NotFound "The job names a secret that the team does not have"
        cause: "Secrets belong to teams; the job's team has none of that name."
        next: "Ask a lead of the team to keep one: `berth secret set NAME`."
    BRT0021 BadDocuments 400 Usage "The documents could not be read"
        cause: "A document to be applied is not YAML, has a key or kind that Berth does not know, \
                or a value that makes no sense. The answer lists the mistakes with their lines."
        next: "Mend the lines that are named, and look at the outcome with `berth diff -f FILE`."
    BRT0022 Rejected 422 Refused "The cluster does not take it"
        cause: "The scheduler refused the change: a queue below itself, a negative quota, a policy \
                that contradicts itself. docs/rejections.md lists all reasons."
        next: "Do what the detail says, and try again."
    BRT0023 BadCursor 400 Usage "The cursor is not one of ours"
        cause: "Cursors are good for the list and the filters they came with, and only as they are."
        next: "Start from the first page."
    BRT0024 StoreDown 503 Failed "The database does not answer"
        cause: "The server runs, but cannot reach its database. Running jobs go on; nothing that was \
                acknowledged is lost."
        next: "Try again in a moment. If it stays so, look at the server's log and the database."
    BRT0025 StoreFull 507 Failed "There is no room left on the server's disk"
        cause: "The database could not be written, or the disk that the server keeps tasks on is full \
                or almost full. The message has the operating system's own error. Running jobs go \
                on, jobs that were taken wait, and what was acknowledged is safe; what was not is \
                carried out when there is room, or not at all."
        next: "Make room on the disk; the server goes on by itself, and `berth nodes` shows whether \
               the machine takes work again. Then look whether the request has been carried out, or \
               send it again with the same Idempotency-Key. A job that fills the disk can be \
               stopped on a full disk, too."
    BRT0026 NotReady 503 Failed "The server is starting or ending"
        cause: "It reads its log, or was told to end."
        next: "Try again in a moment; /readyz says when it takes requests."
    BRT0027 Internal 500 Failed "Something is wrong with the server"
        cause: "A mistake of ours. The server's log has the details under the instance that the \
                answer names."
        next: "Report it with the instance and the lines of the log; nothing half done is left \
               behind."
    BRT0028 NotHere 501 Refused "This cluster cannot do that"
        cause: "The feature needs another kind of cluster, or a setting that is off."
        next: "Do what the detail says."
    BRT0029 PriorityTooHigh 403 Refused "The priority is higher than you may use"
        cause: "Priority classes are a right: a researcher uses those up to `high`, a team lead \
                those that do not reach across queues, an operator or admin of the cluster all. A \
                queue can set other limits with `class_limit`. A number counts as the class it \
                reaches."
        next: "Name a lower class, or ask somebody with that right to raise the job: `berth set JOB \
               priority=CLASS`. docs/authorization.md says who may use which class."
    BRT0030 TooSlow 408 Failed "The request came too slowly"
        cause: "The body of the request did not arrive within a minute. The server does not wait \
                longer, because whoever sends nothing would keep others from being answered."
        next: "Send it again, over a faster connection or with a smaller body; nothing was changed."
    BRT0031 CrossSite 403 Refused "The request does not come from Berth's own pages"
        cause: "A browser that is signed in sent it from a page of another origin. Such a request may have \
                been made up by another site, or by a job that answers at another port."
        next: "Reload the portal and try again. A script of yours should not use the cookie of a \
               browser, but a token: `berth token create`. Behind a proxy, see that the server knows \
               its address: `--public-url`."
    BRT0032 TooManySignIns 429 Refused "Too many tries to sign in"
        cause: "From this address, or from all together, more sign-ins have failed or begun than the \
                server takes in such a time. The header Retry-After says in how many seconds it \
                takes the next."
        next: "Wait that long. If nobody at your address has tried, tell whoever runs the server; the \
               audit log has the tries."
    BRT0033 SignInFailed 403 Refused "The sign-in with the identity provider failed"
        cause: "What came back from the provider was not what this browser had asked for: the sign-in \
                took longer than ten minutes or was begun in another browser, the provider refused, \
                or its answer was not signed as it should be."
        next: "Begin the sign-in again. If it fails again, the server's log and docs/operate/sign-in.md \
               say more."
    BRT0034 NoAccess 403 Refused "You are known to the identity provider, and not to Berth"
        cause: "Berth has no user of this name and makes none, none of the groups at the provider gives \
                a role here, or the name belongs to somebody else: in Berth, or on the machine that \
                jobs run on."
        next: "Ask an admin to add you, or to let one of your groups give a role: \
               docs/operate/sign-in.md."
    BRT0035 ProviderDown 503 Failed "The identity provider does not answer"
        cause: "Berth could not reach the provider, or did not understand it, so nobody can sign in by \
                it. Who is signed in stays so."
        next: "Try again in a moment, or sign in with a token. The server's log says what went wrong."
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
