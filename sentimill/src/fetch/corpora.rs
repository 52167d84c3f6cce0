//! The public corpora: where each is, what it is, and the commands that read it.
//!
//! Sizes and SHA-256 are those that TensorFlow Datasets publishes (`tensorflow_datasets/url_checksums/`), and those of
//! Sentiment140 are in the checksums of several loaders (CorpusLoaders.jl, LEAF). The categories of Amazon have none.

use std::path::Path;

use corpus::shell::word;
use program::exit::{Exit, Failed};

use crate::Result;

/// A corpus.
#[derive(Debug)]
pub(super) struct Corpus {
    name: &'static str,
    /// What it contains.
    content: &'static str,
    /// The URL of its file; `{}` is the category.
    url: &'static str,
    /// The categories, each a file of its own.
    categories: &'static [&'static str],
    licence: &'static str,
    format: &'static str,
    pub published: Option<Published>,
    pub unpacked: Unpacked,
    /// The commands that read the files; `{}` is the downloaded one.
    commands: &'static [&'static str],
}

/// What is known of a file before it is downloaded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Published {
    pub bytes: u64,
    pub sha256: &'static str,
}

/// The files that are made of the downloaded one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unpacked {
    /// None: `sentimill` reads it as it is.
    AsIs,
    /// Members of a tar archive, under other names.
    Members(&'static [(&'static str, &'static str)]),
    /// IMDB's archive of one text per file: `SPLIT/CLASS/ID_STARS.txt`.
    Imdb,
}

/// A file of a corpus.
#[derive(Debug)]
pub(super) struct File {
    pub corpus: &'static Corpus,
    pub url: String,
}

const NO_LICENCE: &str = "none stated; its page asks to cite the papers";

