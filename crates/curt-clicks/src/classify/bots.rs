//! Who is a program: a maintained list of some three thousand names, and what programs write about themselves.

use iscrawl::crawler_info;

/// How browsers begin: everything else is a library, a script or an app's own fetching.
const BROWSERS: [&str; 14] = [
    "Mozilla/",
    "Opera/",
    "Lynx/",
    "Links (",
    "ELinks/",
    "w3m/",
    "NetSurf/",
    "Dillo/",
    "UCWEB/",
    "Nokia",
    "BlackBerry",
    "SAMSUNG-",
    "SonyEricsson",
    "DoCoMo/",
];

/// What browsers that begin like all others draw pages with; a program that only borrows the beginning has none.
const ENGINES: [&str; 7] = [
    "WebKit", "Gecko", "KHTML", "Trident", "MSIE", "Presto", "Goanna",
];

/// What only programs say of themselves, in lower case. The list has the names; these catch the ones to come.
const WORDS: [&str; 13] = [
    "bot",
    "crawl",
    "spider",
    "slurp",
    "http:",
    "https:",
    "headless",
    "lighthouse",
    "phantomjs",
    "selenium",
    "externalhit",
    "(via ",
    // Outlook, Word and the like look at a link before they hand it to the browser, which then counts.
    "ms-office",
];

/// Words that programs use, but that also stand in names of builds and apps: they tell nothing about an agent that
/// names a browser with its version.
const DOUBTFUL_WORDS: [&str; 6] = [
    "preview",
    "fetch",
    "monitor",
    "archive",
    "uptime",
    "validator",
];

/// Products that browsers name with a version.
const PRODUCTS: [&str; 5] = ["Chrome/", "Firefox/", "Safari/", "CriOS/", "FxiOS/"];

/// Apps in which people read mail and messages, and follow links; the list names them for what else they send.
const APPS: [&str; 2] = ["Outlook-iOS/", "Slack_SSB/"];

/// Phones of a maker whose name ends like a program's.
const NOT_A_BOT: &str = "cubot";

/// Builds the list's index, which takes some thirty milliseconds: at a start and not in the middle of a request.
pub(super) fn prepare() {
    crawler_info("");
}

pub(super) fn is_bot(agent: &str) -> bool {
    let begins_right = BROWSERS.iter().any(|browser| agent.starts_with(browser));
    let draws = !agent.starts_with("Mozilla/") || ENGINES.iter().any(|mark| agent.contains(mark));
    if !begins_right || !draws {
        return true;
    }
    let lower = agent.to_ascii_lowercase().replace(NOT_A_BOT, "");
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let has = |marks: &[&str]| marks.iter().any(|mark| agent.contains(mark));
    says(&WORDS)
        || (says(&DOUBTFUL_WORDS) && !has(&PRODUCTS))
        || (!has(&APPS) && crawler_info(agent).is_some())
}
