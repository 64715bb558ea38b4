use super::{printed, stderr, stdout};
use crate::site::Site;

/// From sysexits.h, so that a service manager can tell a wrong setting from a crash.
const BAD_CONFIGURATION: i32 = 78;

const BAD_SETTINGS: &[&str] = &[
    "server.listen=nowhere",
    "server.listen=127.0.0.1:99999",
    "server.listen=",
    "server.admin_listen=x",
    "server.public_url=ftp://a",
    "server.public_url=https://a/?q=1",
    "server.public_url=https://user@a/",
    "server.public_url=not a url",
    "server.own_hosts=http://a/",
    "server.workers=-1",
    "server.workers=5000",
    "server.workers=two",
    "server.api_threads=0",
    "server.connections_max=0",
    "server.connections_per_address=-1",
    "server.header_timeout=5",
    "server.header_timeout=0s",
    "server.idle_timeout=soon",
    "server.body_timeout=-1s",
    "server.bodies_max=1MiB",
    "server.bulk_per_client=0",
    "server.referrer_policy=none",
    "server.agent_listen=x",
    "server.proxy_protocol=v3",
    "server.proxy_protocol=v1v2",
    "server.anonymous_create=yes",
    "store.links=curt.db",
    "store.links=oracle:x",
    "store.links=postgres://",
    "store.links=sqlite:a.db,postgres://h/b",
    "store.links=sqlite:a.db,sqlite:a.db",
    "store.links=cassandra://a/links,cassandra://b/links",
    "store.shard_map=redis://h",
    "links.placement=alphabet",
    "links.virtual_nodes=0",
    "store.accounts=redis://h",
    "store.stream=kafka://h",
    "store.stream=postgres://h/topic",
    "store.stream=spool:",
    "store.cache=postgres://h",
    "store.cache=memcached://",
    "store.invalidations=mysql://h",
    "store.quotas=redis://",
    "store.quotas=sqlite:quotas.db",
    "store.locks=memory:",
    "keys.lock_ttl=5s",
    "clicks.spool=spool",
    "mysql.connections=0",
    "redis.command_timeout=0s",
    "limits.shared_timeout=0s",
    "postgres.replica_choice=best",
    "zookeeper.session_timeout=never",
    "s3.request_timeout=0s",
    "store.keys_form=burn",
    "store.pool=memory:",
    "store.pool=redis://",
    "store.pool=memory:,redis://h",
    "store.pool=kafka://h",
    "store.files=/tmp",
    "store.leases=zookeeper://",
    "store.leases=postgres://h",
    "store.keys=zookeeper://h",
    "store.cursor=redis://h",
    "sqlite.synchronous=off",
    "sqlite.readers=0",
    "sqlite.checkpoint_idle=0s",
    "log.access=some",
    "server.huge_pages=maybe",
    "sqlite.reader_cache=16",
    "cache.bytes=lots",
    "cache.negative_ttl=1h",
    "cache.loads_max=0",
    "cache.entry_ttl=always",
    "keys.strategy=guess",
    "keys.alphabet=base63",
    "keys.length=3",
    "keys.length=40",
    "keys.hash=crc32",
    "keys.lease_ttl=0s",
    "keys.ledger.mint_batch=0",
    "keys.pool.batch=5000",
    "keys.unwanted_words=no",
    "keys.tick=0s",
    "keys.file.block_keys=0",
    "keys.sequence_block=0",
    "pages.name=",
    "pages.accent=blue",
    "pages.accent=#ffee00",
    "pages.not_found_url=/help",
    "links.target_bytes_max=9000",
    "links.schemes=",
    "links.schemes=java script",
    "links.default_expiry=sometimes",
    "links.default_status=200",
    "links.private_denied=401",
    "links.blocklist_reload=0s",
    "server.trusted_proxies=proxy.example.com",
    "server.trusted_proxies=10.0.0.0/33",
    "server.cors_origins=app.example.com",
    "server.cors_origins=https://app.example.com/",
    "server.cors_origins=*,https://app.example.com",
    "server.compression=gzip",
    "server.live_feeds_max=0",
    "server.live_feeds_for_admins=257",
    "accounts.sign_up=maybe",
    "accounts.session_idle=10s",
    "accounts.session_max=0s",
    "accounts.password_memory=1KiB",
    "accounts.password_memory=2GiB",
    "accounts.password_passes=0",
    "accounts.password_hashers=0",
    "limits.misses_per_address=30",
    "clicks.rules=absent.txt",
    "limits.creations_per_key=many",
    "limits.link_passwords_per_link=5/0s",
    "limits.password_links_per_user=0",
    "limits.scans_running=0",
    "limits.exports_per_user=0",
    "accounts.link_password_hashers=0",
    "purge.batch=5000",
    "purge.every=0s",
    "log.format=xml",
    "log.level=loud=very=",
    "log.level=inof",
    "log.level=info,curt_http=debg",
    "log.level=curt_http",
    "server.listen=localhost:8080",
    "server.admin_listen=127.0.0.1:8080",
    "links.schemes=mailto",
    "links.schemes=[\"https\", 1]",
    "links.blocklist=absent.txt",
    "clicks.countries=absent.mmdb",
    "clicks.networks=absent.mmdb",
    "clicks.files_reload=0s",
    "clicks.cpu_share=all",
    "data_dir=/dev/null",
    "store.stream=spool:/dev/null/spool",
    "store.links=sqlite:/dev/null/curt.db",
    "no.such.setting=1",
];

