use std::io::{Read, Write};
use std::net::TcpListener;

use curt_testkit::engines::browser::{Driver, Look};
use curt_testkit::need;

const PAGE: &str = "<!doctype html><html lang=en><meta name=viewport content='width=device-width'><title>Page</title><h1>Hello</h1>\
    <form action=/sent><label>Name <input name=name></label><button>Send</button></form>\
    <p id=script>no scripts</p>\
    <script>document.getElementById('script').textContent = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'</script>";

/// Answers every request with a page that names what was asked for.
fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 4_096];
            let length = stream.read(&mut head).unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..length]);
            let path = head.split(' ').nth(1).unwrap_or_default();
            let body = format!("{PAGE}<p>{path}</p>");
            let answer = format!(
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            // A browser may leave.
            let _sent = stream.write_all(answer.as_bytes());
        }
    });
    format!("http://{address}/")
}

#[test]
fn a_form_is_filled_in_and_sent_with_and_without_scripts() {
    let driver = need!(Driver::start());
    let url = serve();
    for (look, seen, unseen) in [
        (Look::DESKTOP, "light", "no scripts"),
        (Look::PHONE.dark(), "dark", "no scripts"),
        (Look::PHONE.without_scripts(), "no scripts", "light"),
    ] {
        let browser = driver.browser(look).unwrap();
        browser.open_page(&url).unwrap();
        let text = browser.text().unwrap();
        assert!(text.contains(seen) && !text.contains(unseen), "{text}");
        browser.fill("input[name=name]", "a b").unwrap();
        browser.click("button").unwrap();
        browser.wait_for_text("/sent?name=a+b").unwrap();
        assert_eq!(browser.title().unwrap(), "Page");
        assert!(browser.url().unwrap().ends_with("/sent?name=a+b"));
        let width = browser.run_script("return innerWidth", &[]).unwrap();
        assert_eq!(width, look.width, "{look:?}");
        assert!(browser.screenshot().unwrap().starts_with(b"\x89PNG"));
    }
}
