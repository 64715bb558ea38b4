//! QR codes: what decoders read in them, who gets them, and how long they are kept.

use std::process::Command;

use axum::body::Body;
use curt_core::Scope;
use curt_http::{HttpSettings, QrLogo};
use http::{Method, Request};
use http_body_util::BodyExt;
use serde_json::json;
use tower::ServiceExt;

use crate::harness::{ADA, ROOT, World};
use crate::pages_forms::{COOKIE, click};

const LOGO: &[u8] = include_bytes!("logo.png");

async fn with_logo() -> World {
    let mut settings = HttpSettings::default();
    let logo = QrLogo::parse(LOGO).unwrap();
    settings.pages = settings.pages.with_qr_logo(Some(logo));
    World::with(settings).await
}

/// Makes links whose short URLs have all lengths, and returns their keys.
async fn keys(world: &World, lengths: impl Iterator<Item = usize>) -> Vec<String> {
    let mut keys = Vec::new();
    for length in lengths {
        let symbols = "aB3-x_Z9kQ".chars().cycle().skip(length % 10);
        let key: String = symbols.take(length).collect();
        let body = json!({"target": "https://example.com/x", "alias": key});
        let made = world.call(Method::POST, "/api/v1/links", Some(body)).await;
        assert_eq!(made.status, 201, "{}", made.body);
        keys.push(key);
    }
    keys
}

async fn picture(world: &World, path: &str) -> Vec<u8> {
    let request = Request::get(path).header("x-api-key", &world.key);
    let request = request.body(Body::empty()).unwrap();
    let response = world.router.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
    body.to_vec()
}

/// Squares that are dark, on paper that goes on around the picture.
struct Squares {
    width: usize,
    dark: Vec<bool>,
}

/// Paper that a camera sees beside the picture.
const AROUND: usize = 4;
const PIXELS: usize = 4;

impl Squares {
    fn new(width: usize) -> Self {
        Self {
            width,
            dark: vec![false; width * width],
        }
    }

    /// The drawing's rectangles, and the box of its logo, which is grey to a camera.
    fn of_svg(svg: &str) -> Self {
        let width = svg.split("viewBox=\"0 0 ").nth(1).unwrap();
        let mut squares = Self::new(width.split(' ').next().unwrap().parse().unwrap());
        let path = svg.rsplit(" d=\"").next().unwrap();
        let path = path.split('"').next().unwrap();
        for run in path.split('M').skip(1) {
            let (x, rest) = run.split_once(' ').unwrap();
            let (y, rest) = rest.split_once('h').unwrap();
            let run: usize = rest.split('v').next().unwrap().parse().unwrap();
            let (x, y): (usize, usize) = (x.parse().unwrap(), y.parse().unwrap());
            squares.dark[y * squares.width + x..][..run].fill(true);
        }
        squares
    }

    fn of_text(text: &str) -> Self {
        let lines: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
        let mut squares = Self::new(lines[0].len());
        for (y, line) in lines.iter().enumerate() {
            for (x, symbol) in line.iter().enumerate() {
                let halves = [matches!(symbol, '█' | '▀'), matches!(symbol, '█' | '▄')];
                for (half, dark) in halves.into_iter().enumerate() {
                    let at = (2 * y + half) * squares.width + x;
                    if let Some(square) = squares.dark.get_mut(at) {
                        *square = dark;
                    }
                }
            }
        }
        squares
    }

    fn decode(&self) -> String {
        let side = (self.width + 2 * AROUND) * PIXELS;
        let grey = |x: usize, y: usize| {
            let square = |pixel: usize| (pixel / PIXELS).checked_sub(AROUND);
            let inside = |at: &usize| *at < self.width;
            let found = square(x).filter(inside).zip(square(y).filter(inside));
            let is_dark = found.is_some_and(|(x, y)| self.dark[y * self.width + x]);
            if is_dark { 0 } else { 255 }
        };
        let mut image = rqrr::PreparedImage::prepare_from_greyscale(side, side, grey);
        let codes = image.detect_grids();
        assert_eq!(codes.len(), 1, "one code is found");
        codes[0].decode().unwrap().1
    }
}

#[tokio::test]
async fn drawings_are_read_as_the_short_url() {
    let world = with_logo().await;
    let keys = keys(&world, (1..=64).step_by(3)).await;
    let styles = [
        "",
        "?logo=false",
        "?logo=false&error_correction=L&margin=0",
        "?logo=false&error_correction=Q&margin=16&size=2048",
        "?logo=false&error_correction=H&color=b93a16&background=none",
        "?margin=1&color=%23000080&background=ffeeaa",
    ];
    for (at, key) in keys.iter().enumerate() {
        let style = styles[at % styles.len()];
        let svg = picture(&world, &format!("/api/v1/links/{key}/qr{style}")).await;
        let svg = String::from_utf8(svg).unwrap();
        let read = Squares::of_svg(&svg).decode();
        assert_eq!(read, format!("https://sho.rt/{key}"), "{style}");
        let has_logo = svg.contains("<image ");
        let is_short = key.len() + "https://sho.rt/".len() <= 74;
        assert_eq!(
            has_logo,
            is_short && !style.contains("logo=false"),
            "{key} {style}"
        );
        let path = format!("/api/v1/links/{key}/qr?format=text&logo=false");
        let text = String::from_utf8(picture(&world, &path).await).unwrap();
        assert_eq!(Squares::of_text(&text).decode(), read);
    }
}

