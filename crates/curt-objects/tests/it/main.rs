//! Key files on local disks, HDFS and S3.

#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

mod files;
mod hdfs;
mod hdfs_answers;
mod key_files;
mod s3;

/// Not a test of its own: what the tests of killed preloaders start and kill.
#[tokio::test]
async fn preloader_process() {
    key_files::preloaders::serve(|address| match address.starts_with("hdfs") {
        true => hdfs::open_port(address),
        false => s3::open_port(address),
    })
    .await;
}
