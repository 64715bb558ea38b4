//! Every engine starts, serves, survives what tests do to it, and leaves nothing behind.

#![expect(clippy::unwrap_used, reason = "a test whose engine fails should stop")]

mod browser;
mod cassandra;
mod dynamodb;
mod haproxy;
mod hdfs;
mod kafka;
mod leavings;
mod mariadb;
mod memcached;
mod minio;
mod postgres;
mod redis;
mod skipping;
mod zookeeper;
