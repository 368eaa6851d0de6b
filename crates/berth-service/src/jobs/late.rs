//! Whether a job may still run when it should be done.

use berth_api::wire;
use berth_model::{JobRequest, Span, Time};

/// What to say of a job whose time limit reaches beyond its deadline.
pub fn warning(request: &JobRequest, default_limit: Span, now: Time) -> Option<wire::Warning> {
    told(request.deadline?, request.begin, request.time_limit.unwrap_or(default_limit), now)
}

fn told(deadline: Time, begin: Option<Time>, limit: Span, now: Time) -> Option<wire::Warning> {
    let left = deadline - begin.unwrap_or(now).max(now);
    if limit <= left {
        return None;
    }
    let left = Span::secs(left.0.max(0) / 1_000);
    let message = format!(
        "the job may run for {limit}, and {left} are left until its deadline: it may end too late; \
         name a shorter `time` or a later deadline"
    );
    Some(wire::Warning { key: "deadline".to_owned(), message, line: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_limit_beyond_the_deadline_is_told() {
        let now = Time(1_000);
        let after = |span: Span| now + span;
        let told = |begin, limit| told(after(Span::hours(2)), begin, limit, now);
        let message = told(None, Span::hours(3)).unwrap().message;
        assert!(message.starts_with("the job may run for 3h, and 2h are left until its deadline"));
        assert_eq!(told(None, Span::hours(2)), None);
        assert!(told(Some(after(Span::mins(30))), Span::hours(2)).is_some(), "it begins later");
        assert_eq!(told(Some(Time(0)), Span::hours(2)), None, "it has begun long ago");
    }
}
