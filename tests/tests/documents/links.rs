//! Links of all Markdown pages: files, anchors and pictures that exist, and targets of the Makefile.

use std::fs;
use std::path::Path;

use crate::{listed, project};

#[test]
fn every_link_of_a_page_leads_somewhere() {
    let mut wrong = Vec::new();
    let mut n_links = 0;
    for page in listed("*.md") {
        let text = fs::read_to_string(project().join(&page)).unwrap();
        let prose = without_blocks(&text);
        let markdown = prose.split("](").skip(1).map(|rest| rest.split(')').next().unwrap_or_default());
        let pictures = ["src=\"", "srcset=\"", "href=\""].into_iter().flat_map(|attribute| {
            prose.split(attribute).skip(1).map(|rest| rest.split('"').next().unwrap_or_default())
        });
        for link in markdown.chain(pictures).filter(|link| !link.contains("://")) {
            n_links += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let from = project().join(&page);
            let target = if file.is_empty() { from.clone() } else { from.parent().unwrap().join(file) };
            if !target.exists() {
                wrong.push(format!("{page}: {link}: no such file"));
            } else if !anchor.is_empty() && !anchors(&target).contains(&anchor.to_owned()) {
                wrong.push(format!("{page}: {link}: no such heading, only {:?}", anchors(&target)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(n_links > 20, "{n_links} links were found");
}

#[test]
fn every_make_target_that_a_page_names_exists() {
    let makefile = fs::read_to_string(project().join("Makefile")).unwrap();
    for page in listed("*.md") {
        let text = fs::read_to_string(project().join(&page)).unwrap();
        let targets = text.split("`make ").skip(1).chain(text.split("\nmake ").skip(1));
        for target in targets {
            let target =
                target.split(|character: char| !character.is_ascii_lowercase() && character != '-').next();
            let target = target.unwrap_or_default();
            assert!(target.is_empty() || makefile.contains(&format!("\n{target}:")), "{page}: make {target}");
        }
    }
}

/// Returns a page without its fenced blocks, whose lines are not Markdown.
fn without_blocks(page: &str) -> String {
    page.split("\n```").step_by(2).collect()
}

/// Returns the anchors of a page's headings, as GitHub makes them: words in lower case, joined by hyphens.
fn anchors(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap_or_default();
    let headings = without_blocks(&text);
    let headings =
        headings.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let anchor = |heading: &str| -> String {
        let kept = heading
            .chars()
            .filter(|&character| character.is_alphanumeric() || [' ', '-', '_'].contains(&character));
        kept.map(|character| if character == ' ' { '-' } else { character.to_ascii_lowercase() }).collect()
    };
    headings.map(anchor).collect()
}
