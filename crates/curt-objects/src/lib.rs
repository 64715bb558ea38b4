//! Key files on a local disk, in HDFS and in stores that speak the S3 protocol.
//!
//! The layout of the keys ([`key_layout`]) and the port ([`engine`]) are the same everywhere; HDFS and S3 publish a file
//! as one object ([`sealed`]).

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod engine;
mod files;
mod hdfs;
mod key_layout;
mod s3;
mod sealed;

pub use files::DiskKeyFile;
pub use hdfs::{HdfsKeyFile, HdfsSettings};
pub use s3::{S3KeyFile, S3Settings};
