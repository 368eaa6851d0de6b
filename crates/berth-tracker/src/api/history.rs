//! Points of metrics: all points page by page, or a sample of them.

use super::call::{Call, Reply};
use crate::encode;
use crate::error::{Error, Result};
use crate::limits;
use crate::page;
use crate::ports::{HistoryQuery, SampleQuery};

/// Without `max_results`, an answer has the maximum number of points.
const MOST: usize = 250_000;

pub async fn history(call: &Call<'_>) -> Result<Reply> {
    let fields = &call.fields;
    let id = fields.run_id()?;
    let key = fields.required("metric_key")?;
    let asked = fields.int("max_results")?.is_some();
    let most = match asked {
        true => fields.max_results(limits::HISTORY_PAGE, MOST)?.min(limits::HISTORY_PAGE),
        false => MOST,
    };
    let offset = page::offset(fields.text("page_token")?.as_deref())?;
    let (run, _) = call.run(&id).await?;
    let query = HistoryQuery { run: &run, key: &key, offset, limit: most + 1 };
    let points = call.store.history(query).await?;
    let (points, next) = page::cut(points, offset, most);
    Ok(Reply::bytes(encode::points(&key, &points, next.as_deref())))
}

pub async fn bulk_interval(call: &Call<'_>) -> Result<Reply> {
    let fields = &call.fields;
    let ids = fields.texts("run_ids")?;
    if ids.is_empty() {
        return Err(Error::missing("run_ids"));
    }
    if ids.len() > limits::CHART_RUNS {
        return Err(Error::invalid(format!(
            "GetMetricHistoryBulkInterval request must specify at most {} run_ids. Received {} \
             run_ids.",
            limits::CHART_RUNS,
            ids.len()
        )));
    }
    let key = fields.required("metric_key")?;
    let most = fields.int("max_results")?.unwrap_or(limits::CHART_SAMPLES as i64);
    let most = usize::try_from(most).ok().filter(|most| (1..=limits::CHART_SAMPLES).contains(most));
    let most = most.ok_or_else(|| {
        let many = limits::CHART_SAMPLES;
        Error::invalid(format!("max_results must be between 1 and {many}."))
    })?;
    let steps = match (fields.int("start_step")?, fields.int("end_step")?) {
        (None, None) => None,
        (Some(from), Some(to)) if from > to => {
            return Err(Error::invalid(format!(
                "end_step must be greater than start_step. Found start_step={from} and \
                 end_step={to}."
            )));
        }
        (Some(from), Some(to)) => Some((from, to)),
        _ => {
            return Err(Error::invalid(
                "If either start step or end step are specified, both must be specified.",
            ));
        }
    };
    let mut out = b"{\"metrics\":[".to_vec();
    let mut is_first = true;
    for id in &ids {
        limits::run_id(id)?;
        let (run, _) = call.run(id).await?;
        let query = SampleQuery { run: &run, key: &key, steps, most };
        for point in call.store.samples(query).await? {
            if !is_first {
                out.push(b',');
            }
            is_first = false;
            encode::point(&mut out, &key, &point, Some(id));
        }
    }
    out.extend_from_slice(b"]}");
    Ok(Reply::bytes(out))
}
