//! Detects texts in scripts without spaces between words, of which a word, which is what spaces separate, is a clause.

/// Maximum number of words that are examined, the first ones.
const WORDS_MAX: usize = 10_000;
/// A mean of fewer words per text is about one.
const WORDS_PER_TEXT_MIN: f64 = 1.5;

/// A script: its name, its characters, a length and a program.
type Script = (&'static str, &'static [(char, char)], f64, &'static str);

/// Scripts without spaces, the mean length in characters that words do not exceed when they have been cut, and a program
/// that cuts them.
const SCRIPTS: [Script; 3] = [
    (
        "Japanese",
        &[('\u{3040}', '\u{30ff}'), ('\u{31f0}', '\u{31ff}'), ('\u{ff66}', '\u{ff9f}')],
        4.5,
        "MeCab",
    ),
    (
        "Chinese",
        &[
            ('\u{3400}', '\u{4dbf}'),
            ('\u{4e00}', '\u{9fff}'),
            ('\u{f900}', '\u{faff}'),
            ('\u{20000}', '\u{3ffff}'),
        ],
        4.5,
        "jieba",
    ),
    (
        "Thai, Lao, Khmer or Burmese",
        &[('\u{e00}', '\u{eff}'), ('\u{1000}', '\u{109f}'), ('\u{1780}', '\u{17ff}')],
        12.0,
        "PyThaiNLP",
    ),
];

/// Returns a warning if most of the words of texts are clauses. `words_per_text` is a mean.
pub fn unspaced<'a>(words: impl IntoIterator<Item = &'a [u8]>, words_per_text: f64) -> Option<String> {
    let mut n_words = 0;
    // Words and their characters, by script.
    let mut found = [(0, 0); SCRIPTS.len()];
    for word in words.into_iter().take(WORDS_MAX) {
        n_words += 1;
        let (mut n, mut of_scripts) = (0, [0; SCRIPTS.len()]);
        for character in String::from_utf8_lossy(word).chars() {
            n += 1;
            if !character.is_ascii()
                && let Some(script) = SCRIPTS.iter().position(|(_, ranges, ..)| {
                    ranges.iter().any(|&(first, last)| (first..=last).contains(&character))
                })
            {
                of_scripts[script] += 1;
            }
        }
        // Japanese words are of kana and of Chinese characters.
        let script = of_scripts.iter().position(|&of_script| of_script > 0);
        if let Some(script) = script.filter(|_| 2 * of_scripts.iter().sum::<u64>() > n) {
            found[script].0 += 1;
            found[script].1 += n;
        }
    }
    let of_all = found.iter().map(|(n, _)| n).sum::<u64>();
    let (script, &(n, n_characters)) = found.iter().enumerate().max_by_key(|(_, (n, _))| *n)?;
    let (name, _, length_max, program) = SCRIPTS[script];
    let length = n_characters as f64 / n as f64;
    (2 * of_all > n_words && (length > length_max || words_per_text < WORDS_PER_TEXT_MIN)).then(|| {
        format!(
            "most words are {name}, which has no spaces between words: a mean of {words_per_text:.1} words per text, each \
             a clause of {length:.1} characters; cut the texts into words, for example with {program}, and write a space \
             between them"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, words_per_text: f64) -> Option<String> {
        unspaced(text.split(' ').map(str::as_bytes), words_per_text)
    }

    #[test]
    fn clauses_without_spaces_are_named_with_their_script() {
        assert_eq!(
            of("收到水壶退货三天但是第二次 朋友颜色失望用了电池难看", 1.0).unwrap(),
            "most words are Chinese, which has no spaces between words: a mean of 1.0 words per text, each a clause of 12.5 \
             characters; cut the texts into words, for example with jieba, and write a space between them"
        );
        let named =
            |text, mean| of(text, mean).unwrap_or_default().split(',').next().unwrap_or_default().to_owned();
        assert_eq!(named("収納ケースはとても良い商品です すぐに壊れました", 2.0), "most words are Japanese");
        assert_eq!(named("สินค้าดีมากส่งไวมาก แพ็คของดีมากครับ", 2.0), "most words are Thai");
        // Short texts.
        assert_eq!(named("很好 不错 质量差", 1.0), "most words are Chinese");
    }

    #[test]
    fn words_with_spaces_between_them_are_no_clauses() {
        for text in [
            "收到 水壶 退货 三天 但是 第二 次",
            "収納 ケース は とても 良い 商品 です",
            "สินค้า ดี มาก ส่ง ไว มาก",
            "아주 좋은 제품입니다",
            "очень хороший товар",
            "it works well 很好用的水壶质量不错 and so on",
            "",
        ] {
            assert_eq!(of(text, 6.0), None, "{text}");
        }
        assert_eq!(of("great", 1.0), None);
    }
}
