//! Whether figures are gathered, and where.

use crate::figure_book::{Book, KeepFigures};
use berth_model::Span;
use std::sync::Arc;

/// What is measured, and how long it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FigureOptions {
    /// Nothing is measured where left out.
    pub every: Option<Span>,
    pub keep: KeepFigures,
}

impl FigureOptions {
    pub fn begin(self) -> Option<Arc<Figures>> {
        let book = Book::new(self.keep);
        self.every.map(|every| Arc::new(Figures { every, book }))
    }
}

/// Where figures are gathered, and how often.
#[derive(Debug)]
pub struct Figures {
    pub every: Span,
    pub book: Book,
}
