//! Who may talk to a server: everybody on this machine, or those who know the token or have a certificate.
//!
//! The token that is sent is derived from the key, so that the key itself, which other programs may share, is never sent.
//! Without TLS, whoever can read the network can read the token.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use program::bounded;
use program::exit::{Exit, Failed};
use program::hexadecimal;
use program::system::Failure;
use sha2::Sha256;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};
use tonic::{Request, Status};

use crate::error::{Error, Result};
use crate::server::budget::Peer;

/// What the token is derived for. A change of it makes all older tokens invalid.
const PURPOSE: &[u8] = b"sentimill parameter server 1";
const HEADER: &str = "authorization";
/// A longer file is no certificate.
const PEM_BYTES_MAX: u64 = 1 << 20;

/// Files of certificates and keys, in PEM.
#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    /// The certificate of this side,
    pub certificate: Option<PathBuf>,
    /// and its private key.
    pub key: Option<PathBuf>,
    /// The authority whose certificates the other side must have.
    pub authority: Option<PathBuf>,
}

/// A token, which is compared in constant time and never printed.
#[derive(Clone)]
pub struct Token {
    mac: Hmac<Sha256>,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Token(..)")
    }
}

impl Token {
    /// The token of a key.
    ///
    /// # Errors
    /// Never: HMAC takes keys of any length.
    pub fn of_key(key: &[u8]) -> Result<Self> {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(Failed::defect)?;
        mac.update(PURPOSE);
        Ok(Self { mac })
    }

    fn text(&self) -> String {
        hexadecimal::encode(&self.mac.clone().finalize().into_bytes())
    }

    fn is(&self, text: &[u8]) -> bool {
        hexadecimal::decode(text).is_some_and(|bytes| self.mac.clone().verify_slice(&bytes).is_ok())
    }
}

/// Refuses requests without the token, before their messages are read.
#[derive(Clone, Debug)]
pub(crate) struct Guard(pub(crate) Option<Token>);

impl Guard {
    fn check(&self, request: &Request<()>) -> std::result::Result<(), Status> {
        let Some(token) = &self.0 else { return Ok(()) };
        let sent = request.metadata().get(HEADER).map(|value| value.as_bytes());
        match sent.and_then(|sent| sent.strip_prefix(b"Bearer ")) {
            Some(sent) if token.is(sent) => Ok(()),
            Some(_) => Err(Status::unauthenticated("another token; pass the server's --token-file")),
            None => Err(Status::unauthenticated("no token; pass the server's --token-file")),
        }
    }
}

impl Interceptor for Guard {
    fn call(&mut self, request: Request<()>) -> std::result::Result<Request<()>, Status> {
        self.check(&request)?;
        if let Some(peer) = Peer::of(request.extensions()) {
            peer.set_known();
        }
        Ok(request)
    }
}

/// Adds the token to requests.
#[derive(Clone, Debug)]
pub(crate) struct Pass(Option<MetadataValue<Ascii>>);

impl Pass {
    pub(crate) fn of(token: Option<&Token>) -> Result<Self> {
        let value = token.map(|token| format!("Bearer {}", token.text()).parse());
        let mut value: Option<MetadataValue<Ascii>> =
            value.transpose().map_err(|_| Failed::defect("a token is not ASCII"))?;
        if let Some(value) = &mut value {
            value.set_sensitive(true);
        }
        Ok(Self(value))
    }
}

impl Interceptor for Pass {
    fn call(&mut self, mut request: Request<()>) -> std::result::Result<Request<()>, Status> {
        if let Some(value) = &self.0 {
            request.metadata_mut().insert(HEADER, value.clone());
        }
        Ok(request)
    }
}

/// Refuses an address that others can reach, if everybody would be served. Clients have certificates only if the server has
/// one too.
pub(crate) fn check_address(address: SocketAddr, token: Option<&Token>, tls: &TlsFiles) -> Result<()> {
    let requires_certificates = tls.authority.is_some() && tls.certificate.is_some();
    if address.ip().is_loopback() || token.is_some() || requires_certificates {
        return Ok(());
    }
    Err(Error::failed(
        Exit::Usage,
        format!(
            "--listen {address}: is reachable from other machines, expected 127.0.0.1; or pass --token-file, or \
             --tls-certificate, --tls-key and --tls-ca"
        ),
    ))
}

impl TlsFiles {
    /// The settings of a server; `None` without files.
    pub(crate) fn server(&self) -> Result<Option<ServerTlsConfig>> {
        let identity = self.identity()?.map(|identity| ServerTlsConfig::new().identity(identity));
        match (identity, &self.authority) {
            (Some(config), Some(path)) => Ok(Some(config.client_ca_root(Certificate::from_pem(read(path)?)))),
            (identity, None) => Ok(identity),
            (None, Some(path)) => {
                let expected = "--tls-certificate and --tls-key of the server with it";
                Err(unusable(path, "passed as --tls-ca alone", expected))
            }
        }
    }