#[tokio::test]
async fn pictures_are_read_as_the_short_url_by_zbar() {
    let world = with_logo().await;
    let keys = keys(&world, (2..=64).step_by(5)).await;
    let styles = [
        "",
        "&size=2048&margin=16",
        "&size=97&margin=2&logo=false",
        "&logo=false&color=b93a16&background=fff4e0&error_correction=L",
        "&color=000080&background=ffff80&size=500",
        "&logo=false&background=none&size=333",
        "&logo=false&error_correction=H&margin=8&size=1001",
    ];
    let folder = std::env::temp_dir().join(format!("curt-qr-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut zbar = Command::new("zbarimg");
    zbar.args(["--quiet", "--raw", "-Sdisable", "-Sqrcode.enable"]);
    let mut expected = Vec::new();
    for (at, key) in keys.iter().enumerate() {
        let style = styles[at % styles.len()];
        let path = format!("/api/v1/links/{key}/qr?format=png{style}");
        let file = folder.join(format!("{at:02}.png"));
        std::fs::write(&file, picture(&world, &path).await).unwrap();
        zbar.arg(file);
        expected.push(format!("https://sho.rt/{key}"));
    }
    let read = zbar.output();
    std::fs::remove_dir_all(&folder).unwrap();
    let read = match read {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let why = "zbarimg is missing (install it with: make engines)";
            curt_testkit::skipped::say("qr::pictures_are_read_as_the_short_url_by_zbar", why);
            return;
        }
        read => read.unwrap(),
    };
    let read: Vec<String> = String::from_utf8(read.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    assert_eq!(read, expected);
}

#[tokio::test]
async fn codes_are_for_those_who_may_read_the_link() {
    let world = World::new().await;
    world.link("mine").await;
    let admin = world
        .key_for(ROOT, "admin", &[Scope::Read, Scope::Admin])
        .await;
    let creator = world.key_for(ADA, "creator", &[Scope::Create]).await;
    for (key, status) in [
        (Some(&world.key), 200),
        (Some(&admin), 200),
        (Some(&world.stranger), 404),
        (Some(&world.revoked), 401),
        (Some(&creator), 403),
        (None, 401),
    ] {
        for path in ["/api/v1/links/mine/qr", "/links/mine/qr.svg"] {
            let mut request = Request::get(path);
            if let Some(key) = key {
                request = request.header("x-api-key", key);
            }
            let answer = world.send(request.body(Body::empty()).unwrap()).await;
            assert_eq!(answer.status, status, "{path}: {}", answer.body);
        }
    }
    let absent = world
        .call(Method::GET, "/api/v1/links/nobody/qr", None)
        .await;
    assert_eq!(absent.problem(), "link-not-found");
    for (query, refused) in [
        ("size=32", "size/too_small"),
        ("logo=true", "logo/unavailable"),
        ("format=gif", "format/value"),
        ("color=ffffff", "color/contrast"),
    ] {
        let path = format!("/api/v1/links/mine/qr?{query}");
        let answer = world.call(Method::GET, &path, None).await;
        assert_eq!(
            (answer.status.as_u16(), answer.refused().as_str()),
            (422, refused)
        );
    }
}

#[tokio::test]
async fn browsers_keep_codes_and_ask_whether_they_still_may() {
    let world = World::new().await;
    world.link("mine").await;
    let token = world.session(ADA).await;
    let first = click(&world, "/links/mine/qr.svg", &token).await;
    assert_eq!(first.status, 200);
    assert_eq!(first.header("content-type"), "image/svg+xml");
    assert_eq!(first.header("cache-control"), "private, no-cache");
    assert!(
        first
            .header("content-security-policy")
            .contains("default-src 'none'")
    );
    let etag = first.header("etag").to_owned();
    let again = |path: &'static str, token: String| {
        let request = Request::get(path)
            .header("if-none-match", &etag)
            .header("cookie", format!("{COOKIE}={token}"));
        world.send(request.body(Body::empty()).unwrap())
    };
    let same = again("/links/mine/qr.svg", token.clone()).await;
    assert_eq!((same.status.as_u16(), same.body.as_str()), (304, ""));
    assert_eq!(same.header("etag"), etag);
    let other = again("/links/mine/qr.svg?margin=5", token).await;
    assert_eq!(other.status, 200);
    let ended = again("/links/mine/qr.svg", "curts_0_0".to_owned()).await;
    assert_eq!(ended.status, 401, "a tag gives no right");
}
