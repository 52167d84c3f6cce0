//! Parts of a URL: its scheme, and its user information, which is masked wherever it is printed.

/// The scheme of a URL, as defined by RFC 3986; `None` if the text does not start with a scheme and `://`.
pub(crate) fn scheme_of(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once("://")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    is_scheme.then_some(scheme)
}

/// The text with `***` in place of the user information of each URL in it, as in `s3://KEY:SECRET@bucket`.
pub fn masked(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        masked.push_str(before);
        masked.push_str("://");
        let end = after.find(|c: char| c.is_whitespace() || "'\"".contains(c)).unwrap_or(after.len());
        let hidden = user_info(&after[..end]);
        if hidden > 0 {
            masked.push_str("***");
        }
        rest = &after[hidden..];
    }
    masked + rest
}

/// Number of bytes of user information after the `://` of a URL. The authority, up to the first slash, has
/// user information if it contains an `@`, or a `:` without a port after it. The latter is a URL without its
/// `@`, such as `s3://KEY:SECRET/x`. A secret may contain a slash, so everything before the last `@` counts,
/// or everything if there is no `@`.
pub fn user_info(after_scheme: &str) -> usize {
    let (authority, _) = after_scheme.split_once('/').unwrap_or((after_scheme, ""));
    // The colons of an IPv6 address are in brackets.
    let (_, port) = authority.rsplit_once(']').unwrap_or(("", authority));
    let has_secret = |(_, port): (&str, &str)| !port.bytes().all(|byte| byte.is_ascii_digit());
    if authority.contains('@') || port.split_once(':').is_some_and(has_secret) {
        after_scheme.rfind('@').unwrap_or(after_scheme.len())
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_information_is_masked_in_each_url() {
        let given = "invalid value 's3://KEY:SEC/RET@bucket/x' for '--out': https://u@h/ and s3://bucket/x";
        let expected = "invalid value 's3://***@bucket/x' for '--out': https://***@h/ and s3://bucket/x";
        assert_eq!(masked(given), expected);
        assert_eq!(masked("no URL, a@b"), "no URL, a@b");
        assert_eq!(masked("s3://a@b@c"), "s3://***@c");
        assert_eq!(masked("s3://KEY:SEC/RET"), "s3://***");
        for shown in
            ["s3://bucket/user@host/run", "http://host:9000/x", "http://[::1]:9000/x", "http://[::1]/x"]
        {
            assert_eq!(masked(shown), shown);
        }
    }
}
