//! The arithmetic of capacity: rates, bytes, key length, machines and odds for a number of links and clicks, with the costs
//! that `make bench` measured; and the sums of the four documents that curt was built from, each checked.
//!
//! | file | holds |
//! |---|---|
//! | `workload` | what is asked: links and clicks, machines |
//! | `costs` | what one link, click or request costs, read from `bench/RESULTS.md` |
//! | `plan` | what follows |
//! | `key_space` | how long keys have to be, and what guessing finds |
//! | `configuration` | the settings to start from |
//! | `seeds` | the figures of the documents |
//! | `text`, `picture` | for people |

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod configuration;
mod costs;
mod figure;
mod key_space;
mod picture;
mod plan;
mod seeds;
mod text;
mod workload;

pub use costs::{CostError, Costs};
pub use figure::{bytes, count, odds, parse_amount, rate};
pub use key_space::{KeyChoice, KeyOdds};
pub use picture::{Picture, PictureStage};
pub use plan::{Bandwidth, Capacity, CapacityPlan, Machines, Rates, Storage};
pub use seeds::{SeedDocument, SeedFigure, SumVerdict};
pub use text::{PlanSection, plan_text, sections, seed_text};
pub use workload::{InputError, Workload};
