//! What fields and parameters mean whose name says it to whoever knows Berth, for those who do not.
//! A comment at the type on the wire goes before these; here is what would be repeated there again
//! and again.

use serde_json::Value;

/// Fields by type and name.
const OF_TYPES: &[(&str, &str)] = &[
    ("AtRisk.nodes", "Machines that the job runs on"),
    ("Attempt.exit", "How it ended; none while it goes on"),
    ("AuditKeyRotated.new", "The id of the key that signs from now on"),
    ("AuditList.rows", "Rows of the audit log, the newest first"),
    ("AuditRow.detail", "What was changed, as JSON"),
    ("AuditRow.hash", "The hash of this row and of the one before it"),
    ("AuditRow.outcome", "`ok`, or why it was refused"),
    ("AuditVerified.rows", "Rows that were checked"),
    ("BackupDone.bytes", "How long the file is"),
    ("BackupDone.seq", "The number of the last event that is in it"),
    ("BudgetForecastPoint.at", "A moment of the period to come"),
    ("BudgetPoint.at", "A moment of the period that is past"),
    ("Change.kind", "Which kind of document it is about"),
    ("Change.name", "What it is called"),
    ("Change.new", "The value it gets; none where it goes"),
    ("ClusterFigures.rows", "One for each GPU"),
    ("ConfigEntry.key", "The name of the setting"),
    ("CostLine.from", "When this part of the cost begins"),
    ("CostLine.kind", "What was paid for: a lease, or idle time of a machine"),
    ("CostLine.to", "When it ends"),
    ("CostReport.rows", "One for each group, in the order of `by`"),
    ("CostReport.from", "The first moment that counts"),
    ("CostReport.to", "The moment before which all that counts lies"),
    ("CostRow.job", "The number of the job, where rows are by job"),
    ("CostRow.jobs", "How many jobs it is the cost of"),
    ("CostSeries.step", "How long each point stands for"),
    ("DeviceAsk.client", "What asks to be signed in, in its own words"),
    ("DeviceToken.state", "Whether it was approved yet"),
    ("DeviceToken.token", "The token, once it was approved"),
    ("Event.at", "When it happened"),
    ("Event.seq", "Its number; ask for those after it to go on"),
    ("EventKind.kind", "Which kind of event it is"),
    ("EventKind.problem", "Why the stream ends"),
    ("EventKind.id", "The number of the job"),
    ("EventKind.name", "What the job is called"),
    ("EventKind.node", "Which machine it is about"),
    ("EventKind.state", "The state that it is in now"),
    ("EventKind.queue", "Which queue has changed"),
    ("EventKind.position", "Where the text begins in its log"),
    ("EventKind.code", "What the alert is about, as a stable word"),
    ("Exit.kind", "Which kind of end it was"),
    ("Exit.code", "The exit code of the process that decided it"),
    ("FieldError.column", "Where in the line it is, counted from 1"),
    ("FieldError.message", "What is wrong, and what was expected"),
    ("FigureAdvice.text", "What to do, in a sentence"),
    ("FigureLine.figure", "What was measured"),
    ("GpuCheck.at", "When it was made"),
    ("GpuFigures.figures", "What was measured of the GPU"),
    ("GpuHolder.name", "What the job is called"),
    ("HeldLease.from", "When the lease began"),
    ("HeldLease.to", "When it ended; none while it is held"),
    ("HeldLease.task", "The part of the job that has it, counted from 0"),
    ("IdleCause.text", "Why nobody held it, in words"),
    ("Job.id", "The number of the job, with its element if it is one of an array"),
    ("Job.kind", "Whether it is a job, a notebook or a service"),
    ("Job.nodes", "How many parts it has, each on one machine"),
    ("JobFigures.advice", "What its user could do better"),
    ("JobFile.kind", "Whether it is a file, a folder or something else"),
    ("JobFile.name", "What it is called, without the folder it is in"),
    ("JobFileList.path", "The folder, from that of the job on"),
    ("JobFileList.job", "Whose folder it is"),
    ("JobSubmitted.name", "What the job is called"),
    ("LeaseList.leases", "Those that jobs hold or held"),
    ("LogMatches.matches", "The lines, in the order of the logs"),
    ("LogMatch.at", "When it was printed, where that is known"),
    ("Me.teams", "The teams one is in, with the role in each"),
    ("Me.user", "The user's name"),
    ("Node.jobs", "Jobs that run there"),
    ("Node.name", "What the machine is called"),
    ("Node.until", "When it leaves, where that is known"),
    ("NodeFigures.gpus", "One for each of its GPUs"),
    ("OpenSession.means", "How the user signed in"),
    ("OpenSession.id", "What to revoke it by"),
    ("Plan.name", "What the job would be called"),
    ("Plan.team", "Whose it would be"),
    ("Plan.elements", "Into how many jobs an array would fall"),
    ("Plan.eta", "When it would start, where that is not at once"),
    ("Placement.task", "The part of the job that would lie there, counted from 0"),
    ("Policy.version", "A number that grows with each change"),
    ("Problem.title", "The problem in a few words, the same for all of its code"),
    ("Problem.status", "The HTTP status of the answer"),
    ("PromisedPlace.task", "The part of the job, counted from 0"),
    ("Project.name", "What the project is called"),
    ("Queue.name", "What the queue is called; a team has the one of its own name"),
    ("Queue.parent", "The queue above it, whose GPUs they share"),
    ("QueueLine.position", "The place in line, counted from 1"),
    ("QueueLine.name", "What the job is called"),
    ("ReservedNodes.name", "What the reservation is called"),
    ("Schedule.file", "The job file that it submits"),
    ("Schedule.id", "The id to name it by"),
    ("Schedule.name", "What its jobs are called"),
    ("Secret.by", "Who set it last"),
    ("Secret.name", "What the secret is called"),
    ("SecretSet.value", "What it holds; no answer of the server ever has it"),
    ("Segment.from", "When this part begins"),
    ("Segment.to", "When it ends; none while it goes on"),
    ("Session.id", "What to revoke it by"),
    ("Session.means", "How the user signed in"),
    ("SessionOptions.oidc", "The provider of identities, where there is one"),
    ("SignIn.token", "A token of the user"),
    ("Sooner.starts", "When the job would start then; none: at once"),
    ("Sooner.set", "The body of `PATCH /v1/jobs/{job}` that makes the change"),
    ("Sooner.clone", "The body of `POST /v1/jobs/{job}/clone` that makes the change"),
    ("Sooner.total_micros", "What it would come to in all then, in millionths of a dollar"),
    ("TaskFigures.figures", "What was measured of the task"),
    ("Team.name", "What the team is called, as its queue is"),
    ("Template.by", "Who made it"),
    ("Template.name", "What the template is called"),
    ("TemplateSet.file", "The job file to keep"),
    ("Timeline.exit", "How it ended; none while it goes on"),
    ("Token.id", "What to revoke it by; it is not the secret"),
    ("Token.name", "What its owner calls it"),
    ("TokenCreated.secret", "The token itself; no other answer has it"),
    ("TokenCreated.token", "What is known of it later"),
    ("User.name", "What the user is called"),
    ("User.teams", "The teams the user is in, with the role in each"),
    ("UserCreate.name", "What the user is called"),
    ("Version.version", "The version of the server"),
    ("Volume.name", "What the volume is called"),
    ("Warning.line", "The line of the file it is about, counted from 1"),
    ("Warning.message", "What has no effect, or was done otherwise, and why"),
    ("Why.eta", "When it is expected to start"),
    ("Why.id", "The number of the job"),
    ("Why.name", "What the job is called"),
    ("WorldText.at", "Of which moment it is"),
    ("WorldText.text", "The world file"),
];

