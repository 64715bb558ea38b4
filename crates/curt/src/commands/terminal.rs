//! What a terminal shows: tables that fit it, and texts that cannot steer it.

use std::io::IsTerminal as _;

use comfy_table::{ContentArrangement, Table, presets};
use console::Term;

/// Narrower than this no table can be read.
const WIDTH_MIN: u16 = 40;

/// A table without lines, as wide as the terminal; into a file or pipe every row stays one line.
pub(super) fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    if let Some(width) = width() {
        table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(width.max(WIDTH_MIN));
    }
    table
}

/// Values are what strangers sent: in a terminal, control characters would act.
pub(super) fn plain(value: &str) -> String {
    let acts = |symbol: char| {
        symbol.is_control()
            || matches!(symbol, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    value.replace(acts, "\u{fffd}")
}

/// What COLUMNS says, or else the terminal.
fn width() -> Option<u16> {
    let said = std::env::var("COLUMNS").ok();
    let said = said.and_then(|text| text.parse::<u16>().ok());
    said.filter(|width| *width > 0).or_else(|| {
        let is_terminal = std::io::stdout().is_terminal();
        is_terminal.then(|| Term::stdout().size().1)
    })
}
