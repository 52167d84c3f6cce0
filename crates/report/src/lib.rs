//! Converts training folders into one self-contained HTML page: no scripts, no other files, no requests.
//!
//! [`Run::read`] reads a folder and notes what is missing and why. [`page()`] shows runs side by side, one colour per
//! run. Everything from a folder, including paths, is escaped as text. `html` takes markup only from constants of
//! this program.

mod chart;
mod folder;
mod html;
mod name;
mod numbers;
mod origins;
mod page;
mod run;
mod sections;

pub use self::numbers::whole;
pub use self::origins::{OriginUnit, Origins, ReviewOrigin, RowOrigins};
pub use self::page::{BEGIN as PAGE_BEGIN, page};
pub use self::run::{Run, Words};
