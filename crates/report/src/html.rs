//! Writes markup. Tags and attribute names are constants of this program; everything else is escaped.

use program::exit::acts_on_terminal;

/// A page under construction.
#[derive(Debug, Default)]
pub struct Html {
    out: String,
}

/// Names and values of attributes.
pub type Attributes<'a> = &'a [(&'static str, &'a str)];

impl Html {
    /// Appends constant markup.
    pub fn markup(&mut self, markup: &'static str) {
        self.out.push_str(markup);
    }

    /// Appends escaped text.
    pub fn text(&mut self, text: &str) {
        escape(text, &mut self.out);
    }

    /// Appends an element; `content` writes its children.
    pub fn element(
        &mut self,
        tag: &'static str,
        attributes: Attributes<'_>,
        content: impl FnOnce(&mut Self),
    ) {
        self.begin(tag, attributes);
        content(self);
        self.out.push_str("</");
        self.out.push_str(tag);
        self.out.push('>');
    }

    /// Appends an element with a text.
    pub fn leaf(&mut self, tag: &'static str, attributes: Attributes<'_>, text: &str) {
        self.element(tag, attributes, |html| html.text(text));
    }

    /// Appends an element with a class; `content` writes its children.
    pub fn class(&mut self, tag: &'static str, class: &str, content: impl FnOnce(&mut Self)) {
        self.element(tag, &[("class", class)], content);
    }

    /// Appends a paragraph with a class.
    pub fn paragraph(&mut self, class: &'static str, text: &str) {
        self.leaf("p", &[("class", class)], text);
    }

    /// Returns the page.
    pub fn finish(self) -> String {
        self.out
    }

    fn begin(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.out.push('<');
        self.out.push_str(tag);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            escape(value, &mut self.out);
            self.out.push('"');
        }
        self.out.push('>');
    }
}

fn escape(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(character),
            character if acts_on_terminal(character) => out.push('\u{fffd}'),
            character => out.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_escaped_in_tags_and_attributes() {
        let mut html = Html::default();
        html.leaf(
            "b",
            &[("title", "\"><script>alert('1')</script>")],
            "</b><img src=x onerror=alert(1)>&\u{202e}\0",
        );
        assert_eq!(
            html.finish(),
            "<b title=\"&quot;&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;\">&lt;/b&gt;&lt;img src=x \
             onerror=alert(1)&gt;&amp;\u{fffd}\u{fffd}</b>"
        );
    }
}
