//! A plain page, for what a browser has to be told where there is no portal to tell it.

use super::headers;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

/// A title and some paragraphs. All of it is text, wherever it comes from.
pub struct Page {
    title: String,
    body: String,
}

impl Page {
    pub fn new(title: &str) -> Page {
        let title = escaped(title);
        Page { body: format!("<h1>{title}</h1>\n"), title }
    }

    pub fn text(mut self, text: &str) -> Page {
        self.body.push_str(&format!("<p>{}</p>\n", escaped(text)));
        self
    }

    pub fn code(mut self, text: &str) -> Page {
        self.body.push_str(&format!("<pre>{}</pre>\n", escaped(text)));
        self
    }

    /// A link to somewhere of our own.
    pub fn link(mut self, to: &'static str, text: &str) -> Page {
        self.body.push_str(&format!("<p><a href=\"{to}\">{}</a></p>\n", escaped(text)));
        self
    }

    pub fn answer(self, status: StatusCode) -> Response {
        let Page { title, body } = self;
        let text = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title} – Berth</title>\n\
             <style>{STYLE}</style>\n<main>\n{body}</main>\n</html>\n"
        );
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = status;
        let sent = response.headers_mut();
        sent.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        sent.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers::of_portal(sent);
        response
    }
}

const STYLE: &str = ":root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}\
    main{max-width:38rem;margin:15vh auto;padding:0 1rem}h1{font-size:1.25rem}\
    pre{padding:.75rem;border:1px solid;overflow:auto}";

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn text_from_outside_stays_text() {
        let page = Page::new("<script>").text("\"><img onerror='x'>").answer(StatusCode::OK);
        let bytes = axum::body::to_bytes(page.into_body(), 10_000).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        assert!(!text.contains("<script>") && !text.contains("<img"), "{text}");
    }
}
