//! docs/emr.md, as a reader follows it.

use tests::pages::following::follow_on;
use tests::pages::project;

use crate::served::emr;

#[test]
fn the_page_on_emr_can_be_followed_from_top_to_bottom() {
    let Some(turn) = emr() else { return };
    let followed = follow_on(&project().join("docs/emr.md"), &turn);
    assert!(followed.wrong.is_empty(), "UPDATE_GOLDEN=1 renews the page\n\n{}", followed.wrong.join("\n\n"));
    turn.end_clusters();
}
