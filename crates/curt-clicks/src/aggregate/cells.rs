//! The hours of the subjects of one window.

use curt_core::{ClickClass, Day, Sketch};

use super::table::SubjectNumber;
use crate::classify::Device;

/// One hour of one subject.
#[derive(Clone)]
pub(super) struct Cell {
    pub(super) subject: SubjectNumber,
    /// Hours since 1970.
    pub(super) hour: u32,
    pub(super) day: Day,
    pub(super) classes: [u64; ClickClass::ALL.len()],
    pub(super) devices: [u64; Device::ALL.len()],
    /// Place of the visitors of the subject's day.
    pub(super) visitors: u32,
    /// The subject's cell that was made before this one.
    before: Option<u32>,
}

/// Cells have numbers in the order in which they are made.
#[derive(Default)]
pub(super) struct Cells {
    cells: Vec<Cell>,
    /// By the number of the subject: its newest cell. Clicks come about in the order of time, so that is almost always
    /// the one that is looked for.
    newest: Vec<Option<u32>>,
    visitors: Vec<Sketch>,
}

impl Cells {
    /// The number of a cell.
    pub(super) fn find(&mut self, subject: SubjectNumber, hour: u32, day: Day) -> u32 {
        let place = subject.0 as usize;
        if place >= self.newest.len() {
            self.newest.resize(place + 1, None);
        }
        let newest = self.newest[place];
        let same = |cell: &Cell| cell.hour == hour;
        if let Some(number) = self.search(newest, same) {
            return number;
        }
        let visitors = match self.search(newest, |cell| cell.day == day) {
            Some(number) => self.cells[number as usize].visitors,
            None => {
                self.visitors.push(Sketch::new());
                self.visitors.len() as u32 - 1
            }
        };
        let number = self.cells.len() as u32;
        self.newest[place] = Some(number);
        self.cells.push(Cell {
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

    /// The first of the subject's cells that is meant, from the newest on.
    fn search(&self, newest: Option<u32>, is_meant: impl Fn(&Cell) -> bool) -> Option<u32> {
        let before = |&number: &u32| self.cells[number as usize].before;
        std::iter::successors(newest, before).find(|&number| is_meant(&self.cells[number as usize]))
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut Cell {
        &mut self.cells[number as usize]
    }

    /// The visitors of the cell's day.
    pub(super) fn visitors_mut(&mut self, number: u32) -> &mut Sketch {
        let place = self.cells[number as usize].visitors;
        &mut self.visitors[place as usize]
    }

    /// Memory of the cells themselves, without what sketches hold.
    pub(super) fn held_bytes(&self) -> usize {
        self.cells.len() * size_of::<Cell>()
            + self.newest.len() * size_of::<Option<u32>>()
            + self.visitors.len() * size_of::<Sketch>()
    }

    /// The numbers of all cells in the order of subjects and hours.
    pub(super) fn in_order(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = (0..self.cells.len() as u32).collect();
        numbers.sort_unstable_by_key(|&number| {
            let cell = &self.cells[number as usize];
            (cell.subject, cell.hour)
        });
        numbers
    }

    /// Starts anew, and keeps the room.
    pub(super) fn clear(&mut self) {
        self.cells.clear();
        self.newest.clear();
        self.visitors.clear();
    }
}
