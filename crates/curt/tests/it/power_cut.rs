//! L-1: what was acknowledged survives a power cut.
//!
//! The system's cache outlives a killed process, so a kill alone says nothing about the disk. A library between the
//! server and the C library keeps what a disk would have: of each file under `data` what it held when it was last synced,
//! in `kept`. The kept files are complete only some time after the sync was asked for, so that an answer that does not
//! wait for it is caught. After a kill the server goes on from `kept`; whatever was written and not synced is gone.
//!
//! Files that nobody syncs, and files that cannot be read through the descriptor that is synced, are not kept at all. A
//! file that was removed is kept until the next sync in its folder, as file systems with a journal do.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::durability::{Expected, is_as_expected, load_until_killed};
use crate::length::length;
use crate::preload::build_library;
use crate::site::Site;

const DISK: &str = r#"
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Not by another descriptor: closing it would end the locks that the process has on the file. */
static int copy(int from, const char *path) {
    static __thread char buffer[1 << 16];
    int to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    off_t at = 0;
    ssize_t count = 0;
    if (to < 0) return -1;
    while ((count = pread(from, buffer, sizeof buffer, at)) > 0) {
        if (write(to, buffer, count) != count) { count = -1; break; }
        at += count;
    }
    close(to);
    return count < 0 ? -1 : 0;
}

static void forget_removed(const char *folder) {
    char path[2 * PATH_MAX];
    struct dirent *entry;
    DIR *entries = opendir("kept");
    while (entries && (entry = readdir(entries))) {
        size_t length = strlen(entry->d_name);
        if (length > 5 && !strcmp(entry->d_name + length - 5, ".part")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (!access(path, F_OK)) continue;
        snprintf(path, sizeof path, "kept/%s", entry->d_name);
        unlink(path);
    }
    if (entries) closedir(entries);
}

static void keep(int file) {
    char link[64], folder[PATH_MAX], path[PATH_MAX], kept[2 * PATH_MAX], part[2 * PATH_MAX + 64];
    struct stat found;
    ssize_t length;
    size_t prefix;
    if (fstat(file, &found) || !S_ISREG(found.st_mode) || !getcwd(folder, sizeof folder)) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    length = readlink(link, path, sizeof path - 1);
    if (length < 0) return;
    path[length] = 0;
    strncat(folder, "/data", sizeof folder - strlen(folder) - 1);
    prefix = strlen(folder);
    if (strncmp(path, folder, prefix) || path[prefix] != '/') return;
    snprintf(kept, sizeof kept, "kept%s", path + prefix);
    for (char *slash = strchr(kept, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(kept, 0700);
        *slash = '/';
    }
    snprintf(part, sizeof part, "%s.%ld.part", kept, syscall(SYS_gettid));
    if (copy(file, part)) { unlink(part); return; }
    usleep(10000);
    forget_removed(folder);
    rename(part, kept);
}

int fsync(int file) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
    int result = real(file);
    if (result == 0) keep(file);
    return result;
}

int fdatasync(int file) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
    int result = real(file);
    if (result == 0) keep(file);
    return result;
}
"#;

/// Enough for one that comes between a commit and the next checkpoint.
const CUTS_UNTIL_NOTICED: usize = 20;

/// An installation on a disk that loses what is not synced.
struct Machine {
    site: Site,
    _library: tempfile::TempDir,
}

impl Machine {
    fn start(settings: &[&str]) -> Self {
        let library = tempfile::tempdir().unwrap();
        let preload = build_library(library.path(), DISK);
        let mut site = Site::with_environment(settings, &[("LD_PRELOAD", preload.as_path())]);
        let token = site.new_token("tests");
        site.use_token(&token);
        site.restart();
        Self {
            site,
            _library: library,
        }
    }

    /// Starts again on what the disk has.
    fn start_after_power_cut(&mut self) {
        let in_folder = |name: &str| self.site.folder().join(name);
        let (data, kept) = (in_folder("data"), in_folder("kept"));
        fs::remove_dir_all(&data).unwrap();
        copy_kept(&kept, &data);
        self.site.restart();
    }
}

/// Copies what was kept, without copies that the kill interrupted.
fn copy_kept(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        match path.extension().is_some_and(|end| end == "part") {
            true => fs::remove_file(path).unwrap(),
            false if path.is_dir() => copy_kept(&path, &target),
            false => drop(fs::copy(path, target).unwrap()),
        }
    }
}

/// Links that are not as they must be.
fn lost(site: &Site, links: &HashMap<String, Expected>) -> Vec<String> {
    let mut api = site.api();
    let lost = links
        .iter()
        .filter(|(key, expected)| !is_as_expected(&mut api, key, expected));
    lost.map(|(key, expected)| format!("/{key}: {expected:?}"))
        .collect()
}

#[test]
fn acknowledged_creates_edits_and_deletes_survive_a_power_cut_l1() {
    let cuts = length(3, 30);
    let mut machine = Machine::start(&[]);
    let mut known: HashMap<String, Expected> = HashMap::new();
    let mut round = 0;
    // A busy machine may acknowledge nothing for a while.
    while round < cuts || known.is_empty() && round < cuts + CUTS_UNTIL_NOTICED {
        let until = Duration::from_millis(rand::random_range(500..1_500));
        let diaries = load_until_killed(&mut machine.site, round, until);
        machine.start_after_power_cut();
        round += 1;
        for diary in diaries {
            for (key, link) in diary.acknowledged {
                let before = known.insert(key.clone(), link);
                assert!(before.is_none(), "K-1: /{key} came twice");
            }
        }
        let lost = lost(&machine.site, &known);
        assert!(lost.is_empty(), "L-1: lost by a power cut: {lost:#?}");
    }
    let targets: HashSet<&str> = known.values().map(|link| link.target()).collect();
    assert_eq!(targets.len(), known.len());
    assert!(!known.is_empty(), "nothing was acknowledged");
    println!(
        "power_cut: {} links acknowledged over {round} power cuts, 0 lost",
        known.len()
    );
}

/// The same with the setting that is documented to lose the last transactions: if it lost none, the test above could
/// not tell.
#[test]
fn a_power_cut_is_noticed_where_writes_are_not_synced() {
    let mut machine = Machine::start(&["sqlite.synchronous=normal"]);
    let mut acknowledged = 0;
    // A checkpoint syncs everything before it, and a busy machine may acknowledge nothing: one cut is not always enough.
    for round in 0..CUTS_UNTIL_NOTICED {
        let diaries = load_until_killed(&mut machine.site, round, Duration::from_secs(1));
        machine.start_after_power_cut();
        let links = diaries.into_iter().flat_map(|diary| diary.acknowledged);
        let links: HashMap<String, Expected> = links.collect();
        acknowledged += links.len();
        if !lost(&machine.site, &links).is_empty() {
            return;
        }
    }
    panic!("none of {acknowledged} links was lost");
}
