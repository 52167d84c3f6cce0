//! URLs of files on web servers: `https://host/path`, and `http://` for servers on this machine.

use std::net::IpAddr;

use program::url::user_info;
use url::Url;

use crate::Error;

/// The fragment of a URL that states the SHA-256 of the file: `#sha256=DIGEST`.
const DIGEST: &str = "sha256=";

/// A checked URL without its fragment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct WebUrl {
    is_https: bool,
    /// Host and port.
    authority: String,
    /// Path and query, which begins with a slash.
    target: String,
}

impl WebUrl {
    /// Parses a URL. Returns the SHA-256 in its fragment, if there is one.
    pub(super) fn parse(url: &str) -> Result<(Self, Option<String>), Error> {
        let refused = |found| Error::BadWebUrl { url: shown(url), found };
        let (whole, fragment) = match url.split_once('#') {
            Some((whole, fragment)) => (whole, Some(fragment)),
            None => (url, None),
        };
        let sha256 = match fragment {
            None => None,
            Some(fragment) => {
                let digest = fragment.strip_prefix(DIGEST).map(str::to_ascii_lowercase);
                let is_digest = |digest: &String| {
                    digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
                };
                let digest = digest.filter(is_digest);
                Some(
                    digest
                        .ok_or_else(|| refused("what follows # is not sha256= and 64 hexadecimal digits"))?,
                )
            }
        };
        let parsed = Self::parse_whole(whole).map_err(refused)?;
        if !parsed.is_https && !parsed.is_loopback() {
            return Err(refused("http:// is not encrypted, so that a network could alter the file"));
        }
        Ok((parsed, sha256))
    }

    fn parse_whole(url: &str) -> Result<Self, &'static str> {
        let (is_https, rest) = match url.split_once("://") {
            Some(("https", rest)) => (true, rest),
            Some(("http", rest)) => (false, rest),
            _ => return Err("the scheme is not https"),
        };
        if user_info(rest) > 0 {
            return Err(
                "it contains a user name or key; remove it, and replace the key, since shells and logs keep it",
            );
        }
        if !rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte)) {
            return Err("a character is not allowed in a URL; write it as %XX");
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if authority.is_empty() {
            return Err("the host is missing");
        }
        let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
        Ok(Self { is_https, authority: authority.to_ascii_lowercase(), target })
    }

    /// The URL to which a response redirects. A redirect from https to http is refused.
    pub(super) fn redirected(&self, location: &str) -> Result<Self, &'static str> {
        let next = Url::parse(&self.request()).and_then(|url| url.join(location));
        let mut next = next.map_err(|_| "it redirects to an invalid URL")?;
        next.set_fragment(None);
        let redirected = Self::parse_whole(next.as_str())?;
        match (self.is_https, redirected.is_https) {
            (true, false) => Err("it redirects from https to http"),
            (false, false) if !redirected.is_loopback() => Err("it redirects to http on another machine"),
            _ => Ok(redirected),
        }
    }

    /// The URL of a request.
    pub(super) fn request(&self) -> String {
        format!("{}://{}{}", if self.is_https { "https" } else { "http" }, self.authority, self.target)
    }

    /// The URL for messages, without its query, which may contain a signature.
    pub(super) fn shown(&self) -> String {
        shown(&self.request())
    }

    /// Whether the server is on this machine.
    pub(super) fn is_loopback(&self) -> bool {
        let host = match self.authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, _)) => address,
            None => self.authority.split(':').next().unwrap_or_default(),
        };
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