    /// The settings of a client; `None` without an authority.
    pub(crate) fn client(&self) -> Result<Option<ClientTlsConfig>> {
        let Some(path) = &self.authority else { return self.without_authority() };
        let config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(path)?));
        Ok(Some(match self.identity()? {
            Some(identity) => config.identity(identity),
            None => config,
        }))
    }

    /// A client with a certificate expects an encrypted connection, which needs the authority of the server.
    fn without_authority(&self) -> Result<Option<ClientTlsConfig>> {
        match self.certificate.as_ref().or(self.key.as_ref()) {
            None => Ok(None),
            Some(path) => {
                let expected = "the authority of the server's certificate with it";
                Err(unusable(path, "passed to a client without --tls-ca", expected))
            }
        }
    }

    fn identity(&self) -> Result<Option<Identity>> {
        match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Ok(Some(Identity::from_pem(read(certificate)?, read(key)?))),
            (None, None) => Ok(None),
            (Some(path), None) | (None, Some(path)) => {
                Err(unusable(path, "passed alone", "--tls-certificate with --tls-key"))
            }
        }
    }

    /// The error of a file that TLS refuses.
    pub(crate) fn refused(&self, error: &tonic::transport::Error) -> Error {
        let path = self.certificate.clone().or_else(|| self.authority.clone()).unwrap_or_default();
        let found = program::exit::chain(error);
        unusable(&path, &found, "a certificate in PEM, and its private key")
    }
}

/// The error of a certificate or a key that cannot be used.
fn unusable(path: &Path, found: &str, expected: &str) -> Error {
    Error::failed(Exit::Settings, format!("{}: {found}, expected {expected}", path.display()))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    bounded::read(path, PEM_BYTES_MAX).map_err(|error| {
        let message = format!("{}: {}", path.display(), Failure::reading("read it", &error));
        Error::failed(Exit::MissingInput, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_of_the_key_passes() {
        let token = Token::of_key(b"0123456789abcdef").unwrap();
        let call = |guard: &Token, sent: Option<&Token>| {
            let request = Pass::of(sent).unwrap().call(Request::new(())).unwrap();
            Guard(Some(guard.clone())).call(request).is_ok()
        };
        assert!(call(&token, Some(&token)));
        assert!(!call(&token, None));
        assert!(!call(&token, Some(&Token::of_key(b"0123456789abcdeF").unwrap())));
        assert!(!token.is(b"") && !token.is(b"0") && !token.is("é".as_bytes()));
        assert!(!token.text().contains("0123456789abcdef"));
        assert_eq!(format!("{token:?}"), "Token(..)");
    }

    #[test]
    fn files_of_tls_are_no_files_of_a_model() {
        for (path, expected) in [
            ("no-such.pem", "no-such.pem: cannot read it: no such file or folder; check the path"),
            ("/dev/zero", "/dev/zero: cannot read it: it has more than 1048576 bytes; check the path"),
        ] {
            let error = read(path.as_ref()).unwrap_err();
            assert_eq!((error.exit(), error.to_string().as_str()), (Exit::MissingInput, expected));
        }
    }

    #[test]
    fn an_address_that_others_reach_requires_authentication() {
        let (here, anywhere) = ("127.0.0.1:0".parse().unwrap(), "0.0.0.0:0".parse().unwrap());
        let token = Token::of_key(b"0123456789abcdef").unwrap();
        let none = TlsFiles::default();
        assert!(check_address(here, None, &none).is_ok());
        assert!(check_address(anywhere, Some(&token), &none).is_ok());
        let authority = TlsFiles { authority: Some("ca.pem".into()), ..TlsFiles::default() };
        let certificate = TlsFiles { certificate: Some("c.pem".into()), ..TlsFiles::default() };
        for open in [&none, &authority, &certificate] {
            let error = check_address(anywhere, None, open).unwrap_err().to_string();
            assert!(error.starts_with("--listen 0.0.0.0:0: is reachable from other machines"), "{error}");
        }
        let error = certificate.client().unwrap_err().to_string();
        assert!(
            error.starts_with("c.pem: passed to a client without --tls-ca, expected the authority"),
            "{error}"
        );
        let both = TlsFiles { authority: authority.authority.clone(), ..certificate };
        assert!(check_address(anywhere, None, &both).is_ok());
        let error = authority.server().unwrap_err().to_string();
        assert!(
            error.contains("passed as --tls-ca alone, expected --tls-certificate and --tls-key"),
            "{error}"
        );
    }
}
