//! Shapes as SVG text. Colours are names of variables, so that a page can show them in either
//! theme.

use std::fmt::Write;

/// Text with what would be markup made harmless.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// How many colours there are before they repeat.
pub(super) const COLOURS: usize = 12;

pub(super) fn colour(number: usize) -> String {
    format!("var(--c{})", number % COLOURS)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn word(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

/// A drawing under way.
pub(super) struct Svg {
    width: f64,
    height: f64,
    label: String,
    body: String,
}

impl Svg {
    pub(super) fn new(width: f64, height: f64, label: &str) -> Svg {
        Svg { width, height, label: escape(label), body: String::new() }
    }

    /// `title` is shown when the pointer rests on it.
    pub(super) fn rect(&mut self, [x, y, w, h]: [f64; 4], fill: &str, title: &str) {
        let _ = write!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{fill}\">",
            w.max(0.0),
            h.max(0.0)
        );
        if !title.is_empty() {
            let _ = write!(self.body, "<title>{}</title>", escape(title));
        }
        self.body.push_str("</rect>");
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let _ = write!(
            self.body,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" class=\"{class}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    pub(super) fn path(&mut self, points: impl Iterator<Item = (f64, f64)>, stroke: &str) {
        let points: Vec<String> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = write!(
            self.body,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"1.6\"/>",
            points.join(" ")
        );
    }

    pub(super) fn text(&mut self, at: (f64, f64), anchor: Anchor, text: &str) {
        let _ = write!(
            self.body,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{}\">{}</text>",
            at.0,
            at.1,
            anchor.word(),
            escape(text)
        );
    }

    pub(super) fn done(self) -> String {
        let Svg { width, height, label, body } = self;
        format!(
            "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{label}\">\
             {body}</svg>"
        )
    }
}
