//! Splits Markdown into its fenced blocks, and a console block into its commands.

/// The start of the line above a block that the test does not run: `<!-- not run: REASON -->`.
const NOT_RUN: &str = "<!-- not run: ";

/// A fenced block of a page.
#[derive(Debug)]
pub struct Block<'a> {
    /// The first word after the fence: `console`, `sh`, `python`, …
    pub language: &'a str,
    /// The second word: the name under which a reader saves the block.
    pub file: Option<&'a str>,
    /// The text between the fences.
    pub text: &'a str,
    /// The number of the fence's line.
    pub line: usize,
    /// Why the block is not run.
    pub not_run: Option<&'a str>,
}

/// A command of a console block, and the output that the page shows.
#[derive(Debug)]
pub struct Step<'a> {
    /// The command, with the prompts of its continuation lines.
    pub command: &'a str,
    /// The output, with the ends of its lines.
    pub output: &'a str,
}

/// Returns the fenced blocks of a page in their order.
pub fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let (mut open, mut above, mut at) = (None, "", 0);
    for (number, line) in page.split_inclusive('\n').enumerate() {
        let from = at;
        at += line.len();
        let fence = line.trim_end().strip_prefix("```");
        match (open, fence) {
            (None, Some(info)) => open = Some((info, at, number + 1)),
            (Some((info, begin, first)), Some("")) => {
                let mut words = info.split_whitespace();
                let not_run = above.strip_prefix(NOT_RUN).and_then(|rest| rest.strip_suffix(" -->"));
                blocks.push(Block {
                    language: words.next().unwrap_or_default(),
                    file: words.next(),
                    text: &page[begin..from],
                    line: first,
                    not_run,
                });
                open = None;
                above = "";
            }
            (None, None) => above = line.trim_end(),
            (Some(_), _) => {}
        }
    }
    assert!(open.is_none(), "a fenced block is not closed: {open:?}");
    blocks
}

/// Returns the commands of a console block: lines that begin with `$ `, and further lines of a command, which begin
/// with `> `.
pub fn steps(block: &str) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    let mut rest = block;
    while let Some(command) = rest.strip_prefix("$ ") {
        let mut end = command.find('\n').expect("a command ends its line") + 1;
        while command[end..].starts_with("> ") {
            end += command[end..].find('\n').expect("a command ends its line") + 1;
        }
        let output = &command[end..];
        let next = if output.starts_with("$ ") { Some(0) } else { output.find("\n$ ").map(|at| at + 1) };
        let length = next.unwrap_or(output.len());
        steps.push(Step { command: command[..end].trim_end(), output: &output[..length] });
        rest = &output[length..];
    }
    assert!(rest.is_empty(), "a console block begins with a command, which begins with `$ `: {rest}");
    steps
}

/// Returns a step's command as the shell reads it, without the prompts of its continuation lines.
pub fn shell(command: &str) -> String {
    command.replace("\n> ", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_cut_into_blocks_and_a_block_into_commands() {
        let page = "a\n<!-- not run: no cluster -->\n```sh\nhdfs x\n```\n\n```console\n$ a\nb\n$ cat <<E\n> c\n> E\nc\n```\n\
                    ```python read.py\nd\n```\n";
        let found = blocks(page);
        let kinds: Vec<_> =
            found.iter().map(|block| (block.language, block.file, block.line, block.not_run)).collect();
        let expected = [
            ("sh", None, 3, Some("no cluster")),
            ("console", None, 7, None),
            ("python", Some("read.py"), 15, None),
        ];
        assert_eq!(kinds, expected);
        let steps: Vec<_> =
            steps(found[1].text).iter().map(|step| (shell(step.command), step.output)).collect();
        assert_eq!(steps, [("a".to_owned(), "b\n"), ("cat <<E\nc\nE".to_owned(), "c\n")]);
    }
}
