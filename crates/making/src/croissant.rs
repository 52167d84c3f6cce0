//! Describes the Parquet files of a dataset in Croissant 1.0, the metadata format of ML Commons: files with their
//! SHA-256, and record sets with their fields. The description is a function of the manifest.

use dataset::commit::ListedFile;
use dataset::manifest::DatasetManifest;
use serde_json::{Value, json};

use crate::parquet::Field;
use crate::{ids_table, texts};

/// The description of the Parquet files that a manifest lists, for the dataset of this name.
pub(crate) fn description(manifest: &DatasetManifest, stem: &str) -> Vec<u8> {
    let settings = &manifest.settings.rows;
    let tables = [
        ("ids", manifest.ids.as_ref(), &ids_table::FIELDS[..]),
        ("texts", manifest.texts.as_ref(), &texts::FIELDS[..]),
    ];
    let tables: Vec<_> =
        tables.into_iter().filter_map(|(set, file, fields)| Some((set, file?, fields))).collect();
    let files: Vec<Value> = tables.iter().map(|(_, file, _)| file_object(file)).collect();
    let mut sets: Vec<Value> =
        tables.iter().map(|(set, file, fields)| record_set(set, file, fields)).collect();
    let labels = settings.labels.names();
    sets.push(label_set(&labels));
    let reviews = manifest.seal.ledger.reducer.reviews;
    let document = json!({
        "@context": context(),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": stem,
        "description": format!(
            "{} distinct texts of {reviews} reviews, with labels ({}). Made by Sentimill; row digest {}.",
            manifest.rows,
            labels.join(", "),
            manifest.digests.row_digest,
        ),
        "version": "1.0.0",
        "distribution": files,
        "recordSet": sets,
    });
    let mut bytes = serde_json::to_vec_pretty(&document).expect("a document of plain values is JSON");
    bytes.push(b'\n');
    bytes
}

fn file_object(file: &ListedFile) -> Value {
    json!({
        "@type": "cr:FileObject",
        "@id": file.name,
        "name": file.name,
        "contentUrl": file.name,
        "contentSize": format!("{} B", file.bytes),
        "encodingFormat": "application/x-parquet",
        "sha256": file.sha256,
    })
}

fn record_set(set: &str, file: &ListedFile, fields: &[Field]) -> Value {
    let fields = fields.iter().map(|Field { name, description, data_type, is_list }| {
        let mut field = json!({
            "@type": "cr:Field",
            "@id": format!("{set}/{name}"),
            "name": name,
            "description": description,
            "dataType": data_type,
            "source": { "fileObject": { "@id": file.name }, "extract": { "column": name } },
        });
        if *is_list {
            field["repeated"] = true.into();
        }
        field
    });
    json!({ "@type": "cr:RecordSet", "@id": set, "name": set, "field": fields.collect::<Vec<_>>() })
}

/// The names of the labels, as records in the description itself.
fn label_set(labels: &[&str]) -> Value {
    let data = labels
        .iter()
        .enumerate()
        .map(|(number, name)| json!({ "labels/label": number, "labels/name": name }));
    let field = |name: &str, data_type: &str| json!({ "@type": "cr:Field", "@id": format!("labels/{name}"), "name": name, "dataType": data_type });
    json!({
        "@type": "cr:RecordSet",
        "@id": "labels",
        "name": "labels",
        "dataType": "sc:Enumeration",
        "key": { "@id": "labels/label" },
        "field": [field("label", "sc:Integer"), field("name", "sc:Text")],
        "data": data.collect::<Vec<_>>(),
    })
}

/// The context that Croissant 1.0 prescribes.
fn context() -> Value {
    json!({
        "@language": "en",
        "@vocab": "https://schema.org/",
        "citeAs": "cr:citeAs",
        "column": "cr:column",
        "conformsTo": "dct:conformsTo",
        "cr": "http://mlcommons.org/croissant/",
        "rai": "http://mlcommons.org/croissant/RAI/",
        "data": { "@id": "cr:data", "@type": "@json" },
        "dataType": { "@id": "cr:dataType", "@type": "@vocab" },
        "dct": "http://purl.org/dc/terms/",
        "equivalentProperty": "cr:equivalentProperty",
        "examples": { "@id": "cr:examples", "@type": "@json" },
        "extract": "cr:extract",
        "field": "cr:field",
        "fileProperty": "cr:fileProperty",
        "fileObject": "cr:fileObject",
        "fileSet": "cr:fileSet",
        "format": "cr:format",
        "includes": "cr:includes",
        "isLiveDataset": "cr:isLiveDataset",
        "jsonPath": "cr:jsonPath",
        "key": "cr:key",
        "md5": "cr:md5",
        "parentField": "cr:parentField",
        "path": "cr:path",
        "recordSet": "cr:recordSet",
        "references": "cr:references",
        "regex": "cr:regex",
        "repeated": "cr:repeated",
        "replace": "cr:replace",
        "samplingRate": "cr:samplingRate",
        "sc": "https://schema.org/",
        "separator": "cr:separator",
        "source": "cr:source",
        "subField": "cr:subField",
        "transform": "cr:transform",
    })
}
