use curt_testkit::engines::redis::{self, Sentinels, Server};
use curt_testkit::need;

#[test]
fn a_server_runs_commands_and_keeps_only_what_was_saved() {
    let mut server = need!(Server::start());
    let run = |server: &Server, words: &[&str]| server.run_command(words).unwrap();
    run(&server, &["RPUSH", "list", "a", "b"]);
    assert_eq!(run(&server, &["LRANGE", "list", "0", "-1"]), "a\nb");
    assert!(server.run_command(&["INCR", "list"]).is_err());
    run(&server, &["SAVE"]);
    run(&server, &["RPUSH", "list", "c"]);
    let port = server.port();
    server.kill().unwrap();
    assert!(!server.serves());
    server.restart().unwrap();
    assert_eq!(server.port(), port);
    assert_eq!(run(&server, &["LRANGE", "list", "0", "-1"]), "a\nb");
    assert!(server.dump().is_file());
}

#[test]
fn tests_share_a_server() {
    let one = need!(redis::shared());
    let other = need!(redis::shared());
    assert_eq!(one.url(), other.url());
}

#[test]
fn a_secured_server_speaks_only_to_its_account() {
    let server = need!(Server::start_secured());
    assert_eq!(server.run_command(&["ACL", "WHOAMI"]).unwrap(), "curt");
    assert!(server.url().starts_with("rediss://curt:"));
    assert!(server.authority().unwrap().is_file());
}

#[test]
fn sentinels_fail_over_and_take_the_former_primary_back() {
    let mut redis = need!(Sentinels::start(2));
    let first = redis.primary().unwrap();
    redis.servers()[first]
        .run_command(&["SET", "kept", "1"])
        .unwrap();
    redis.wait_until_complete().unwrap();
    assert_eq!(redis.kill_primary().unwrap(), first);
    let second = redis.wait_for_failover(first).unwrap();
    let new = &redis.servers()[second];
    assert_eq!(new.run_command(&["GET", "kept"]).unwrap(), "1");
    redis.server_mut(first).unwrap().restart().unwrap();
    redis.wait_until_complete().unwrap();
    // On a busy machine there may have been another failover; the one that died has not won it.
    assert_ne!(redis.primary().unwrap(), first);
}

#[test]
fn what_was_written_while_replication_was_paused_is_gone_after_a_failover() {
    let mut redis = need!(Sentinels::start(1));
    let first = redis.primary().unwrap();
    let old = &redis.servers()[first];
    old.run_command(&["SET", "n", "before"]).unwrap();
    redis.wait_until_complete().unwrap();
    redis.pause_replication().unwrap();
    old.run_command(&["SET", "n", "lost"]).unwrap();
    redis.kill_primary().unwrap();
    let second = redis.wait_for_failover(first).unwrap();
    let new = &redis.servers()[second];
    assert_eq!(new.run_command(&["GET", "n"]).unwrap(), "before");
}

#[test]
fn resumed_replication_catches_up() {
    let redis = need!(Sentinels::start(1));
    let primary = redis.primary().unwrap();
    redis.pause_replication().unwrap();
    redis.servers()[primary]
        .run_command(&["SET", "n", "late"])
        .unwrap();
    redis.resume_replication().unwrap();
    redis.wait_until_complete().unwrap();
    let replica = &redis.servers()[1 - primary];
    assert_eq!(replica.run_command(&["GET", "n"]).unwrap(), "late");
}