const CORPORA: &[Corpus] = &[
    Corpus {
        name: "imdb",
        content: "50,000 film reviews with 1 to 4 or 7 to 10 stars, and 50,000 without",
        url: "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
        categories: &[],
        licence: "none stated; its page asks to cite Maas et al. 2011",
        format: "JSON lines, made of an archive of one text per file",
        published: Some(Published {
            bytes: 84_125_825,
            sha256: "c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
        }),
        unpacked: Unpacked::Imdb,
        commands: &[
            "sentimill imdb-train.jsonl --rating-scale 1-10",
            "ngrams train --input imdb-train.jsonl --test imdb-test.jsonl --rating-scale 1-10",
            "vectors train --input imdb-unlabelled.jsonl",
        ],
    },
    Corpus {
        name: "yelp-polarity",
        content: "598,000 reviews of businesses in two classes",
        url: "https://s3.amazonaws.com/fast-ai-nlp/yelp_review_polarity_csv.tgz",
        categories: &[],
        licence: "terms of the Yelp dataset: no commercial use",
        format: "polarity-csv, from an archive",
        published: Some(Published {
            bytes: 166_373_201,
            sha256: "528f22e286cad085948acbc3bea7e58188416546b0e364d0ae4ca0ce666abe35",
        }),
        unpacked: Unpacked::Members(&[
            ("yelp_review_polarity_csv/train.csv", "yelp-polarity-train.csv"),
            ("yelp_review_polarity_csv/test.csv", "yelp-polarity-test.csv"),
        ]),
        commands: &[
            "sentimill yelp-polarity-train.csv --format polarity-csv",
            "ngrams train --input yelp-polarity-train.csv --test yelp-polarity-test.csv --format polarity-csv",
        ],
    },
    Corpus {
        name: "sentiment140",
        content: "1,600,000 tweets in two classes, labelled by their emoticons",
        url: "https://cs.stanford.edu/people/alecmgo/trainingandtestdata.zip",
        categories: &[],
        licence: "none stated",
        format: "csv without a header, in windows-1252, in a zip archive, which unzip reads",
        published: Some(Published {
            bytes: 81_363_704,
            sha256: "004a3772c8a7ff9bbfeb875880f47f0679d93fc63e5cf9cff72d54a8a6162e57",
        }),
        unpacked: Unpacked::AsIs,
        commands: &[
            "(seq 6 | paste -s -d , -; unzip -p {} training.1600000.processed.noemoticon.csv) > sentiment140.csv",
            "sentimill sentiment140.csv --delimiter , --quote double --rating-field 1 --text-field 6 \
             --class-ratings 0=1,4=5 --encoding windows-1252",
            "ngrams train --input sentiment140.h5",
        ],
    },
    Corpus {
        name: "amazon2023",
        content: "571,000,000 reviews of Amazon up to 2023",
        url: "https://mcauleylab.ucsd.edu/public_datasets/data/amazon_2023/raw/review_categories/{}.jsonl.gz",
        categories: &[
            "All_Beauty",
            "Amazon_Fashion",
            "Appliances",
            "Arts_Crafts_and_Sewing",
            "Automotive",
            "Baby_Products",
            "Beauty_and_Personal_Care",
            "Books",
            "CDs_and_Vinyl",
            "Cell_Phones_and_Accessories",
            "Clothing_Shoes_and_Jewelry",
            "Digital_Music",
            "Electronics",
            "Gift_Cards",
            "Grocery_and_Gourmet_Food",
            "Handmade_Products",
            "Health_and_Household",
            "Health_and_Personal_Care",
            "Home_and_Kitchen",
            "Industrial_and_Scientific",
            "Kindle_Store",
            "Magazine_Subscriptions",
            "Movies_and_TV",
            "Musical_Instruments",
            "Office_Products",
            "Patio_Lawn_and_Garden",
            "Pet_Supplies",
            "Software",
            "Sports_and_Outdoors",
            "Subscription_Boxes",
            "Tools_and_Home_Improvement",
            "Toys_and_Games",
            "Video_Games",
            "Unknown",
        ],
        licence: NO_LICENCE,
        format: "json",
        published: None,
        unpacked: Unpacked::AsIs,
        commands: &["sentimill {} --preset amazon2023", "ngrams train --input {} --preset amazon2023"],
    },
    Corpus {
        name: "amazon2018",
        content: "233,000,000 reviews of Amazon up to 2018",
        url: "https://mcauleylab.ucsd.edu/public_datasets/data/amazon_v2/categoryFiles/{}.json.gz",
        categories: &[
            "AMAZON_FASHION",
            "All_Beauty",
            "Appliances",
            "Arts_Crafts_and_Sewing",
            "Automotive",
            "Books",
            "CDs_and_Vinyl",
            "Cell_Phones_and_Accessories",
            "Clothing_Shoes_and_Jewelry",
            "Digital_Music",
            "Electronics",
            "Gift_Cards",
            "Grocery_and_Gourmet_Food",
            "Home_and_Kitchen",
            "Industrial_and_Scientific",
            "Kindle_Store",
            "Luxury_Beauty",
            "Magazine_Subscriptions",
            "Movies_and_TV",
            "Musical_Instruments",
            "Office_Products",
            "Patio_Lawn_and_Garden",
            "Pet_Supplies",
            "Prime_Pantry",
            "Software",
            "Sports_and_Outdoors",
            "Tools_and_Home_Improvement",
            "Toys_and_Games",
            "Video_Games",
        ],
        licence: NO_LICENCE,
        format: "json",
        published: None,
        unpacked: Unpacked::AsIs,
        commands: &["sentimill {} --preset amazon2018", "ngrams train --input {} --preset amazon2018"],
    },
    Corpus {
        name: "amazon2014",
        content: "reviews of Amazon up to 2014 whose users and products have five each",
        url: "https://snap.stanford.edu/data/amazon/productGraph/categoryFiles/reviews_{}_5.json.gz",
        categories: &[
            "Amazon_Instant_Video",
            "Apps_for_Android",
            "Automotive",
            "Baby",
            "Beauty",
            "Books",
            "CDs_and_Vinyl",
            "Cell_Phones_and_Accessories",
            "Clothing_Shoes_and_Jewelry",
            "Digital_Music",
            "Electronics",
            "Grocery_and_Gourmet_Food",
            "Health_and_Personal_Care",
            "Home_and_Kitchen",
            "Kindle_Store",
            "Movies_and_TV",
            "Musical_Instruments",
            "Office_Products",
            "Patio_Lawn_and_Garden",
            "Pet_Supplies",
            "Sports_and_Outdoors",
            "Tools_and_Home_Improvement",
            "Toys_and_Games",
            "Video_Games",
        ],
        licence: NO_LICENCE,
        format: "json",
        published: None,
        unpacked: Unpacked::AsIs,
        commands: &["sentimill {} --preset amazon2014", "ngrams train --input {} --preset amazon2014"],
    },
];

