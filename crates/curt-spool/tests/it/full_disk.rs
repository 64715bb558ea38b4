//! A disk without room: clicks are dropped and counted, nothing is killed, and room heals it without a restart.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use curt_clicks::capture::Capture;
use curt_spool::{Spool, SpoolSettings};
use curt_testkit::skipped;

use crate::world::{drain, numbers, open_at, open_capture, record};

/// A small file system of its own; unmounted when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(place: &Path) -> Result<Self, String> {
        let output = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"])
            .arg(place)
            .output()
            .map_err(|error| format!("mount cannot be started: {error}"))?;
        match output.status.success() {
            true => Ok(Self(place.to_owned())),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            eprintln!("could not unmount {}", self.0.display());
        }
    }
}

/// Takes all room, also what a spool's own threads give back a little later.
async fn fill(rest: &Path) {
    let mut still_full = 0;
    while still_full < 5 {
        let mut file = fs::File::options();
        let mut file = file.create(true).append(true).open(rest).unwrap();
        let before = file.metadata().unwrap().len();
        for chunk in [64 << 10, 4 << 10] {
            while std::io::Write::write_all(&mut file, &vec![0; chunk]).is_ok() {}
        }
        let has_grown = file.metadata().unwrap().len() > before;
        still_full = if has_grown { 0 } else { still_full + 1 };
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn record_until_refused(spool: &Spool, capture: &mut Capture, from: u32) -> u32 {
    for number in from..1_000_000 {
        record(capture, number);
        if spool.counts().dropped_disk >= 100 {
            return number + 1;
        }
    }
    panic!("the disk never filled up: {:?}", spool.counts());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_drops_clicks_and_nothing_else_and_heals() {
    let folder = tempfile::tempdir().unwrap();
    let disk = match SmallDisk::mount(folder.path()) {
        Ok(disk) => disk,
        Err(reason) => {
            skipped::say(
                "spool full_disk",
                &format!("no small file system can be mounted here: {reason}"),
            );
            return;
        }
    };
    let ballast = disk.0.join("ballast");
    fs::write(&ballast, vec![0; 1 << 20]).unwrap();
    let settings = SpoolSettings {
        segment_bytes: 512 << 10,
        disk_reserve_bytes: 0,
        ..SpoolSettings::default()
    };
    let spool = open_at(&disk.0.join("spool"), &settings);
    let mut capture = open_capture(&spool, 0).unwrap();
    let mut recorded = record_until_refused(&spool, &mut capture, 0);
    let counts = spool.counts();
    assert_eq!(counts.captured + counts.dropped(), u64::from(recorded));
    assert!(counts.captured > 1_000, "{counts:?}");
    let kept = drain(&spool, 0, 0).await;
    assert_eq!(kept.len() as u64, counts.captured);

    fs::remove_file(&ballast).unwrap();
    let mut tries = 0;
    while !record(&mut capture, recorded) {
        recorded += 1;
        tries += 1;
        assert!(tries < 10_000, "no room was found again");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let position = kept.last().unwrap().offset + 1;
    assert_eq!(numbers(&drain(&spool, 0, position).await), [recorded]);
    let counts = spool.counts();
    assert_eq!(counts.captured + counts.dropped(), u64::from(recorded) + 1);
}

/// A server whose disk is full when it starts must start.
#[tokio::test(flavor = "multi_thread")]
async fn a_spool_opens_on_a_full_disk_and_keeps_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let disk = match SmallDisk::mount(folder.path()) {
        Ok(disk) => disk,
        Err(reason) => {
            skipped::say(
                "spool full_disk",
                &format!("no small file system can be mounted here: {reason}"),
            );
            return;
        }
    };
    let mut settings = SpoolSettings {
        segment_bytes: 512 << 10,
        disk_reserve_bytes: 0,
        ..SpoolSettings::default()
    };
    let path = disk.0.join("spool");
    let spool = open_at(&path, &settings);
    assert!(record(&mut open_capture(&spool, 0).unwrap(), 1));
    drop(spool);
    let rest = disk.0.join("rest");
    fill(&rest).await;
    settings.segment_bytes = 3 << 20;
    for start in 0..3 {
        let spool = open_at(&path, &settings);
        // It gives back what the earlier run has left, which is enough for a new file.
        fill(&rest).await;
        assert_eq!(numbers(&drain(&spool, 0, 0).await), [1], "start {start}");
        assert!(!record(&mut open_capture(&spool, 0).unwrap(), 2));
        assert_eq!(spool.counts().dropped_disk, 1);
    }
    fs::remove_file(&rest).unwrap();
    let spool = open_at(&path, &settings);
    assert!(record(&mut open_capture(&spool, 0).unwrap(), 3));
    assert_eq!(numbers(&drain(&spool, 0, 0).await), [1, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_room_on_a_disk_is_left_to_others() {
    let folder = tempfile::tempdir().unwrap();
    let disk = match SmallDisk::mount(folder.path()) {
        Ok(disk) => disk,
        Err(reason) => {
            skipped::say(
                "spool full_disk",
                &format!("no small file system can be mounted here: {reason}"),
            );
            return;
        }
    };
    let settings = SpoolSettings {
        segment_bytes: 512 << 10,
        disk_reserve_bytes: 2 << 20,
        ..SpoolSettings::default()
    };
    let spool = open_at(&disk.0.join("spool"), &settings);
    let mut capture = open_capture(&spool, 0).unwrap();
    let recorded = record_until_refused(&spool, &mut capture, 0);
    let counts = spool.counts();
    assert_eq!(counts.captured + counts.dropped(), u64::from(recorded));
    assert!(counts.captured > 1_000, "{counts:?}");
    fs::write(disk.0.join("links"), vec![0; 2 << 20]).unwrap();
}
