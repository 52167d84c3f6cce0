//! Generates a text for a rating: some sentences with the sentiment of the rating, and some neutral ones.

use crate::random::Random;
use crate::words::{CATEGORIES, Category, EMOJI, EXCLAMATIONS, FACTS, FOREIGN, SENTENCES, list};

/// Percentage of each sentiment from -2 to 2, per rating. A review with rating 3 can have either sentiment,
/// so no model can be perfect.
const WARMTH_PERCENT: [[usize; 5]; 5] =
    [[74, 22, 2, 1, 1], [38, 46, 10, 5, 1], [10, 38, 36, 14, 2], [0, 3, 7, 57, 33], [0, 1, 3, 25, 71]];

/// Percentage of reviews whose words contradict the rating, as if the author took 1 for the best.
const CONTRADICTING_PERCENT: usize = 4;

/// Number of bits of the rank of a brand or model. Most are rare.
const BRAND_BITS: usize = 12;

/// The subject of a review.
pub(crate) struct Product {
    category: &'static Category,
    thing: &'static str,
    /// Rank among all products, used as identity.
    pub(crate) rank: u64,
}

impl Product {
    pub(crate) fn draw(random: &mut Random) -> Product {
        let rank = random.zipf(16);
        let mut own = Random::new(rank);
        let category = &CATEGORIES[own.below(CATEGORIES.len())];
        Product { category, thing: own.pick(category.things), rank }
    }
}

/// Writes the text of a review with this rating, 1 to 5: plain Unicode, with `\n` between paragraphs.
pub(crate) fn write_text(text: &mut String, rating: usize, product: &Product, random: &mut Random) {
    let felt = if random.percent(CONTRADICTING_PERCENT) { 6 - rating } else { rating };
    let warmth_percent = &WARMTH_PERCENT[felt - 1];
    let (least, most) = match random.weighted(&[12, 26, 38, 18, 6]) {
        0 => {
            let warmth = random.weighted(warmth_percent);
            text.push_str(random.pick(EXCLAMATIONS[warmth]));
            return;
        }
        1 => (1, 2),
        2 => (3, 5),
        3 => (6, 14),
        _ => (15, 50),
    };
    for sentence in 0..least + random.below(most - least + 1) {
        if sentence > 0 {
            text.push(if random.one_in(9) { '\n' } else { ' ' });
        }
        let warmth = random.weighted(warmth_percent);
        let template = match random.below(100) {
            0 => random.pick(FOREIGN[warmth]),
            // Never first, so that each text has a word.
            1 if sentence > 0 => random.pick(EMOJI[warmth]),
            2..32 if sentence > 0 => random.pick(FACTS),
            _ => random.pick(SENTENCES[warmth]),
        };
        let start = text.len();
        expand(text, template, product, random);
        if let Some(first) = text.get_mut(start..=start) {
            first.make_ascii_uppercase();
        }
    }
}

/// Writes a title: an exclamation with the sentiment of the rating.
pub(crate) fn write_summary(text: &mut String, rating: usize, random: &mut Random) {
    let warmth = random.weighted(&WARMTH_PERCENT[rating - 1]);
    text.push_str(random.pick(EXCLAMATIONS[warmth]));
}

/// Writes the invented word number `rank`, capitalised: a brand, a model, a surname.
pub(crate) fn write_name(text: &mut String, rank: u64) {
    const ONSETS: [&str; 20] = [
        "b", "br", "d", "f", "g", "gl", "h", "k", "l", "m", "n", "p", "r", "s", "st", "t", "tr", "v", "w",
        "z",
    ];
    const VOWELS: [&str; 8] = ["a", "e", "i", "o", "u", "ee", "ia", "ou"];
    const CODAS: [&str; 8] = ["", "", "", "n", "r", "x", "l", "ck"];
    let mut letters = Random::new(rank);
    let start = text.len();
    for _ in 0..2 + letters.below(2) {
        text.push_str(letters.pick(&ONSETS));
        text.push_str(letters.pick(&VOWELS));
        text.push_str(letters.pick(&CODAS));
    }
    text[start..=start].make_ascii_uppercase();
}

fn expand(text: &mut String, template: &'static str, product: &Product, random: &mut Random) {
    let mut rest = template;
    while let Some((before, slot_and_rest)) = rest.split_once('{') {
        text.push_str(before);
        let (slot, after) = slot_and_rest.split_once('}').expect("the grammar closes its slots");
        match slot {
            "thing" => text.push_str(product.thing),
            "aspect" => text.push_str(random.pick(product.category.aspects)),
            "use" => text.push_str(random.pick(product.category.uses)),
            // Brands and models have separate numbers, so that a word is one or the other.
            "brand" => write_name(text, 2 * random.zipf(BRAND_BITS)),
            "model" => {
                write_name(text, 2 * random.zipf(BRAND_BITS) + 1);
                text.push_str(random.pick(&["", " 2", " Pro", "-X", " 3000", " II"]));
            }
            "number" => text.push_str(random.pick(&["2", "3", "4", "5", "6", "7", "9", "12", "20", "100"])),
            name => expand(text, random.pick(list(name)), product, random),
        }
        rest = after;
    }
    text.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_of_the_templates_has_words() {
        let mut random = Random::new(1);
        let product = Product::draw(&mut random);
        for template in SENTENCES.into_iter().flatten().chain(FACTS) {
            // Often enough to draw each word of each list, including nested slots.
            for _ in 0..200 {
                let mut text = String::new();
                expand(&mut text, template, &product, &mut random);
                assert!(!text.contains(['{', '}']), "{text}");
            }
        }
    }

    #[test]
    fn a_name_is_a_function_of_its_rank() {
        let [mut first, mut again, mut other] = [const { String::new() }; 3];
        write_name(&mut first, 7);
        write_name(&mut again, 7);
        write_name(&mut other, 8);
        assert!(first == again && first != other);
    }
}