/// Corpora that no server offers to everybody, with the reason and the remedy.
const NOT_OFFERED: [(&str, &str); 4] = [
    (
        "amazon-reviews-pds",
        "Amazon has withdrawn it (its bucket answers 403 since 2023); fetch amazon2023/CATEGORY",
    ),
    ("amazon-us-reviews", "it is amazon-reviews-pds, which Amazon has withdrawn; fetch amazon2023/CATEGORY"),
    (
        "amazon-reviews-multi",
        "Amazon has withdrawn it (Hugging Face lists it as defunct); fetch amazon2023/CATEGORY",
    ),
    (
        "yelp",
        "Yelp asks to accept its terms first; download it at https://www.yelp.com/dataset and read it with --preset yelp",
    ),
];

/// The file with this name: that of a corpus, or CORPUS/CATEGORY.
pub(super) fn named(name: &str) -> Result<File> {
    let refused = |why: String| Err(Failed::new(Exit::Usage, format!("{name}: {why}")));
    let (of, category) = name.split_once('/').map_or((name, None), |(of, category)| (of, Some(category)));
    if let Some((_, why)) = NOT_OFFERED.iter().find(|(other, _)| plain(other) == plain(of)) {
        return refused(format!("is not offered: {why}"));
    }
    let Some(corpus) = CORPORA.iter().find(|corpus| plain(corpus.name) == plain(of)) else {
        let names: Vec<_> = CORPORA.iter().map(|corpus| corpus.name).collect();
        let expected = format!("expected {}", names.join(", "));
        return refused(format!("found an unknown corpus, {expected}; `sentimill fetch` describes them"));
    };
    let of = corpus.name;
    let known = category.and_then(|asked| corpus.categories.iter().find(|name| plain(name) == plain(asked)));
    match (category, known) {
        (None, _) if corpus.categories.is_empty() => Ok(File { corpus, url: corpus.url.to_owned() }),
        (_, Some(category)) => Ok(File { corpus, url: corpus.url.replace("{}", category) }),
        _ if corpus.categories.is_empty() => refused(format!("found a category, expected {of}; omit it")),
        _ => {
            let example =
                corpus.categories.iter().find(|name| name.starts_with("Musical")).unwrap_or(&"Books");
            let all = corpus.categories.join(", ");
            refused(format!("expected {of}/CATEGORY, such as {of}/{example}; pass one of {all}"))
        }
    }
}

/// A name as it is compared: other programs write the same ones with capitals, `_` or `-`.
fn plain(name: &str) -> String {
    name.to_lowercase().replace('_', "-")
}

