//! The trait of readable places.

use crate::error::Result;
use crate::model::{
    Content, Experiment, FileInfo, LoggedModel, Place, Point, RegisteredModel, Run, Version,
};
use futures_util::future::LocalBoxFuture;
use futures_util::stream::LocalBoxStream;

pub type Fut<'a, T> = LocalBoxFuture<'a, Result<T>>;
/// A stream of pages, which bounds the memory.
pub type Pages<'a, T> = LocalBoxStream<'a, Result<Vec<T>>>;

/// A readable place. It reports unreadable entities as problems and skips them.
pub trait Source {
    /// The name of the place in reports and tags, without passwords.
    fn name(&self) -> &str;

    /// All experiments, including deleted ones.
    fn experiments(&self) -> Fut<'_, Vec<Experiment>>;
    /// All runs, including deleted ones.
    fn runs<'a>(&'a self, of: &'a Experiment) -> Pages<'a, Run>;
    fn points<'a>(&'a self, run: &'a Run, key: &'a str) -> Pages<'a, Point>;
    fn logged_models<'a>(&'a self, of: &'a Experiment) -> Pages<'a, LoggedModel>;
    /// All registered models, including prompts.
    fn registered_models(&self) -> Pages<'_, RegisteredModel>;
    fn versions<'a>(&'a self, model: &'a str) -> Fut<'a, Vec<Version>>;

    /// All files of an owner, in any order.
    fn files<'a>(&'a self, place: &'a Place) -> Fut<'a, Vec<FileInfo>>;
    fn open<'a>(&'a self, place: &'a Place, path: &'a str) -> Fut<'a, Content>;
    /// The SHA-256 sum of a file, if the place knows it without reading the file.
    fn known_sum<'a>(&'a self, _place: &'a Place, _path: &'a str) -> Fut<'a, Option<String>> {
        Box::pin(async { Ok(None) })
    }
}
