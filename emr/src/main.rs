//! The program `emr`: plans a job, runs it on a cluster or on this machine, and explains how it ended.

use std::process::ExitCode;

use clap::error::ErrorKind;
use emr::arguments::Arguments;
use program::exit::{Exit, Fails, chain, notice, usage};

fn main() -> ExitCode {
    if let Err(error) = program::start("emr") {
        return Exit::Io.end("emr", &error.to_string());
    }
    let arguments = match corpus::arguments::parse::<Arguments>(option_env!("SENTIMILL_COMMIT"), &[]) {
        Ok(arguments) => arguments,
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // Without a command, the help is the message. If nobody reads it, the exit code still reports the error.
            let _ = error.print();
            return Exit::Usage.into();
        }
        Err(error) => return usage("emr", &error.render(), error.use_stderr()),
    };
    match arguments.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.details().iter().for_each(|detail| notice("emr", detail));
            error.exit().end("emr", &chain(&error))
        }
    }
}