/// The list of all corpora.
pub(super) fn list() -> String {
    let mut list = String::new();
    for Corpus { name, content, url, categories, licence, format, published, commands, .. } in CORPORA {
        let category = if categories.is_empty() { "" } else { "/CATEGORY" };
        let file = url.rsplit('/').next().unwrap_or(url).replace("{}", "CATEGORY");
        let size = published.map(|of| format!("{} MB", of.bytes / 1_000_000));
        let sha256 =
            published.map_or("not published; that of the first download is recorded", |of| of.sha256);
        list += &format!("{name}{category}: {content}\n");
        let mut add = |key: &str, value: &str| list += &format!("  {key:<12}{value}\n");
        add("where", &url.replace("{}", "CATEGORY"));
        add("size", size.as_deref().unwrap_or("not published; shown during the download"));
        add("SHA-256", sha256);
        add("licence", licence);
        add("format", format);
        commands.iter().for_each(|command| add("read with", &command.replace("{}", &file)));
        for (at, line) in lines(categories).iter().enumerate() {
            add(if at == 0 { "categories" } else { "" }, line);
        }
        list.push('\n');
    }
    list += "Not offered:\n";
    NOT_OFFERED.iter().for_each(|(name, why)| list += &format!("  {name}: {why}\n"));
    list
}

/// Names in lines of at most 68 characters.
fn lines(names: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for name in names {
        match lines.last_mut() {
            Some(line) if line.len() + name.len() < 67 => *line += &format!(" {name}"),
            _ => lines.push((*name).to_owned()),
        }
    }
    lines
}

impl File {
    /// The name of the file.
    pub fn name(&self) -> &str {
        self.url.rsplit('/').next().unwrap_or(&self.url)
    }

    /// The commands that read it in the folder of the files.
    pub fn commands(&self, folder: &Path) -> String {
        let enter = match folder.to_str() {
            Some(".") => String::new(),
            _ => format!("cd {}\n", word(&folder.to_string_lossy())),
        };
        let commands = self.corpus.commands.iter().map(|command| command.replace("{}", self.name()) + "\n");
        enter + &commands.collect::<String>()
    }
}

impl Unpacked {
    /// The names of the files that are made.
    pub fn files(&self) -> Vec<&'static str> {
        match self {
            Self::AsIs => Vec::new(),
            Self::Members(members) => members.iter().map(|(_, file)| *file).collect(),
            Self::Imdb => vec!["imdb-train.jsonl", "imdb-test.jsonl", "imdb-unlabelled.jsonl"],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_one_file_and_each_refusal_says_what_to_fetch() {
        for corpus in CORPORA {
            let names: Vec<String> = match corpus.categories {
                [] => vec![corpus.name.to_owned()],
                categories => {
                    categories.iter().map(|category| format!("{}/{category}", corpus.name)).collect()
                }
            };
            for name in names {
                let file = named(&name).unwrap();
                assert!(file.url.starts_with("https://") && !file.url.contains("{}"), "{}", file.url);
                assert_eq!(named(&name.to_uppercase().replace('_', "-")).unwrap().url, file.url);
            }
        }
        for (name, expected) in [
            ("imbd", "expected imdb, yelp-polarity, "),
            (
                "amazon2023",
                "expected amazon2023/CATEGORY, such as amazon2023/Musical_Instruments; pass one of All_Beauty, ",
            ),
            ("amazon2014/Cars", "expected amazon2014/CATEGORY"),
            ("imdb/train", "expected imdb; omit it"),
            ("amazon-reviews-pds", "is not offered: Amazon has withdrawn it"),
            ("amazon_us_reviews/Books_v1_00", "is not offered: it is amazon-reviews-pds"),
            ("yelp", "https://www.yelp.com/dataset"),
        ] {
            let refused = named(name).unwrap_err();
            assert_eq!(refused.exit, Exit::Usage);
            assert!(
                refused.message.starts_with(name) && refused.message.contains(expected),
                "{}",
                refused.message
            );
        }
    }

    #[test]
    fn the_list_names_every_corpus_and_every_category() {
        let list = list();
        for corpus in CORPORA {
            for part in [corpus.name, corpus.licence, corpus.format].iter().chain(corpus.categories) {
                assert!(list.contains(part), "{part}");
            }
        }
        assert!(list.contains("https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz"));
    }
}