#[test]
fn bad_settings_end_with_a_code_of_their_own_and_name_the_key() {
    let site = Site::new(&[]);
    for bad in BAD_SETTINGS {
        let key = bad.split('=').next().unwrap();
        for command in ["check", "serve"] {
            let output = site.output(&[command, "--set", bad]);
            let said = stderr(&output);
            assert_eq!(
                output.status.code(),
                Some(BAD_CONFIGURATION),
                "{command} {bad}: {said}"
            );
            assert!(
                said.contains(key),
                "{command} {bad} does not name the key: {said}"
            );
        }
    }
    assert!(
        !site.folder().join("data").exists(),
        "a bad setting was noticed too late"
    );
}

#[test]
fn check_tells_every_mistake_at_once_and_why_an_address_is_none() {
    let site = Site::new(&[]);
    let settings = [
        ("server.listen=localhost:8080", "names are not looked up"),
        ("server.admin_listen=127.0.0.1:99999", "65535"),
        ("log.level=inof", "info"),
        ("links.blocklist=absent.txt", "absent.txt"),
        ("data_dir=/dev/null", "is a file"),
        ("listen=x", "did you mean server.listen?"),
    ];
    let flags = settings.iter().flat_map(|(setting, _)| ["--set", *setting]);
    let arguments: Vec<&str> = ["check"].into_iter().chain(flags).collect();
    let failed = site.output(&arguments);
    let said = stderr(&failed);
    assert_eq!(failed.status.code(), Some(BAD_CONFIGURATION), "{said}");
    assert!(said.contains("6 settings"), "{said}");
    for (setting, why) in settings {
        let key = setting.split('=').next().unwrap();
        let mut lines = said.lines().filter(|line| line.contains(key));
        assert!(lines.any(|line| line.contains(why)), "{key}: {said}");
    }
    assert!(!site.folder().join("data").exists());
}

