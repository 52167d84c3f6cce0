//! The blocks of a Markdown document that are marked `example-NAME`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Blocks written by hand. All others are generated.
const GIVEN: [&str; 3] = ["reviews", "commands", "reader"];

pub struct Document {
    path: PathBuf,
    parts: Vec<Part>,
    made: BTreeMap<String, String>,
}

/// The lines between two fences, or between blocks.
struct Part {
    block: Option<String>,
    text: String,
}

impl Document {
    pub fn open(path: &Path) -> Self {
        let mut parts = vec![Part { block: None, text: String::new() }];
        for line in std::fs::read_to_string(path).unwrap().split_inclusive('\n') {
            let open = parts.last_mut().unwrap();
            if open.block.is_some() && line == "```\n" {
                parts.push(Part { block: None, text: line.to_owned() });
                continue;
            }
            open.text.push_str(line);
            if let Some((_, name)) = line.split_once(" example-").filter(|_| line.starts_with("```")) {
                parts.push(Part { block: Some(name.trim().to_owned()), text: String::new() });
            }
        }
        Self { path: path.to_owned(), parts, made: BTreeMap::new() }
    }

    pub fn get(&self, name: &str) -> &str {
        let part = self.parts.iter().find(|part| part.block.as_deref() == Some(name));
        &part.unwrap_or_else(|| panic!("no block example-{name}")).text
    }

    /// Sets the expected text of a block.
    pub fn set(&mut self, name: &str, text: &str) {
        assert!(!GIVEN.contains(&name) && text.ends_with('\n'), "{name}");
        self.made.insert(name.to_owned(), text.to_owned());
    }

    /// Compares all blocks with their expected texts, or rewrites them.
    pub fn finish(mut self) {
        let update = std::env::var_os("UPDATE_GOLDEN").is_some();
        for part in &mut self.parts {
            let Some(name) = part.block.as_deref().filter(|name| !GIVEN.contains(name)) else { continue };
            let made = self.made.remove(name).unwrap_or_else(|| panic!("nothing makes example-{name}"));
            if update {
                part.text = made;
            } else {
                let path = self.path.display();
                assert!(
                    part.text == made,
                    "{path}: example-{name} is\n{}expected\n{made}UPDATE_GOLDEN=1 rewrites it",
                    part.text
                );
            }
        }
        assert!(self.made.is_empty(), "no blocks for {:?}", self.made.keys());
        if update {
            let text: String = self.parts.iter().map(|part| part.text.as_str()).collect();
            std::fs::write(&self.path, text).unwrap();
        }
    }
}
