//! Headers as many different visitors send them. Shares and lists are made up after what a public site sees; what matters
//! to a store of clicks is that values repeat as unevenly as they do in life.

use crate::random::Random;
use crate::zipf::Zipf;

/// Different sets of headers; each request takes one of them.
pub(super) const VARIANTS: usize = 8_192;

/// Of a hundred clicks, those by bots, those without a referrer, those that only fetch ahead.
const BOTS: u64 = 8;
const WITHOUT_REFERRER: u64 = 45;
const FETCHING_AHEAD: u64 = 2;

const BOT_AGENTS: [&str; 8] = [
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
    "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
    "Twitterbot/1.0",
    "WhatsApp/2.24.20.89 A",
    "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)",
    "curl/8.11.0",
];
const LANGUAGES: [&str; 16] = [
    "en-US,en;q=0.9",
    "en-GB,en;q=0.8",
    "de-DE,de;q=0.9,en;q=0.5",
    "es-ES,es;q=0.9",
    "fr-FR,fr;q=0.9,en-US;q=0.6",
    "pt-BR,pt;q=0.9,en;q=0.7",
    "ja",
    "zh-CN,zh;q=0.9",
    "ru-RU,ru;q=0.9",
    "it-IT,it;q=0.9",
    "nl-NL,nl;q=0.9",
    "pl-PL,pl;q=0.9",
    "tr-TR,tr;q=0.9",
    "ko-KR,ko;q=0.9",
    "sv-SE,sv;q=0.9",
    "id-ID,id;q=0.9",
];
const REFERRING_HOSTS: u32 = 2_000;
const LARGE_HOSTS: [&str; 8] = [
    "t.co",
    "www.google.com",
    "l.facebook.com",
    "www.reddit.com",
    "www.linkedin.com",
    "out.reddit.com",
    "news.ycombinator.com",
    "www.bing.com",
];

/// Everything after the key, by variant.
pub(super) fn header_variants(host: &str) -> Vec<Vec<u8>> {
    let mut visitors = Visitors {
        random: Random::new(1),
        languages: Zipf::new(LANGUAGES.len() as u32, 1.0),
        hosts: Zipf::new(REFERRING_HOSTS, 1.0),
        // The newest version of a browser is the commonest.
        versions: Zipf::new(24, 1.2),
    };
    (0..VARIANTS)
        .map(|_| visitors.headers(host).into_bytes())
        .collect()
}

struct Visitors {
    random: Random,
    languages: Zipf,
    hosts: Zipf,
    versions: Zipf,
}

impl Visitors {
    fn headers(&mut self, host: &str) -> String {
        let mut text = format!(" HTTP/1.1\r\nHost: {host}\r\n");
        if self.random.below(100) < BOTS {
            let agent = BOT_AGENTS[self.random.below(BOT_AGENTS.len() as u64) as usize];
            return text + "User-Agent: " + agent + "\r\nAccept: */*\r\n\r\n";
        }
        let language = LANGUAGES[self.languages.draw(&mut self.random) as usize];
        for (name, value) in [
            ("User-Agent", self.agent().as_str()),
            (
                "Accept",
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            ),
            ("Accept-Language", language),
            ("Accept-Encoding", "gzip, deflate, br"),
        ] {
            text = text + name + ": " + value + "\r\n";
        }
        if self.random.below(100) >= WITHOUT_REFERRER {
            text = text + "Referer: " + &self.referrer() + "\r\n";
        }
        if self.random.below(100) < FETCHING_AHEAD {
            text += "Sec-Purpose: prefetch\r\n";
        }
        text + "Connection: keep-alive\r\n\r\n"
    }

    fn agent(&mut self) -> String {
        let age = self.versions.draw(&mut self.random);
        // Chromium and Firefox bring a version every month, Safari one a year.
        let (version, safari) = (142 - age, 26 - age / 6);
        let minor = self.random.below(6);
        match self.random.below(100) {
            0..=29 => format!(
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{version}.0.0.0 Safari/537.36"
            ),
            30..=54 => format!(
                "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{version}.0.0.0 Mobile Safari/537.36"
            ),
            55..=76 => format!(
                "Mozilla/5.0 (iPhone; CPU iPhone OS {}_{minor} like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/{}.{minor} Mobile/15E148 Safari/604.1",
                safari, safari
            ),
            77..=84 => format!(
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/{}.{minor} Safari/605.1.15",
                safari
            ),
            85..=90 => format!(
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:{version}.0) Gecko/20100101 Firefox/{version}.0"
            ),
            91..=95 => format!(
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{version}.0.0.0 Safari/537.36 Edg/{version}.0.0.0"
            ),
            _ => format!(
                "Mozilla/5.0 (Linux; Android {}; SM-S91{minor}B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/{}.0 Chrome/{version}.0.0.0 Mobile Safari/537.36",
                10 + minor,
                version - 113
            ),
        }
    }

    /// A few hosts that only say who they are, and many with a page each.
    fn referrer(&mut self) -> String {
        let host = self.hosts.draw(&mut self.random) as usize;
        match LARGE_HOSTS.get(host) {
            Some(large) => format!("https://{large}/"),
            None => format!(
                "https://blog-{host}.example/2026/{}/a-story",
                self.random.below(12) + 1
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn variants_are_whole_heads_of_many_kinds() {
        let variants = header_variants("127.0.0.1:8080");
        let (mut agents, mut referrers, mut bots) = (HashSet::new(), HashSet::new(), 0);
        for variant in &variants {
            let text = format!("GET /abc{}", String::from_utf8_lossy(variant));
            let mut headers = [httparse::EMPTY_HEADER; 16];
            let mut request = httparse::Request::new(&mut headers);
            let parsed = request.parse(text.as_bytes()).unwrap();
            assert_eq!(parsed, httparse::Status::Complete(text.len()), "{text}");
            for header in request.headers {
                let value = String::from_utf8_lossy(header.value).into_owned();
                match header.name {
                    "User-Agent" => {
                        bots += u32::from(BOT_AGENTS.contains(&value.as_str()));
                        agents.insert(value);
                    }
                    "Referer" => {
                        referrers.insert(value);
                    }
                    _ => {}
                }
            }
        }
        assert!((200..800).contains(&agents.len()), "{}", agents.len());
        assert!(referrers.len() > 1_000, "{}", referrers.len());
        // Eight of a hundred, within five standard deviations.
        assert!((530..780).contains(&bots), "{bots}");
    }
}