#[test]
fn check_warns_of_what_a_server_would_only_regret() {
    let site = Site::start(&[]);
    let http = site.http().to_string();
    let taken = format!("server.listen={http}");
    let free = ["--set", "server.admin_listen="];
    let check = |set: &str| site.output(&[&["check", "--set", set][..], &free].concat());
    let warned = check(&taken);
    let said = stderr(&warned);
    assert!(warned.status.success(), "{said}");
    for part in ["warning", "server.listen", &http, "another process"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = stderr(&check("server.listen=0.0.0.0:0"));
    assert!(said.contains("warning: server.public_url"), "{said}");
    let said = stderr(&check("server.listen=127.0.0.1:0"));
    assert!(!said.contains("warning"), "{said}");
}

#[test]
fn lists_are_written_as_in_toml_or_with_commas() {
    let site = Site::new(&[]);
    for value in ["http,https,ftp", r#"["http", "https", "ftp"]"#] {
        let by_flag = printed(&site.output(&["check", "--set", &format!("links.schemes={value}")]));
        let mut command = site.app().command();
        let command = command.arg("check").env("CURT_LINKS_SCHEMES", value);
        let by_variable = printed(&command.output().unwrap());
        for shown in [by_flag, by_variable] {
            let shown: toml::Table = shown.parse().unwrap();
            let schemes = shown["links"]["schemes"].as_array().unwrap();
            assert_eq!(schemes.len(), 3, "{value}");
        }
    }
}

#[test]
fn bad_files_and_variables_end_with_the_same_code() {
    let site = Site::new(&[]);
    let file = site.folder().join("curt.toml");
    for (text, named) in [
        ("[server", "curt.toml"),
        ("[server]\nlisten_ = \"x\"", "server.listen"),
        ("[server]\nworkers = \"two\"", "server.workers"),
        ("[keys]\nlength = 3", "keys.length"),
    ] {
        std::fs::write(&file, text).unwrap();
        let output = site.output(&["serve", "--config", "curt.toml"]);
        let said = stderr(&output);
        assert_eq!(
            output.status.code(),
            Some(BAD_CONFIGURATION),
            "{text}: {said}"
        );
        assert!(said.contains(named), "{text}: {said}");
    }
    let output = site.output(&["check", "--config", "absent.toml"]);
    assert_eq!(output.status.code(), Some(BAD_CONFIGURATION));
    assert!(stderr(&output).contains("absent.toml"));
    let app = curt_testkit::process::App::new(env!("CARGO_BIN_EXE_curt")).unwrap();
    let app = app.env("CURT_SERVR_LISTEN", "x");
    let output = app.output(&["check"]).unwrap();
    assert_eq!(output.status.code(), Some(BAD_CONFIGURATION));
    assert!(
        stderr(&output).contains("CURT_SERVER_LISTEN"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn check_prints_the_settings_that_will_be_used() {
    let site = Site::new(&[]);
    std::fs::write(
        site.folder().join("curt.toml"),
        "[server]\nworkers = 3\n[keys]\nlength = 9",
    )
    .unwrap();
    let arguments = ["check", "--config", "curt.toml", "--set", "keys.length=8"];
    let shown: toml::Table = printed(&site.output(&arguments)).parse().unwrap();
    assert_eq!(shown["server"]["workers"].as_integer(), Some(3));
    assert_eq!(
        shown["keys"]["length"].as_integer(),
        Some(8),
        "a flag wins over the file"
    );
    let json = printed(&site.output(&["check", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["keys"]["strategy"], "pool");

    // The default file is itself a configuration, and the one that is used without any.
    let defaults = printed(&site.output(&["check", "--defaults"]));
    assert!(
        defaults
            .lines()
            .filter(|line| line.starts_with('#'))
            .count()
            > 50
    );
    std::fs::write(site.folder().join("all.toml"), &defaults).unwrap();
    let same = printed(&site.output(&["check", "--config", "all.toml"]));
    assert_eq!(same, printed(&site.output(&["check"])));
}

#[test]
fn what_check_prints_serves() {
    let mut site = Site::new(&[]);
    let shown = stdout(&site.output(&["check", "--set", "keys.length=11"]));
    std::fs::write(site.folder().join("shown.toml"), shown).unwrap();
    let token = site.new_token("tests");
    site.use_token(&token);
    let server = site.app().start_with(&["--config", "shown.toml"]).unwrap();
    let mut api = crate::api::Api::new(server.http().unwrap(), site.token());
    let made = api.create("https://example.com/").unwrap().json();
    assert_eq!(made["key"].as_str().unwrap().len(), 11);
}

#[test]
fn rules_for_clicks_are_checked_before_they_are_used() {
    let site = Site::new(&[]);
    let rules = printed(&site.output(&["check", "--rules"]));
    let file = site.folder().join("rules.txt");
    std::fs::write(&file, &rules).unwrap();
    let check = ["check", "--set", "clicks.rules=rules.txt"];
    printed(&site.output(&check));
    std::fs::write(&file, rules.replace("tablet = iPad", "pad = iPad")).unwrap();
    let output = site.output(&check);
    assert_eq!(output.status.code(), Some(BAD_CONFIGURATION));
    let line = rules
        .lines()
        .position(|line| line.starts_with("tablet = iPad"));
    let expected = format!(
        "clicks.rules: line {}: \"pad\" is no device",
        line.unwrap() + 1
    );
    let said = stderr(&output);
    assert!(said.contains(&expected), "{said}");

    std::fs::write(site.folder().join("countries.mmdb"), "no list").unwrap();
    let output = site.output(&["check", "--set", "clicks.countries=countries.mmdb"]);
    assert!(!output.status.success());
    assert!(
        stderr(&output).contains("clicks.countries"),
        "{}",
        stderr(&output)
    );
}
