//! Trainings → one HTML page that stands by itself: no script, no other file, nothing from a network.
//!
//! [`Run::read`] makes of each folder what is known of it, and says of what is not known why; [`page()`] sets runs
//! side by side, a colour each. Whatever comes out of a folder, words and paths too, is text on the page and nothing
//! else: `html` writes markup from this program's own words alone.

mod chart;
mod html;
mod numbers;
mod page;
mod run;
mod sections;

pub use self::numbers::whole;
pub use self::page::{BEGIN as PAGE_BEGIN, page};
pub use self::run::Run;
pub use self::sections::SETTING_NAMES;
