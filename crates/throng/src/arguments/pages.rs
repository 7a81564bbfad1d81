//! The flags of commands that generate completions and manual pages from the command line.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  throng completions bash > \
    ~/.local/share/bash-completion/completions/throng\n  throng completions zsh > \
    ~/.zfunc/_throng            with fpath+=~/.zfunc before compinit\n  throng completions fish > \
    ~/.config/fish/completions/throng.fish")]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: ShellKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShellKind {
    Bash,
    Fish,
    Zsh,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
         \x20 throng man | man -l -            shows throng's page\n\
         \x20 throng man ~/.local/share/man/man1    all pages, for `man throng-bench`")]
pub(crate) struct ManArguments {
    /// Directory for the pages of all commands; by default, the page of `throng` is printed to
    /// standard output
    pub(crate) directory: Option<PathBuf>,
}
