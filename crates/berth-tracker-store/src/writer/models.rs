//! The limit on the metrics of a logged model.

use super::Writer;
use crate::rows::Bind;
use berth_tracker::{Error, Metric, limits};
use sqlx::AnyConnection;
use std::collections::BTreeMap;

impl Writer {
    /// Refuses metrics that would exceed the limit of their logged models.
    pub(super) async fn too_many_of_models(
        &mut self,
        connection: &mut AnyConnection,
        metrics: &[Metric],
    ) -> sqlx::Result<Option<Error>> {
        let mut more: BTreeMap<&str, u64> = BTreeMap::new();
        for of in metrics.iter().filter_map(|metric| metric.model.as_ref()) {
            *more.entry(&of.id).or_default() += 1;
        }
        for (model, more) in more {
            let most = limits::METRICS_PER_MODEL;
            let known = self.models.get(model).copied();
            // A metric counts each time it is logged, so the bound may be too high.
            let kept = match known.filter(|kept| kept + more <= most) {
                Some(kept) => kept,
                None => {
                    let sql = "SELECT COUNT(*) FROM model_metrics WHERE model = ?";
                    self.one(connection, sql, vec![Bind::from(model)]).await?.cast_unsigned()
                }
            };
            if kept + more > most {
                let said = format!("Logged model {model} would have more than {most} metrics");
                return Ok(Some(Error::over_limit(said)));
            }
            self.models.insert(model.to_owned(), kept + more);
        }
        Ok(None)
    }
}
