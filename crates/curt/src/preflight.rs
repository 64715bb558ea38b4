//! What a server needs of the machine, looked at before anything is opened or made: `curt serve` refuses what would
//! fail later, and `curt check` says the same without starting.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use curt_http::QrLogo;
use curt_http::server::probe;
use curt_keys::Strategy;
use curt_links::{BlocklistError, BlocklistFile};
use rustix::fs::Access;

use crate::clicks;
use crate::config::check::at;
use crate::config::{Config, ConfigError};
use crate::wiring::EngineKind;

/// Refuses a configuration that names files that cannot be read, or folders that cannot be written to.
pub(crate) fn refuse(config: &Config) -> Result<(), ConfigError> {
    let mut mistakes = ConfigError::none();
    for (setting, path) in named_files(config) {
        mistakes.note(at(setting, readable_file(path)));
    }
    let data_dir = &config.data_dir;
    let is_data_writable = mistakes
        .note(at("data_dir", writable_folder(data_dir)))
        .is_some();
    for (setting, folder) in other_folders(config) {
        // What lies in the data folder shares its fault, which is told once.
        if is_data_writable || !folder.starts_with(data_dir) {
            mistakes.note(at(setting, writable_folder(&folder)));
        }
    }
    mistakes.into_result()
}

/// Reads the files that a server reads when it starts, and forgets them.
pub(crate) fn read_files(config: &Config) -> Result<(), ConfigError> {
    let mut mistakes = ConfigError::none();
    if let Some(blocklist) = &config.blocklist {
        let read = BlocklistFile::open(&blocklist.path, Arc::default());
        mistakes.note(unusable_blocklist(read).map(drop));
    }
    mistakes.note(read_qr_logo(config).map(drop));
    if let Some(settings) = &config.clicks {
        mistakes.note(clicks::check_files(settings));
    }
    mistakes.into_result()
}

/// Names the setting that led to a list which cannot be used.
pub(crate) fn unusable_blocklist<T>(read: Result<T, BlocklistError>) -> Result<T, ConfigError> {
    let read = read.map_err(|error| format!("{:#}", anyhow::Error::new(error)));
    at("links.blocklist", read)
}

/// The picture that stands in QR codes.
pub(crate) fn read_qr_logo(config: &Config) -> Result<Option<QrLogo>, ConfigError> {
    let Some(path) = &config.qr_logo else {
        return Ok(None);
    };
    let read = fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let logo = read.and_then(|file| QrLogo::parse(&file));
    at("pages.qr_logo", logo).map(Some)
}

fn named_files(config: &Config) -> Vec<(&'static str, &Path)> {
    let clicks = config.clicks.as_ref();
    [
        (
            "links.blocklist",
            config.blocklist.as_ref().map(|list| &list.path),
        ),
        ("pages.qr_logo", config.qr_logo.as_ref()),
        (
            "clicks.countries",
            clicks.and_then(|clicks| clicks.countries.as_ref()),
        ),
        (
            "clicks.networks",
            clicks.and_then(|clicks| clicks.networks.as_ref()),
        ),
    ]
    .into_iter()
    .filter_map(|(setting, path)| Some((setting, path?.as_path())))
    .collect()
}

/// The folders of databases, of the spool and, where they are used, of key files and of the access log.
fn other_folders(config: &Config) -> Vec<(&'static str, PathBuf)> {
    let mut folders = Vec::new();
    for (part, address) in config.store.addresses() {
        let folder = match address.kind() {
            EngineKind::Sqlite => address.path().parent().map(Path::to_owned),
            EngineKind::Spool => config.clicks.is_some().then(|| address.path().to_owned()),
            EngineKind::Files => {
                (config.keys.strategy == Strategy::File).then(|| address.path().to_owned())
            }
            _ => None,
        };
        folders.extend(folder.map(|folder| (part.setting(), folder)));
    }
    let access_file = config.log.access.and(config.log.access_file.as_ref());
    let folder = access_file.and_then(|file| file.parent());
    folders.extend(folder.map(|folder| ("log.access_file", folder.to_owned())));
    folders.dedup_by(|(_, one), (_, other)| one == other);
    folders
}

