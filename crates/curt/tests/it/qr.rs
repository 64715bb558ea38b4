//! `curt link qr`: what another program reads in the pictures.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;

use crate::site::Site;

/// What a decoder reads in a picture; `None`, and told of, where there is no decoder.
pub(crate) fn decoded(file: &Path) -> Option<String> {
    let read = Command::new("zbarimg")
        .args(["--raw", "-q"])
        .arg(file)
        .output();
    match read {
        Ok(read) => Some(String::from_utf8_lossy(&read.stdout).trim().to_owned()),
        Err(error) => {
            curt_testkit::skipped::say("QR codes", &format!("zbarimg: {error}"));
            None
        }
    }
}

#[test]
fn the_command_writes_codes_that_lead_to_the_link() {
    let site = Site::start(&[]);
    let link = json!({ "target": "https://example.com/", "alias": "poster" });
    assert_eq!(site.api().post("/api/v1/links", &link).unwrap().status, 201);
    let url = format!("http://{}", site.http());
    let run = |own: &[&str]| -> Output {
        let common = ["--url", &url, "--api-key", site.token()];
        site.output(&[&["link", "qr"], own, &common].concat())
    };
    let printed = |own: &[&str]| {
        let output = run(own);
        assert!(output.status.success(), "{own:?}: {output:?}");
        output.stdout
    };
    let short_url = format!("{url}/poster");

    let file = site.folder().join("poster.png");
    let path = file.to_str().unwrap();
    assert!(printed(&["poster", "--output", path, "--size", "512"]).is_empty());
    assert_eq!(width(&fs::read(&file).unwrap()), 512);
    assert!(decoded(&file).is_none_or(|read| read == short_url));
    // The short URL names the link, too; - is the standard output.
    let piped = printed(&[
        &short_url, "--output", "-", "--format", "png", "--color", "1a1a40",
    ]);
    assert_eq!(width(&piped), 320);
    fs::write(&file, &piped).unwrap();
    assert!(decoded(&file).is_none_or(|read| read == short_url));

    let file = site.folder().join("poster.svg");
    let path = file.to_str().unwrap();
    assert!(printed(&["poster", "-o", path]).is_empty());
    let drawing = fs::read_to_string(&file).unwrap();
    let asked = "/api/v1/links/poster/qr?format=svg";
    assert_eq!(drawing, site.api().get(asked).unwrap().text());
    assert!(drawing.starts_with("<svg"), "{drawing}");
    assert_eq!(printed(&["poster", "--format", "svg"]), drawing.as_bytes());

    let text = String::from_utf8(printed(&["poster"])).unwrap();
    let lines: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
    assert!(
        lines.len() > 10 && lines.iter().all(|line| *line == lines[0]),
        "{text}"
    );

    for (wrong, why) in [
        (&["nope"][..], "no such link"),
        (&["poster", "--size", "31"], "size"),
        (&["poster", "--color", "red"], "color"),
        (&["poster", "--error-correction", "X"], "error_correction"),
        (
            &["poster", "-o", "/no/such/folder/qr.png"],
            "/no/such/folder/qr.png",
        ),
    ] {
        let output = run(wrong);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && output.stdout.is_empty(),
            "{wrong:?}"
        );
        assert!(told.contains(why), "{wrong:?}: {told}");
    }
}

/// In pixels.
fn width(png: &[u8]) -> u32 {
    assert_eq!(&png[1..4], b"PNG");
    u32::from_be_bytes(png[16..20].try_into().unwrap())
}
