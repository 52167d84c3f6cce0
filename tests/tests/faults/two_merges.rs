//! Two concurrent merges of one run.

use std::fs;

use tests::programs::{finish, start};

use crate::job::{JOB, Room, assert_same, visible};

fn rounds() -> usize {
    if tests::prove() { 200 } else { 20 }
}

#[test]
fn two_merges_to_one_path_make_one_dataset_and_one_run_manifest() {
    let room = Room::new();
    room.reduce_all(&JOB);
    for round in 0..rounds() {
        room.unmerge();

        let both = [(); 2].map(|()| start(&mut room.merge(&JOB)));
        let both = both.map(|merge| finish(merge, "one of two merges").succeeded());

        let how = format!("round {round}: {:?}", both.map(|merge| merge.stderr));
        room.assert_dataset(&JOB, &how);
        let names: Vec<String> = visible(&room.path().join("out")).into_keys().collect();
        assert_eq!(names, crate::job::MERGED, "{how}");
        assert!(room.unfinished().is_empty(), "{how}: left behind: {:?}", room.unfinished());
    }
}

#[test]
fn two_merges_to_two_paths_make_equal_datasets_and_one_run_manifest() {
    let room = Room::new();
    room.reduce_all(&JOB);
    for round in 0..rounds() {
        room.unmerge();
        fs::create_dir(room.path().join("out")).unwrap();
        let places = [room.out("reviews.h5"), room.out("elsewhere/reviews.h5")];

        let both = places.each_ref().map(|place| start(&mut room.merge_to(&JOB, place)));
        let both = both.map(|merge| finish(merge, "one of two merges").succeeded());

        let how = format!("round {round}: {:?}", both.map(|merge| merge.stderr));
        room.assert_dataset(&JOB, &how);
        assert_same(&places[1], &JOB.dataset, &how);
        let [manifest, other] = places.map(|place| fs::read(place.with_extension("manifest.json")).unwrap());
        assert!(manifest == other, "{how}: the manifests differ, and with them the seals that they carry");
        assert!(room.run().join("manifest.json").is_file(), "{how}");
        assert!(room.unfinished().is_empty(), "{how}: left behind: {:?}", room.unfinished());
    }
}