/// Fields and parameters by name, whatever has them.
const EVERYWHERE: &[(&str, &str)] = &[
    ("action", "What Berth does when the budget is spent"),
    ("amount_micros", "Millionths of a dollar"),
    ("approve", "Whether to let it in"),
    ("asks", "What it asks for, in the words of its file"),
    ("at", "When that was"),
    ("at_most_to", "When it ends at the latest, by the limit of its job"),
    ("attempt", "The attempt, counted from 0"),
    ("borrowed_milli", "Thousandths of GPUs that it uses beyond its quota"),
    ("by", "What it is split by"),
    ("bytes", "How long it is"),
    ("causes", "Why it cost something although nobody held it"),
    ("celsius", "How hot it is"),
    ("change", "Whether something is added, changed or removed"),
    ("changes", "What would be changed, or was"),
    ("checked", "What its last check came to"),
    ("closed", "When it ended; none while it goes on"),
    ("cluster_role", "The role for the whole cluster; none where there is none"),
    ("code", "The code that was shown"),
    ("comment", "A remark for people"),
    ("cost_micros", "What it has cost so far, in millionths of a dollar"),
    ("cpu_free_milli", "Thousandths of CPU cores that no job claims"),
    ("cpu_milli", "Thousandths of CPU cores that it has"),
    ("created", "When it was made"),
    ("created_at", "When it was asked for"),
    ("credits_gpu_s", "Credits for what it did not use, in GPU-seconds"),
    ("cron", "Five fields: minute, hour, day, month and day of the week"),
    ("cursor", "`next` of the answer before, for the page after it"),
    ("deadline", "When it must be done: a moment, or a time from now; `null` for none"),
    ("declared", "The GPUs are bookkeeping, and not real"),
    ("default_project", "The project of jobs that name none"),
    ("detail", "The particulars"),
    ("device_code", "What the command line was given to ask with"),
    ("documents", "YAML documents, one after another"),
    ("elements", "How many jobs an array falls into"),
    ("empty_at", "When the machine is empty if all of them take the whole of their time"),
    ("ended", "When it ended; none before"),
    ("energy_joules", "Energy that it took"),
    ("entries", "What is in the folder, in the order of names"),
    ("error", "Why the provider refused"),
    ("eta", "When it is expected to start, in half of all cases"),
    ("eta_p90", "When it is expected to have started in nine of ten cases"),
    ("exit", "How its process ended"),
    ("expected_to", "When it is expected to end"),
    ("experiment", "The experiment it belongs to"),
    ("expires", "When it ends by itself; none where it does not"),
    ("expires_at", "When it is too late to approve it"),
    ("fair_share_milli", "Thousandths of GPUs that it is entitled to now"),
    ("figure", "What was measured"),
    ("figures", "What was measured"),
    ("file", "A job file"),
    ("free_milli", "Thousandths of GPUs that nobody holds"),
    ("from", "The first moment that counts"),
    ("gpu", "The number of the GPU on its machine, counted from 0"),
    ("gpu_memory_p95", "The memory that 95 % of all samples stay below, in bytes"),
    ("gpu_ms", "GPU-milliseconds"),
    ("gpus", "The numbers of its GPUs"),
    ("gpus_milli", "Thousandths of GPUs"),
    ("healthy", "Whether it may take work"),
    ("hold", "Whether it waits until it is released"),
    ("holders", "The jobs that hold it or a part of it"),
    ("id", "What it is named by"),
    ("index", "The number of the GPU on its machine, counted from 0"),
    ("isolation", "How jobs are kept apart there"),
    ("items", "What was asked for"),
    ("job", "The number of a job"),
    ("jobs", "Jobs"),
    ("kind", "Which kind it is"),
    ("knobs", "The settings of the scheduler by name"),
    ("labels", "Labels by name"),
    ("last", "The last value"),
    ("last_checkpoint", "When it saved last; none where it has not"),
    ("last_job", "The job that it made last"),
    ("last_used", "When it was used last; none where it was not"),
    ("leases", "What its parts hold or held, on which machines"),
    ("limit_micros", "What may be spent in one period, in millionths of a dollar"),
    ("line", "The line, counted from 1"),
    ("lost_micros", "What the work since the last save has cost, in millionths of a dollar"),
    ("max", "The largest value"),
    ("mean", "The mean value"),
    ("means", "How the user signed in"),
    ("measured", "What the check measured"),
    ("memory_bytes", "Memory that it has"),
    ("memory_free_bytes", "Memory that no job claims"),
    ("message", "What it is, in words"),
    ("method", "The HTTP method of the request"),
    ("milli", "Thousandths of the GPU"),
    ("model", "The model of the GPU"),
    ("modified_at", "When it was changed last"),
    ("name", "What it is called"),
    ("next", "Where the next page begins; none after the last"),
    ("node", "The name of the machine"),
    ("nodes", "Machines"),
    ("notes", "What to know of the answer, in sentences"),
    ("ok", "Whether it is well"),
    ("old", "The value it has now; none where there is none"),
    ("opened", "When it began"),
    ("outcome", "What came of it"),
    ("p50", "In half of all cases"),
    ("p50_micros", "In half of all cases, in millionths of a dollar"),
    ("p90", "In nine of ten cases"),
    ("p90_micros", "In nine of ten cases, in millionths of a dollar"),
    ("parent", "The team above it"),
    ("passed", "Whether it passed"),
    ("past_use_gpu_s", "What it used, the longer ago the less it counts, in GPU-seconds"),
    ("path", "The path"),
    ("paused", "It makes no jobs until it is resumed"),
    ("per", "How long a period is"),
    ("period_from", "When the period began"),
    ("period_to", "When the period ends"),
    ("places", "Where it would lie"),
    ("position", "Bytes of the log that come before"),
    ("price_micros_per_hour", "What an hour costs, in millionths of a dollar"),
    ("priority", "Its priority as a number; larger goes first"),
    ("problem", "What is wrong, and what to do about it"),
    ("project", "The name of a project"),
    ("promised", "What the scheduler keeps for jobs that wait"),
    ("queue", "The name of a queue"),
    ("quota_milli", "Thousandths of GPUs that it is promised"),
    ("rank", "The process within its task, counted from 0"),
    ("reason", "Why, in a sentence"),
    ("reserved", "What operators keep free"),
    ("restarts_at", "When it is expected to run again"),
    ("restarts_at_p90", "When it runs again in nine of ten cases"),
    ("revoked", "When it was revoked; none where it was not"),
    ("role", "What one may do there"),
    ("rows", "One for each"),
    ("running", "Jobs that run"),
    ("runs_out_at", "When the budget is expected to be spent; none: not in this period"),
    ("runs_out_at_p90", "When it is spent in the dearest case of ten"),
    ("schedule", "The id or the name of a schedule"),
    ("scope", "What the token is good for"),
    ("secret", "The name of a secret"),
    ("seq", "Its number"),
    ("session", "The id of a session"),
    ("signal", "The signal that ended it"),
    ("since", "From this moment on"),
    ("spent_micros", "What was spent, in millionths of a dollar"),
    ("started", "When it started; none before"),
    ("starts_now", "Whether it would start at once"),
    ("state", "The state that it is in"),
    ("status", "The HTTP status"),
    ("step", "How long each point stands for"),
    ("step_ms", "Milliseconds between two points"),
    ("stream", "Who printed it"),
    ("submitted", "When it was submitted"),
    ("summary", "The figures in brief"),
    ("tags", "Words to find it by"),
    ("target", "What was acted on"),
    ("task", "A part of a job on one machine, counted from 0"),
    ("team", "The name of a team"),
    ("teams", "Names of teams"),
    ("template", "The name of a template; `TEAM:NAME` where several teams have one"),
    ("text", "In words"),
    ("thresholds_milli", "At which thousandths of the limit operators are told"),
    ("to", "The moment before which all that counts lies"),
    ("token", "The id of a token"),
    ("took_ms", "How long it took in milliseconds"),
    ("total_micros", "The sum, in millionths of a dollar"),
    ("unit", "What the values are in"),
    ("until", "Before this moment"),
    ("used_bytes", "Memory in use"),
    ("used_milli", "Thousandths of GPUs in use"),
    ("user", "The name of a user"),
    ("uuid", "The number that the maker gave the GPU"),
    ("value", "The value"),
    ("verification_uri", "The page where the user approves it"),
    ("version", "The version"),
    ("volume", "The name of a volume"),
    ("wait_p90_ms", "Nine of ten that started in the last day had waited less, in milliseconds"),
    ("waiting", "Jobs that wait"),
    ("warnings", "What was taken as written and has no effect here"),
    ("watts", "The power that it draws"),
    ("weight_milli", "What it gets of what is left over, beside others"),
    ("what", "What was done: the name of a route, such as `submit_job`"),
    ("who", "The name of a user; `berth` for the server itself"),
    ("whole", "Whether nothing is missing and nothing was changed"),
];

