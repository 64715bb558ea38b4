//! `curt link qr`.

use std::fs;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::input::parse_key;
use crate::commands::client::Client;

/// Black on white, whatever colours the terminal has: most scanners read nothing else.
const ON_PAPER: &str = "\x1b[38;5;16;48;5;231m";
const AS_BEFORE: &str = "\x1b[0m";

#[derive(Args, Debug)]
pub(super) struct Qr {
    /// The link's key or short URL
    #[arg(value_parser = parse_key)]
    key: String,
    /// The file to write; without one, or with -, standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What to write; by the ending of the file unless said otherwise, and text without one
    #[arg(long, value_enum)]
    format: Option<PictureFormat>,
    /// Width and height in pixels, 32 to 2048 [default: 320]
    #[arg(long, value_name = "PIXELS")]
    size: Option<u16>,
    /// The empty border, in squares of the code, 0 to 16 [default: 4]
    #[arg(long, value_name = "SQUARES")]
    margin: Option<u16>,
    /// The colour of the squares, as 1a1a40 [default: 000000]
    #[arg(long, value_name = "COLOR")]
    color: Option<String>,
    /// The colour behind them, or none [default: ffffff]
    #[arg(long, value_name = "COLOR")]
    background: Option<String>,
    /// How much may be hidden or damaged: L, M, Q or H [default: M]
    #[arg(long, value_name = "LEVEL")]
    error_correction: Option<String>,
    /// Leave the server's logo out
    #[arg(long)]
    no_logo: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PictureFormat {
    /// Characters for a terminal
    Text,
    /// A drawing
    Svg,
    /// Pixels
    Png,
}

impl PictureFormat {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Svg => "svg",
            Self::Png => "png",
        }
    }
}

impl Qr {
    pub(super) fn run(self, client: &Client) -> anyhow::Result<()> {
        let file = self.output.filter(|path| path.as_os_str() != "-");
        let ending = file.as_ref().and_then(|path| path.extension());
        let format = match (self.format, ending.and_then(|ending| ending.to_str())) {
            (Some(format), _) => format,
            (None, Some("svg")) => PictureFormat::Svg,
            (None, Some("png")) => PictureFormat::Png,
            (None, _) => PictureFormat::Text,
        };
        let mut query = vec![("format", format.name().to_owned())];
        for (name, value) in [
            ("size", self.size.map(|size| size.to_string())),
            ("margin", self.margin.map(|margin| margin.to_string())),
            ("color", self.color),
            ("background", self.background),
            ("error_correction", self.error_correction),
            ("logo", self.no_logo.then(|| "false".to_owned())),
        ] {
            query.extend(value.map(|value| (name, value)));
        }
        let picture = client.get_bytes(&["links", &self.key, "qr"], &query)?;
        if let Some(file) = file {
            return fs::write(&file, picture)
                .with_context(|| format!("could not write {}", file.display()));
        }
        let mut stdout = std::io::stdout().lock();
        if format == PictureFormat::Text && stdout.is_terminal() {
            for line in String::from_utf8_lossy(&picture).lines() {
                writeln!(stdout, "{ON_PAPER}{line}{AS_BEFORE}")?;
            }
            return Ok(());
        }
        Ok(stdout.write_all(&picture)?)
    }
}
