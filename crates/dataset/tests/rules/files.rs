//! Files that break a rule of files: links, datasets, attributes, the table of digests, columns and chunks.

use corpus::digest::Digest;
use hdf5::File;

use crate::case::{Case as C, When};
use crate::fixture::reseal::{altered, put_column, put_number, put_text};
use crate::fixture::{many_rows, rows, write_dataset};

/// The file itself: links, datasets, attributes, the table of digests, columns and chunks.
pub fn of_files() -> Vec<C> {
    vec![
        C::altered("F1", "schema version is 2, expected 1", |file| put_number(file, "schema_version", 2)),
        C::altered("F1", "attribute format is \"sentimill model!\"", |file| {
            put_text::<16>(file, "format", "sentimill model!");
        }),
        C::altered("F2", "label is a symbolic link", |file| {
            file.unlink("label").unwrap();
            file.link_soft("/split", "label").unwrap();
        }),
        C::altered("F3", "the list of datasets and groups is \"further\" among others", |file| {
            file.create_group("further").unwrap();
        }),
        C::altered("F3", "the list of datasets and groups is \"\\u{1b}[2J\" among others", |file| {
            file.create_group("\u{1b}[2J").unwrap();
        }),
        C::altered("F3", "the list of datasets and groups is \"vocabulary/further\" among others", |file| {
            put_column::<u8>(file, "vocabulary/further", &[1]);
        }),
        C::altered("F4", "the list of attributes is \"further\" among others", |file| {
            put_number(file, "further", 1);
        }),
        C::altered("F4", "an attribute of label is \"further\", expected none", |file| {
            file.dataset("label").unwrap().new_attr::<u64>().create("further").unwrap();
        }),
        C::altered("F4", "an attribute of vocabulary is \"further\", expected none", |file| {
            file.group("vocabulary").unwrap().new_attr::<u64>().create("further").unwrap();
        }),
        C::new("F4", "an attribute of digests is \"further\", expected none", When::Opened, |path| {
            write_dataset(path, &rows());
            let file = File::open_rw(path).unwrap();
            file.dataset("digests").unwrap().new_attr::<u64>().create("further").unwrap();
        }),
        C::altered("F4", "attribute keep is absent, expected a text", |file| {
            file.delete_attr("keep").unwrap();
        }),
        C::altered("F4", "the list of attributes is \"positive_from\" among others", |file| {
            put_text::<25>(file, "labels", "1-3=negative,4-5=positive");
        }),
        C::altered("F4", "attribute positive_from is absent, expected u64", |file| {
            file.delete_attr("positive_from").unwrap();
        }),
        C::altered("F5", "attribute labels is u64, expected a text", |file| {
            file.delete_attr("positive_from").unwrap();
            put_number(file, "labels", 3);
        }),
        C::altered("F5", "attribute max_tokens does not match its digest", |file| {
            file.delete_attr("max_tokens").unwrap();
            file.new_attr::<u64>().shape(1).create("max_tokens").unwrap().write_raw(&[100_u64]).unwrap();
        }),
        C::altered("F5", "attribute max_tokens is text 3, expected u64", |file| {
            put_text::<3>(file, "max_tokens", "100");
        }),
        C::table("F6", "digests does not match its digest", |table| table.replace("digests 1", "digests 2")),
        C::table("F6", "digests does not match its digest", |table| table + "further\n"),
        C::table("F6", "the list of attributes does not match its digest", |table| {
            format!("{table}attribute keep {}\n", Digest(1))
        }),
        C::table("F6", "the list of datasets does not match its digest", |table| {
            format!(
                "{table}column further u8 shape [1] chunk [1] shuffle deflate fletcher32\n{}\n",
                Digest(1)
            )
        }),
        C::table("F6", "attribute keep does not match its digest", |table| {
            let (before, behind) = table.split_once("attribute keep ").unwrap();
            format!("{before}attribute keep {}{}", Digest(1), &behind[32..])
        }),
        C::altered("F7", "the layout of label does not match its digest", |file| {
            put_column::<u16>(file, "label", &[1, 0, 1]);
        }),
        C::altered("F7", "the layout of label does not match its digest", |file| {
            file.unlink("label").unwrap();
            file.new_dataset::<u8>()
                .shape(3)
                .chunk(2)
                .shuffle()
                .deflate(1)
                .fletcher32()
                .create("label")
                .unwrap();
        }),
        C::altered("F7", "label is absent, expected a dataset", |file| file.unlink("label").unwrap()),
        C::altered("F8", "label is listed with 0 chunks in the table of digests, expected 1", |file| {
            file.unlink("label").unwrap();
            file.new_dataset::<u8>()
                .shape(3)
                .chunk(3)
                .shuffle()
                .deflate(1)
                .fletcher32()
                .create("label")
                .unwrap();
        }),
        C::table("F9", "chunk 0 of offsets does not match its digest", |table| {
            let column = "column offsets u64 shape [4] chunk [4] shuffle deflate fletcher32\n";
            let (before, behind) = table.split_once(column).unwrap();
            format!("{before}{column}{}{}", Digest(1), &behind[32..])
        }),
        C::new(
            "F10",
            "chunk 1 of votes is filled up with other values, expected zeros",
            When::Read,
            |path| {
                write_dataset(path, &many_rows(16_385));
                altered(path, |file| {
                    let elements = file.dataset("votes").unwrap().read_raw::<u32>().unwrap();
                    file.unlink("votes").unwrap();
                    let column =
                        file.new_dataset::<u32>().shape((16_385, 5)).chunk((16_384, 5)).fill_value(1_u32);
                    let column = column.shuffle().deflate(1).fletcher32().create("votes").unwrap();
                    column.write_raw(&elements).unwrap();
                });
            },
        ),
        C::new("F11", "digests does not match its digest", When::Opened, |path| {
            write_dataset(path, &rows());
            let file = File::open_rw(path).unwrap();
            file.unlink("digests").unwrap();
            file.new_dataset::<u8>().shape(1_usize << 50).create("digests").unwrap();
        }),
    ]
}