/// A URL without query and fragment.
fn shown(url: &str) -> String {
    let whole = url.split('#').next().unwrap_or_default();
    match whole.split_once('?') {
        Some((path, _)) => format!("{path}?***"),
        None => whole.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use program::exit::Fails;

    use super::*;

    fn parsed(url: &str) -> WebUrl {
        WebUrl::parse(url).unwrap().0
    }

    #[test]
    fn a_url_is_shown_without_its_query() {
        for (url, request, shown) in [
            ("https://Host/a.json", "https://host/a.json", "https://host/a.json"),
            ("https://host", "https://host/", "https://host/"),
            (
                "https://host/a?X-Amz-Signature=5ec7e7",
                "https://host/a?X-Amz-Signature=5ec7e7",
                "https://host/a?***",
            ),
            ("http://127.0.0.1:80/a", "http://127.0.0.1:80/a", "http://127.0.0.1:80/a"),
            ("http://[::1]:80/a", "http://[::1]:80/a", "http://[::1]:80/a"),
            ("http://localhost/a", "http://localhost/a", "http://localhost/a"),
        ] {
            let url = parsed(url);
            assert_eq!((url.request(), url.shown()), (request.to_owned(), shown.to_owned()));
        }
    }

    #[test]
    fn a_digest_follows_the_url() {
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let url = format!("https://host/a#sha256={}", digest.to_uppercase());
        assert_eq!(WebUrl::parse(&url).unwrap(), (parsed("https://host/a"), Some(digest.to_owned())));
        for fragment in ["", "part", "sha256=", "sha256=00", "md5=00"] {
            let refused = WebUrl::parse(&format!("https://host/a#{fragment}")).unwrap_err().to_string();
            assert!(
                refused.contains("is not sha256= and 64 hexadecimal digits; expected https://"),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_url_with_a_key_or_without_encryption_is_refused() {
        for (url, found) in [
            ("http://host/a", "is not encrypted"),
            ("http://127.0.0.1.example.com/a", "is not encrypted"),
            ("https://KEY:5EC7E7@host/a", "user name or key"),
            ("https://KEY:5EC/7E7@host/a", "user name or key"),
            ("https:///a", "host is missing"),
            ("https://host/a b", "write it as %XX"),
            ("https://host/é", "write it as %XX"),
            ("ftp://host/a", "scheme is not https"),
        ] {
            let refused = WebUrl::parse(url).unwrap_err();
            assert!(refused.to_string().contains(found), "{refused}");
            assert_eq!(refused.exit(), program::exit::Exit::Usage);
        }
    }

    #[test]
    fn a_redirect_never_leaves_encryption() {
        for (url, location, expected) in [
            ("https://host/a/b", "https://other/c?d", Ok("https://other/c?d")),
            ("https://host/a/b", "//other/c", Ok("https://other/c")),
            ("https://host/a/b", "/c#part", Ok("https://host/c")),
            ("https://host/a/b?x=/y", "c", Ok("https://host/a/c")),
            ("https://host/a/b", "/x?next=https://other/", Ok("https://host/x?next=https://other/")),
            ("https://host/a/b?x", "?a=b", Ok("https://host/a/b?a=b")),
            ("https://host/a/b", "../c d/é", Ok("https://host/c%20d/%C3%A9")),
            ("https://host/a", "", Ok("https://host/a")),
            (
                "https://host/a",
                "https://KEY:5EC7E7@host/a",
                Err(
                    "it contains a user name or key; remove it, and replace the key, since shells and logs keep it",
                ),
            ),
            ("https://host/a", "https://", Err("it redirects to an invalid URL")),
            ("http://localhost:1/a", "http://127.0.0.1:2/b", Ok("http://127.0.0.1:2/b")),
            ("http://localhost:1/a", "https://host/b", Ok("https://host/b")),
            ("https://host/a", "http://host/a", Err("it redirects from https to http")),
            ("https://localhost/a", "http://localhost/a", Err("it redirects from https to http")),
            ("http://localhost/a", "http://host/a", Err("it redirects to http on another machine")),
            ("https://host/a", "ftp://host/a", Err("the scheme is not https")),
        ] {
            let redirected = parsed(url).redirected(location);
            assert_eq!(redirected.map(|url| url.request()), expected.map(str::to_owned), "{location}");
        }
    }
}
