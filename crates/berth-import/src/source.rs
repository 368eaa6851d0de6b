//! What can be read.

use crate::error::Result;
use crate::model::{
    Content, Experiment, FileInfo, LoggedModel, Place, Point, RegisteredModel, Run, Version,
};
use futures_util::future::LocalBoxFuture;
use futures_util::stream::LocalBoxStream;

pub type Fut<'a, T> = LocalBoxFuture<'a, Result<T>>;
/// Page by page, so that the memory which is needed does not grow with what there is.
pub type Pages<'a, T> = LocalBoxStream<'a, Result<Vec<T>>>;

/// A place with experiments and models. What cannot be read of it becomes a problem, and is left out.
pub trait Source {
    /// How reports and tags call it. It has no password in it.
    fn name(&self) -> &str;

    /// All experiments, deleted ones too.
    fn experiments(&self) -> Fut<'_, Vec<Experiment>>;
    /// All runs, deleted ones too.
    fn runs<'a>(&'a self, of: &'a Experiment) -> Pages<'a, Run>;
    fn points<'a>(&'a self, run: &'a Run, key: &'a str) -> Pages<'a, Point>;
    fn logged_models<'a>(&'a self, of: &'a Experiment) -> Pages<'a, LoggedModel>;
    /// Prompts are among them.
    fn registered_models(&self) -> Pages<'_, RegisteredModel>;
    fn versions<'a>(&'a self, model: &'a str) -> Fut<'a, Vec<Version>>;

    /// All files below a place, in no order.
    fn files<'a>(&'a self, place: &'a Place) -> Fut<'a, Vec<FileInfo>>;
    fn open<'a>(&'a self, place: &'a Place, path: &'a str) -> Fut<'a, Content>;
    /// The SHA-256 sum of a file, where it is known without reading the file.
    fn known_sum<'a>(&'a self, _place: &'a Place, _path: &'a str) -> Fut<'a, Option<String>> {
        Box::pin(async { Ok(None) })
    }
}
