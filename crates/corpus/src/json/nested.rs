//! Follows the paths of fields into nested objects and the elements of a list, and collects the parts of a text.
//!
//! The recursion is at most as deep as the longest path, and never deeper than `DEPTH_MAX`.

use super::tokens::{Text, Tokens};
use super::{JsonParser, skip_value};
use crate::entry::{DEPTH_MAX, EachEntry, Entry, Reject};
use crate::fields::NodeId;
use crate::rating_rule::Rated;

/// The string of a text field.
#[derive(Clone, Debug, Default)]
pub(super) struct TextPart {
    pub is_present: bool,
    text: String,
}

/// Joins the strings of all fields that have one. Returns whether there is one.
pub(super) fn join(parts: &[TextPart], joined: &mut String) -> bool {
    joined.clear();
    let mut present = parts.iter().filter(|part| part.is_present);
    let Some(first) = present.next() else { return false };
    joined.push_str(&first.text);
    for part in present {
        joined.push(' ');
        joined.push_str(&part.text);
    }
    true
}

impl JsonParser {
    /// Parses one line, and passes on the review of each element of its list, with the bytes of the element. The whole
    /// line is passed on if it has no such list, or an empty one. Returns `None` if it is not JSON.
    pub(crate) fn each(&mut self, line: &str, visit: &mut EachEntry<'_>) -> Option<()> {
        let found = self.find(line)?;
        let (Some(id), Some(list)) = (self.tree.list, self.list.clone()) else {
            visit(0..line.len(), self.entry(found));
            return Some(());
        };
        // The line was valid, and so are the elements.
        let mut tokens = Tokens::of(&line[list.clone()]);
        tokens.next()?;
        if tokens.peek()? == b']' {
            visit(0..line.len(), Err(Reject::NoText));
            return Some(());
        }
        loop {
            tokens.peek()?;
            let start = list.start + tokens.offset();
            let mut rating = found.rating;
            self.nested(&mut tokens, id, 1, &mut rating)?;
            let element = start..list.start + tokens.offset();
            let rating = rating.unwrap_or_else(|| self.ratings.of_absent());
            let text = join(&self.parts, &mut self.unescaped).then_some(&*self.unescaped);
            let entry = text.map(|text| Entry { text, rating, label: self.ratings.label() });
            visit(element, entry.ok_or(Reject::NoText));
            if tokens.next()? != b',' {
                return Some(());
            }
        }
    }

    /// Reads the value of a field inside of `depth` containers.
    // Inlined into the loop over the top level, it would slow down lines without such fields.
    #[inline(never)]
    pub(super) fn nested(
        &mut self,
        tokens: &mut Tokens<'_>,
        id: NodeId,
        depth: usize,
        rating: &mut Option<Rated>,
    ) -> Option<()> {
        let Self { tree, parts, short, ratings, list, .. } = self;
        let node = tree.node(id);
        // The last of duplicate fields counts, with all that is in it.
        node.texts_below.iter().for_each(|&text| parts[text].is_present = false);
        if node.has_rating_below {
            *rating = None;
        }
        if node.has_list_below {
            *list = None;
        }
        match (tokens.peek()?, node.text) {
            (b'"', Some(text)) => {
                tokens.next();
                let TextPart { is_present, text } = &mut parts[text];
                if let Text::InLine(in_line) = tokens.string(text)? {
                    text.clear();
                    text.push_str(in_line);
                }
                *is_present = true;
                if node.is_rating {
                    *rating = Some(ratings.of_text(text));
                }
            }
            (b'"', None) if node.is_rating => {
                tokens.next();
                *rating = Some(ratings.of_text(tokens.string(short)?.or(short)));
            }
            (b'-' | b'0'..=b'9', _) if node.is_rating => {
                *rating = Some(ratings.of_number(tokens.number()?.parse().ok()?));
            }
            (first @ (b't' | b'f' | b'n'), _) if node.is_rating => {
                skip_value(tokens, first, depth)?;
                *rating = Some(ratings.of_name(first));
            }
            (b'{', _) if node.has_children() => self.object(tokens, id, depth + 1, rating)?,
            (b'[', _) if node.is_list => {
                let start = tokens.offset();
                skip_value(tokens, b'[', depth)?;
                *list = Some(start..tokens.offset());
            }
            (first, _) => skip_value(tokens, first, depth)?,
        }
        Some(())
    }

    /// Reads an object, which is the `depth`-th open container.
    fn object(
        &mut self,
        tokens: &mut Tokens<'_>,
        object: NodeId,
        depth: usize,
        rating: &mut Option<Rated>,
    ) -> Option<()> {
        tokens.next()?;
        if depth > DEPTH_MAX {
            return None;
        }
        if tokens.peek()? == b'}' {
            tokens.next();
            return Some(());
        }
        loop {
            if tokens.next()? != b'"' {
                return None;
            }
            let field = self.tree.child(object, tokens.string(&mut self.short)?.or(&self.short));
            if tokens.next()? != b':' {
                return None;
            }
            match field {
                Some(field) => self.nested(tokens, field, depth, rating)?,
                None => {
                    let first = tokens.peek()?;
                    skip_value(tokens, first, depth)?;
                }
            }
            match tokens.next()? {
                b',' => {}
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }
}
