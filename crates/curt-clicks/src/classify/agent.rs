//! Browser, system and device from a user agent.
//!
//! The families come from `woothee`, behind a list of the apps and browsers that it does not tell apart. The larger rule
//! sets were measured and left: uap-core's six hundred expressions take half a millisecond for each new agent and
//! 150 MB, so that a stranger with random agents could hold up the counting; this takes three microseconds.

use curt_core::limits::VALUE_BYTES_MAX;
use woothee::parser::Parser;
use woothee::woothee::VALUE_UNKNOWN;

use super::UNKNOWN;
use super::bots::is_bot;

/// What a user agent says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    pub browser: Box<str>,
    pub system: Box<str>,
    pub device: Device,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    Desktop,
    Mobile,
    Tablet,
    Bot,
    /// Televisions, consoles, and what cannot be told.
    Other,
}

impl Device {
    pub const ALL: [Self; 5] = [
        Self::Desktop,
        Self::Mobile,
        Self::Tablet,
        Self::Bot,
        Self::Other,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Desktop => "desktop",
            Self::Mobile => "mobile",
            Self::Tablet => "tablet",
            Self::Bot => "bot",
            Self::Other => "other",
        }
    }
}

/// Apps that show pages themselves, and browsers built on others: the first that the agent contains.
const NAMED: [(&str, &str); 51] = [
    ("MessengerForiOS", "Messenger"),
    ("MessengerLiteForiOS", "Messenger"),
    ("FB_IAB/MESSENGER", "Messenger"),
    ("Orca-Android", "Messenger"),
    ("Instagram ", "Instagram"),
    ("Barcelona ", "Threads"),
    ("FBAN/", "Facebook"),
    ("FBAV/", "Facebook"),
    ("WhatsApp/", "WhatsApp"),
    ("TikTok", "TikTok"),
    ("musical_ly", "TikTok"),
    ("BytedanceWebview", "TikTok"),
    ("Twitter for ", "X"),
    ("TwitterAndroid", "X"),
    ("LinkedInApp", "LinkedIn"),
    ("Pinterest", "Pinterest"),
    ("Snapchat", "Snapchat"),
    ("MicroMessenger/", "WeChat"),
    ("KAKAOTALK", "KakaoTalk"),
    ("Telegram", "Telegram"),
    (" Line/", "LINE"),
    ("Discord/", "Discord"),
    ("Teams/", "Microsoft Teams"),
    ("Slack_SSB/", "Slack"),
    ("Outlook-iOS/", "Outlook"),
    ("GSA/", "Google app"),
    ("DuckDuckGo/", "DuckDuckGo"),
    ("Ddg/", "DuckDuckGo"),
    ("Brave", "Brave"),
    ("Focus/", "Firefox Focus"),
    ("Klar/", "Firefox Focus"),
    ("HuaweiBrowser/", "Huawei Browser"),
    ("MiuiBrowser/", "Mi Browser"),
    ("HeyTapBrowser/", "HeyTap Browser"),
    ("VivoBrowser/", "Vivo Browser"),
    ("UCBrowser/", "UC Browser"),
    ("QQBrowser/", "QQ Browser"),
    ("Whale/", "Whale"),
    ("Silk/", "Silk"),
    ("coc_coc_browser/", "Coc Coc"),
    ("PaleMoon/", "Pale Moon"),
    ("SeaMonkey/", "SeaMonkey"),
    ("Opera Mini/", "Opera Mini"),
    ("OculusBrowser/", "Oculus Browser"),
    ("Epiphany/", "Epiphany"),
    ("(Ecosia ", "Ecosia"),
    ("OPT/", "Opera"),
    ("OPX/", "Opera"),
    ("Lynx/", "Lynx"),
    ("w3m/", "w3m"),
    // Below all: browsers built on it name themselves beside it.
    ("ArkWeb/", "ArkWeb"),
];

