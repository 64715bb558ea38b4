//! Many links, and many processes over the engines of a large installation.

mod crowd;
mod faults;
mod kills;
mod line;
mod plant;
mod ten_times;
