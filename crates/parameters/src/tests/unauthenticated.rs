//! Clients without the token, without a certificate, or with another one are not served.

use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::{address, client_options, options, spec};
use crate::{Client, ClientOptions, Server, ServerOptions, TlsFiles, Token};

fn create(options: &ClientOptions) -> crate::Result<u32> {
    Client::new(options)?.create(&spec())
}

#[test]
fn a_client_without_the_token_is_not_served() {
    let folder = tempfile::tempdir().unwrap();
    let token = |key: &str| Some(Token::of_key(key.as_bytes()).unwrap());
    let server =
        Server::start(&ServerOptions { token: token("0123456789abcdef"), ..options(folder.path(), 1, None) })
            .unwrap();
    let with = |token| ClientOptions { token, ..client_options(&[address(&server)]) };
    let refused = |token| create(&with(token)).unwrap_err().to_string();
    assert!(refused(None).contains("no token; pass the server's --token-file"), "{}", refused(None));
    assert!(refused(token("0123456789abcdeg")).contains("another token"));
    assert_eq!(create(&with(token("0123456789abcdef"))).unwrap(), 0);
    assert!(server.stop().unwrap().tables.len() == 1);
}

#[test]
fn connections_without_a_request_are_closed_and_leave_their_places() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&options(folder.path(), 1, None)).unwrap();
    let idle: Vec<TcpStream> = (0..260).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    assert_eq!(create(&client_options(&[address(&server)])).unwrap(), 0);
    for mut connection in idle {
        connection.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
        let mut bytes = Vec::new();
        // The server has sent its settings of HTTP/2 at most.
        connection.read_to_end(&mut bytes).unwrap();
        assert!(bytes.len() < 100, "{bytes:?}");
    }
}

/// Writes an authority, and a certificate and key that it signed.
fn certificates(folder: &Path, name: &str) -> TlsFiles {
    let mut authority = CertificateParams::new(Vec::<String>::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
    let write = |file: &str, text: String| -> Option<PathBuf> {
        let path = folder.join(format!("{name}-{file}.pem"));
        fs::write(&path, text).unwrap();
        Some(path)
    };
    TlsFiles {
        authority: write("authority", authority.pem()),
        certificate: write("certificate", certificate.pem()),
        key: write("key", key.serialize_pem()),
    }
}

#[test]
fn a_client_without_a_certificate_of_the_authority_is_not_served() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, others) = (certificates(folder.path(), "ours"), certificates(folder.path(), "others"));
    let server = Server::start(&ServerOptions {
        tls: ours.clone(),
        ..options(&folder.path().join("server"), 1, None)
    });
    let server = server.unwrap();
    let with = |tls: TlsFiles| {
        let patience = Duration::from_millis(300);
        create(&ClientOptions { tls, patience, ..client_options(&[address(&server)]) })
    };
    let unreachable = |tls| match with(tls) {
        Err(error) if error.exit() == program::exit::Exit::Unavailable => true,
        other => panic!("{other:?}"),
    };
    assert!(unreachable(TlsFiles { certificate: None, key: None, ..ours.clone() }));
    assert!(unreachable(TlsFiles { authority: ours.authority.clone(), ..others.clone() }));
    assert!(unreachable(TlsFiles { authority: others.authority, ..ours.clone() }));
    assert!(unreachable(TlsFiles::default()));
    let patient = ClientOptions { tls: ours, ..client_options(&[address(&server)]) };
    assert_eq!(create(&patient).unwrap(), 0);
}