/// Systems that the list of families does not know, or does not tell apart.
const SYSTEMS: [(&str, &str); 6] = [
    ("OpenHarmony", "HarmonyOS"),
    ("FreeBSD", "FreeBSD"),
    ("OpenBSD", "OpenBSD"),
    ("NetBSD", "NetBSD"),
    ("Tizen", "Tizen"),
    ("PlayStation 5", "PlayStation 5"),
];

/// Marks of what is neither on a desk nor in a hand.
const OTHER_DEVICES: [&str; 18] = [
    "SmartTV",
    "SMART-TV",
    "Smart TV",
    "SmartHub",
    "Android TV",
    "AppleTV",
    "Apple TV",
    "GoogleTV",
    "CrKey",
    "BRAVIA",
    "HbbTV",
    "Web0S",
    "Roku",
    "AFT",
    "PlayStation",
    "Xbox",
    "Nintendo",
    "OculusBrowser/",
];
const TABLETS: [&str; 6] = ["iPad", "Tablet", "PlayBook", "Kindle", "Silk/", "SM-T"];
const MOBILES: [&str; 8] = [
    "Mobi",
    "iPhone",
    "iPod",
    "Windows Phone",
    "Opera Mini",
    "BlackBerry",
    "KAIOS",
    "MIDP",
];
const DESKTOPS: [&str; 8] = [
    "Windows",
    "Macintosh",
    "X11",
    "Linux",
    "CrOS",
    "Wayland",
    "BSD",
    "Haiku",
];

impl Agent {
    #[must_use]
    pub(super) fn read(text: &str) -> Self {
        let read = Parser::new().parse(text);
        let (family, system) = read
            .as_ref()
            .map_or((VALUE_UNKNOWN, VALUE_UNKNOWN), |read| (read.name, read.os));
        Self {
            browser: bounded(browser(text, family)),
            system: bounded(self::system(text, system)),
            device: device(text),
        }
    }
}

/// Names come out of fixed lists today; a new version of a list must not be able to break the bound on values.
fn bounded(name: &str) -> Box<str> {
    name[..name.floor_char_boundary(VALUE_BYTES_MAX)].into()
}

fn browser<'a>(text: &str, family: &'a str) -> &'a str {
    let named = NAMED.iter().find(|(mark, _)| text.contains(mark));
    match (named, family) {
        (Some((_, name)), _) => name,
        (None, VALUE_UNKNOWN) => UNKNOWN,
        (None, "SamsungBrowser") => "Samsung Internet",
        (None, "Webview") => "WebView",
        // The family is the console; what shows the page is its browser.
        (None, "Xbox One" | "Xbox 360") if text.contains("Edg") => "Edge",
        (None, family) => family,
    }
}

/// One name per system: browsers have stopped telling versions apart.
fn system<'a>(text: &str, os: &'a str) -> &'a str {
    if let Some((_, name)) = SYSTEMS.iter().find(|(mark, _)| text.contains(mark)) {
        return name;
    }
    match os {
        VALUE_UNKNOWN => UNKNOWN,
        "iPhone" | "iPad" | "iPod" | "iOS" => "iOS",
        "Mac OSX" | "Mac OS Classic" => "macOS",
        "ChromeOS" => "ChromeOS",
        phone if phone.starts_with("Windows Phone") => "Windows Phone",
        windows if windows.starts_with("Windows") => "Windows",
        other => other,
    }
}

fn device(text: &str) -> Device {
    let has = |marks: &[&str]| marks.iter().any(|mark| text.contains(mark));
    let hand_held = has(&MOBILES);
    if is_bot(text) {
        Device::Bot
    } else if has(&OTHER_DEVICES) {
        Device::Other
    } else if has(&TABLETS) || (text.contains("Android") && !hand_held) {
        Device::Tablet
    } else if hand_held {
        Device::Mobile
    } else if has(&DESKTOPS) {
        Device::Desktop
    } else {
        Device::Other
    }
}
