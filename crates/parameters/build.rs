//! Generates the client and the server of the service whose messages are in `src/messages.rs`. So the build needs no
//! compiler of .proto files.

use tonic_build::manual::{Builder, Method, Service};

/// Methods: name of the function, name on the wire and in the names of the messages.
const METHODS: [(&str, &str); 7] = [
    ("create", "Create"),
    ("join", "Join"),
    ("pull", "Pull"),
    ("push", "Push"),
    ("keys", "Keys"),
    ("leave", "Leave"),
    ("statistics", "Statistics"),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let methods = METHODS.map(|(name, route)| {
        Method::builder()
            .name(name)
            .route_name(route)
            .input_type(format!("crate::messages::{route}Request"))
            .output_type(format!("crate::messages::{route}Reply"))
            .codec_path("tonic_prost::ProstCodec")
            .build()
    });
    let service = Service::builder().package("sentimill.parameters.v1").name("Parameters");
    let service = methods.into_iter().fold(service, |service, method| service.method(method));
    Builder::new().compile(&[service.build()]);
}
