//! Recognizes folders whose names are classes, such as `pos` and `neg` of IMDB's archive, with one text per file, and names the
//! command that converts them to lines of fasttext.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use corpus::shell::word;

use crate::source::{Kind, Source};

/// Names of classes with the ratings of their texts. A folder of other names is none if there are two of these.
const RATINGS: [(&str, u8); 4] = [("neg", 1), ("negative", 1), ("pos", 5), ("positive", 5)];

/// What was found and the remedy, if the text files of two or more sibling folders are among the sources.
pub fn class_folders(sources: &[Source]) -> Option<String> {
    let mut found: BTreeMap<&Path, (BTreeSet<&str>, usize)> = BTreeMap::new();
    for (folder, class) in sources.iter().filter_map(class_of) {
        let (classes, n_files) = found.entry(folder).or_default();
        classes.insert(class);
        *n_files += 1;
    }
    let several = found.into_iter().filter(|(_, (classes, _))| classes.len() > 1);
    let (folder, (mut classes, _)) = several.max_by_key(|(_, (_, n_files))| *n_files)?;
    let rating_of = |class: &str| RATINGS.iter().find(|(name, _)| *name == class).map(|(_, rating)| *rating);
    if classes.iter().filter(|class| rating_of(class).is_some()).count() > 1 {
        classes.retain(|class| rating_of(class).is_some());
    }
    let rated = classes.iter().map(|class| match rating_of(class) {
        Some(rating) => format!("{class}={rating}"),
        None => format!("{}=STARS", label_of(class)),
    });
    let rated = word(&rated.collect::<Vec<_>>().join(","));
    let names: Vec<&str> = classes.iter().copied().collect();
    let words = classes.iter().map(|class| word(class)).collect::<Vec<_>>().join(" ");
    let label = match classes.iter().all(|class| label_of(class) == *class) {
        true => "$c",
        false => "$(printf %s \"$c\" | LC_ALL=C tr -c A-Za-z0-9_.- _)",
    };
    let place = &*folder.display().to_string();
    let place = word(place);
    Some(format!(
        "the folders {} of {} have one text per file, expected one per line; write lines, and pass them with --format \
         fasttext, to sentimill also with --class-ratings {rated}: for c in {words}; do grep -arhz '' {place}/\"$c\" | \
         tr '\\r\\n\\0' '  \\n' | sed \"s/^/__label__{label} /\"; done > reviews.txt",
        names.join(", "),
        folder.display(),
    ))
}

/// The label of a class. Other characters than these could end it.
fn label_of(class: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    class.bytes().map(|byte| if is_plain(byte) { char::from(byte) } else { '_' }).collect()
}

/// The folder of the class of a text file, and the name of the class.
fn class_of(source: &Source) -> Option<(&Path, &str)> {
    let Kind::File(path) = &source.kind else { return None };
    let is_text = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("txt"));
    let class = path.parent().filter(|_| is_text)?;
    Some((class.parent()?, class.file_name()?.to_str()?))
}
