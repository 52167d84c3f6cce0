//! The program `mapper`: reads standard input or files, writes standard output and counts, returns an exit
//! code.

mod counts;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use corpus::arguments;
use corpus::clean::Rules;
use corpus::ledger::{Limits, MapperCounts};
use counts::CountsFile;
use mapper::arguments::Arguments;
use mapper::{InputSplit, Mapper, Options, Output, check_format, check_inputs, check_line_bytes, unreadable};
use program::exit::Failed;
use program::hadoop::{Runner, Variable};
use program::pipe::widen;

fn main() -> ExitCode {
    arguments::run("mapper", option_env!("SENTIMILL_COMMIT"), &[], run)
}

fn run(arguments: Arguments) -> Result<(), Failed> {
    let Arguments { files, input, counts, .. } = arguments.clone();
    let mut inputs = [files, input].concat();
    if inputs == [Path::new("-")] {
        inputs.clear();
    }
    let options = options(arguments)?;
    let counts_file = counts.map(|path| CountsFile::prepare(&path, &inputs)).transpose()?;
    let counts = mapped(&inputs, options)?;
    counts_file.map_or(Ok(()), |file| file.write(&counts))
}

fn options(arguments: Arguments) -> Result<Options, Failed> {
    let (output, accepted) = if arguments.rejects {
        (Output::Rejects, Limits::NONE)
    } else {
        (Output::Records, Limits::default())
    };
    let encoding = arguments.format.encoding();
    let (format, runner) = (arguments.format.format()?, Runner::of_this_process());
    check_format(&format, encoding, runner)?;
    let rules = Rules::of_flag(arguments.punctuation);
    check_line_bytes(arguments.line_bytes_max, rules, runner)?;
    Ok(Options {
        format,
        rules,
        line_bytes_max: arguments.line_bytes_max as usize,
        encoding,
        limits: Limits {
            bad_lines_max: arguments.bad_lines_max.unwrap_or(accepted.bad_lines_max),
            invalid_utf8_max: arguments.invalid_utf8_max.unwrap_or(accepted.invalid_utf8_max),
        },
        output,
        runner,
    })
}

fn mapped(inputs: &[PathBuf], options: Options) -> Result<MapperCounts, Failed> {
    check_inputs(inputs)?;
    widen(io::stdin());
    widen(io::stdout());
    let Options { runner, encoding, .. } = options;
    // Blocks larger than the buffers of standard input and output bypass them.
    let mut mapper = Mapper::new(io::stdout().lock(), io::stderr(), options);
    if inputs.is_empty() {
        let split = standard_input();
        let unreadable = |error| unreadable(&split.file, &error, runner);
        let stdin = program::stdin().map_err(unreadable)?.lock();
        match (runner, split.split_start) {
            (Runner::User, _) => {
                mapper.read(input::of_encoding(stdin, encoding).map_err(unreadable)?, &split)?;
            }
            // Hadoop decompresses the input of a task.
            (Runner::Hadoop, None | Some(0)) => {
                mapper.read(input::as_it_comes(stdin, encoding).map_err(unreadable)?, &split)?;
            }
            (Runner::Hadoop, Some(_)) => mapper.read(stdin, &split)?,
        }
    }
    for path in inputs {
        let file = path.display().to_string();
        let input = input::open_as(path, encoding).map_err(|error| unreadable(&file, &error, runner))?;
        mapper.read(input, &InputSplit { file, split_start: None })?;
    }
    mapper.finish()
}

/// The input split that Hadoop passes to this mapper, else `-`.
fn standard_input() -> InputSplit {
    InputSplit {
        file: Variable::InputFile.value().unwrap_or_else(|| "-".to_owned()),
        split_start: Variable::InputStart.value().and_then(|start| start.parse().ok()),
    }
}