fn readable_file(path: &Path) -> Result<(), String> {
    let shown = path.display();
    let file = fs::File::open(path).and_then(|file| file.metadata());
    match file {
        Ok(facts) if facts.is_dir() => Err(format!("{shown} is a folder: name a file, or \"\"")),
        Ok(_) => Ok(()),
        Err(error) => Err(format!(
            "could not read {shown}: {error}; \"\" does without"
        )),
    }
}

/// Looks at the folder, or at the nearest one above it that is there, in which it would be made.
fn writable_folder(folder: &Path) -> Result<(), String> {
    // A relative path ends in the folder that the process runs in.
    let here = Path::new(".");
    let mut above = folder.ancestors().map(|path| match path.as_os_str() {
        empty if empty.is_empty() => here,
        _ => path,
    });
    let (Some(there), shown) = (above.find(|path| is_there(path)), folder.display()) else {
        return Ok(());
    };
    if !there.is_dir() {
        return Err(format!(
            "{shown} cannot be a folder: {} is a file",
            there.display()
        ));
    }
    rustix::fs::access(there, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| {
        format!(
            "could not write to {shown}: {}: {}; choose a folder that this user may write to",
            there.display(),
            io::Error::from(error)
        )
    })
}

fn is_there(path: &Path) -> bool {
    // Anything but "there is no such thing" is for the error message to tell.
    !matches!(fs::symlink_metadata(path), Err(error) if error.kind() == io::ErrorKind::NotFound || error.kind() == io::ErrorKind::NotADirectory)
}

/// What is likely to be a mistake and refused by nothing.
pub(crate) fn warnings(config: &Config) -> Vec<String> {
    let mut warnings = Vec::new();
    let listen = config.http.server.listen;
    if listen.ip().is_unspecified() && config.http.api.public_url.is_none() {
        warnings.push(format!(
            "server.public_url: it is empty and server.listen is {listen}: short links will begin with \
             http://127.0.0.1, which leads nobody else here; set the address that visitors use"
        ));
    }
    let admin = config
        .admin_listen
        .map(|admin| ("server.admin_listen", admin));
    let agent = config
        .agent_listen
        .map(|agent| ("server.agent_listen", agent));
    let listened = [("server.listen", listen)].into_iter();
    for (setting, address) in listened.chain(admin).chain(agent) {
        if let Err(error) = probe(address) {
            warnings.push(format!("{setting}: {}", why_not_listening(address, &error)));
        }
    }
    warnings
}

/// Says why nothing can listen on the address, and what to do.
pub(crate) fn why_not_listening(address: SocketAddr, error: &io::Error) -> String {
    let cause = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another process listens there; is a server running already?".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            "permission denied; ports below 1024 need root or CAP_NET_BIND_SERVICE".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => "this machine has no such address".to_owned(),
        _ => error.to_string(),
    };
    format!("could not listen on {address}: {cause}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_judged_by_the_nearest_one_that_is_there() {
        let temporary = tempfile::tempdir().unwrap();
        let file = temporary.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(writable_folder(temporary.path()), Ok(()));
        assert_eq!(writable_folder(&temporary.path().join("a/b/c")), Ok(()));
        assert_eq!(writable_folder(Path::new("new")), Ok(()));
        for bad in [&file, &file.join("below")] {
            let why = writable_folder(bad).unwrap_err();
            assert!(why.contains("is a file"), "{why}");
        }
    }

    #[test]
    fn a_taken_port_and_a_missing_address_are_told_apart() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let said = |address| why_not_listening(address, &probe(address).unwrap_err());
        assert!(
            said(address).contains("another process"),
            "{}",
            said(address)
        );
        let elsewhere = "192.0.2.1:80".parse().unwrap();
        assert!(
            said(elsewhere).contains("no such address"),
            "{}",
            said(elsewhere)
        );
    }
}
