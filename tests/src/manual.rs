//! Converts a program's command into man pages, one per subcommand, and completions for bash, zsh and fish.
//!
//! For examples and tests only: no program links it.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::Shell;

/// The shells that completions are written for.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Writes a program's pages to `man/` and its completions to `completions/` below a folder. Existing files of these names
/// are replaced.
pub fn write(command: &Command, folder: &Path) -> io::Result<()> {
    let (man, completions) = (folder.join("man"), folder.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    clap_mangen::generate_to(command.clone(), &man)?;
    for shell in SHELLS {
        let name = command.get_name().to_owned();
        clap_complete::generate_to(shell, &mut command.clone(), name, &completions)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    #[test]
    fn each_command_has_a_page_and_each_shell_a_completion() {
        let flag = |name| Arg::new(name).long(name).help("Place of the run");
        let gc = Command::new("gc").about("List objects").arg(flag("delete"));
        let command = Command::new("merge").about("Make a dataset").arg(flag("run")).subcommand(gc);
        let folder = tempfile::tempdir().unwrap();

        write(&command, folder.path()).unwrap();

        let files = |name: &str| {
            let entries = fs::read_dir(folder.path().join(name)).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(files("man"), ["merge-gc.1", "merge.1"]);
        assert_eq!(files("completions"), ["_merge", "merge.bash", "merge.fish"]);
        let page = fs::read_to_string(folder.path().join("man/merge.1")).unwrap();
        assert!(page.contains("Place of the run"), "{page}");
        for name in ["_merge", "merge.bash", "merge.fish"] {
            let completion = fs::read_to_string(folder.path().join("completions").join(name)).unwrap();
            assert!(completion.contains("run") && completion.contains("delete"), "{completion}");
        }
    }
}
