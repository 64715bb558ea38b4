//! Key files on a local disk, in HDFS and in stores that speak the S3 protocol.
//!
//! The layout of the keys ([`key_layout`]) is the same everywhere; HDFS and S3 publish it as one object ([`sealed`]).

#![forbid(unsafe_code)]

mod files;
mod hdfs;
mod key_layout;
mod s3;
mod sealed;

pub use files::DiskKeyFile;
pub use hdfs::{HdfsKeyFile, HdfsSettings};
pub use s3::{S3KeyFile, S3Settings};
