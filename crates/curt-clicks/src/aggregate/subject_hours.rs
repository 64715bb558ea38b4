//! The hours of the subjects of one window.

use curt_core::{ClickClass, Day, Sketch};

use super::table::{SubjectIndex, next_number};
use crate::classify::Device;

/// One hour of one subject.
#[derive(Clone)]
pub(super) struct SubjectHour {
    pub(super) subject: SubjectIndex,
    /// Hours since 1970.
    pub(super) hour: u32,
    pub(super) day: Day,
    pub(super) classes: [u64; ClickClass::ALL.len()],
    pub(super) devices: [u64; Device::ALL.len()],
    /// Place of the visitors of the subject's day.
    pub(super) visitors: u32,
    /// Number of the subject's hour that was made before this one.
    before: Option<u32>,
}

/// Hours have numbers in the order in which they are made.
#[derive(Default)]
pub(super) struct SubjectHours {
    subject_hours: Vec<SubjectHour>,
    /// By the number of the subject: its newest hour. Clicks come about in the order of time, so that is almost always
    /// the one that is looked for.
    newest: Vec<Option<u32>>,
    visitors: Vec<Sketch>,
}

impl SubjectHours {
    /// The number of a subject's hour; made if it is absent.
    pub(super) fn find(&mut self, subject: SubjectIndex, hour: u32, day: Day) -> u32 {
        let place = subject.0 as usize;
        if place >= self.newest.len() {
            self.newest.resize(place + 1, None);
        }
        let newest = self.newest[place];
        let same = |subject_hour: &SubjectHour| subject_hour.hour == hour;
        if let Some(number) = self.search(newest, same) {
            return number;
        }
        let visitors = match self.search(newest, |subject_hour| subject_hour.day == day) {
            Some(number) => self.subject_hours[number as usize].visitors,
            None => {
                let number = next_number(&self.visitors);
                self.visitors.push(Sketch::new());
                number
            }
        };
        let number = next_number(&self.subject_hours);
        self.newest[place] = Some(number);
        self.subject_hours.push(SubjectHour {
            subject,
            hour,
            day,
            classes: Default::default(),
            devices: Default::default(),
            visitors,
            before: newest,
        });
        number
    }

    /// The first of the subject's hours that is meant, from the newest on.
    fn search(&self, newest: Option<u32>, is_meant: impl Fn(&SubjectHour) -> bool) -> Option<u32> {
        let before = |&number: &u32| self.subject_hours[number as usize].before;
        std::iter::successors(newest, before)
            .find(|&number| is_meant(&self.subject_hours[number as usize]))
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut SubjectHour {
        &mut self.subject_hours[number as usize]
    }

    /// The visitors of the hour's day.
    pub(super) fn visitors_mut(&mut self, number: u32) -> &mut Sketch {
        let place = self.subject_hours[number as usize].visitors;
        &mut self.visitors[place as usize]
    }

    /// Memory of the hours themselves, without what sketches hold.
    pub(super) fn memory_bytes(&self) -> usize {
        self.subject_hours.len() * size_of::<SubjectHour>()
            + self.newest.len() * size_of::<Option<u32>>()
            + self.visitors.len() * size_of::<Sketch>()
    }

    /// The numbers of all hours in the order of subjects and hours.
    pub(super) fn in_order(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = (0..next_number(&self.subject_hours)).collect();
        numbers.sort_unstable_by_key(|&number| {
            let subject_hour = &self.subject_hours[number as usize];
            (subject_hour.subject, subject_hour.hour)
        });
        numbers
    }

    /// Removes all hours and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.subject_hours.clear();
        self.newest.clear();
        self.visitors.clear();
    }
}