fn find(table: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    table.iter().find(|(known, _)| *known == name).map(|(_, words)| *words)
}

fn of_field(of: &str, name: &str) -> Option<&'static str> {
    find(OF_TYPES, &format!("{of}.{name}")).or_else(|| find(EVERYWHERE, name))
}

/// Says of a parameter what it means, where nothing does yet.
pub fn describe_parameter(parameter: &mut Value) {
    if parameter["description"].is_string() {
        return;
    }
    let words = parameter["name"].as_str().and_then(|name| find(EVERYWHERE, name));
    if let Some(words) = words {
        parameter["description"] = words.into();
    }
}

/// The same of all fields of a schema, and of those in it.
pub fn describe_fields(of: &str, schema: &mut Value) {
    match schema {
        Value::Object(parts) => {
            if let Some(Value::Object(fields)) = parts.get_mut("properties") {
                for (name, field) in fields {
                    if !field["description"].is_string()
                        && let Some(words) = of_field(of, name)
                    {
                        field["description"] = words.into();
                    }
                }
            }
            parts.values_mut().for_each(|part| describe_fields(of, part));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| describe_fields(of, item)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_type_says_of_its_fields_goes_before_what_all_say() {
        let own = json!({ "type": "string", "description": "its own" });
        let mut schema = json!({ "oneOf": [{ "properties": { "name": {}, "team": own } }] });
        describe_fields("Node", &mut schema);
        let fields = &schema["oneOf"][0]["properties"];
        assert_eq!(fields["name"]["description"], "What the machine is called");
        assert_eq!(fields["team"]["description"], "its own");
    }

    #[test]
    fn nothing_is_said_twice_of_one_name() {
        for table in [OF_TYPES, EVERYWHERE] {
            let mut names: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count);
        }
    }
}
