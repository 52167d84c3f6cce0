//! Masks secrets in a line of a log, and makes the line safe for a terminal.
//!
//! Secret is the value of a name such as `AWS_SECRET_ACCESS_KEY` or `X-Amz-Signature`. Names remain, and so do the values
//! of names that only mention a secret: files, paths, providers, profiles, regions. A remedy consists of these.

use std::sync::LazyLock;

use program::exit::one_line;
use regex::{Captures, Regex};

/// Maximum number of characters of a shown line.
const CHARACTERS_MAX: usize = 400;

/// Parts of names whose values are secret, in lower case and without separators.
const PARTS: [&str; 16] = [
    "secret",
    "token",
    "password",
    "passwd",
    "passphrase",
    "signature",
    "credential",
    "accesskey",
    "accesskeyid",
    "accountkey",
    "apikey",
    "encryptionkey",
    "masterkey",
    "privatekey",
    "sessionkey",
    "sharedkey",
];
/// Those of them whose values may be words.
const PASSWORDS: [&str; 4] = ["password", "passwd", "passphrase", "pwd"];
/// Keys and tokens are longer than words.
const WORD_LETTERS_MAX: usize = 15;
/// The longest unit is `bytes`.
const UNIT_LETTERS_MAX: usize = 5;
/// Names that are secret as a whole: parameters of signed URLs.
const WHOLE: [&str; 3] = ["pwd", "sas", "sig"];
/// Last words of names whose values are not secret, although a part of the name is.
#[rustfmt::skip]
const READABLE: [&str; 19] = [
    "algorithm", "alias", "class", "dir", "enable", "enabled", "endpoint", "exclude", "file", "files", "folder", "include",
    "kind", "path", "profile", "provider", "providers", "region", "type",
];
/// The same if the value is a number, with a unit, or a time.
#[rustfmt::skip]
const QUANTITIES: [&str; 20] = [
    "count", "days", "expiration", "expires", "expiry", "hours", "interval", "length", "lifetime", "limit", "max", "min", "ms",
    "renewal", "secs", "size", "timeout", "tokens", "credentials", "version",
];
/// The same if the value is an address, whose own secrets are masked by their names. Passwords have none.
const ADDRESSES: [&str; 4] = ["uri", "url", "host", "service"];

/// `NAME=value`, `"name": "value"`, `name%3Dvalue`, with a name that a secret may have.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    let keys = "(?:access|account|api|encryption|master|private|session|shared)[._-]?key";
    let words = format!("secret|token|password|passwd|passphrase|signature|credential|{keys}");
    regex(&format!(
        r#"(?i)([\w.-]*(?:{words})[\w.-]*|\b(?:pwd|sas|sig))([\\"'\]]*\s*)(=|:|%3D)(\s*)({VALUE})"#
    ))
});
/// A value in quotes, which may be escaped themselves, or without quotes.
const VALUE: &str = concat!(
    r#"\\+"(?:[^"\\]|\\+[^"\\])*(?:\\+")?|\\+'(?:[^'\\]|\\+[^'\\])*(?:\\+')?|"#,
    r#""(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|(?:\w(?:['"]\w+)+|[^\s"'&,;<>])+"#
);
/// Elements of XML: settings of Hadoop, and responses of AWS.
static ELEMENT: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(<name>([^<]*)</name>\s*<value>|<([\w.-]+)>)([^<]+)"));
/// Keys by their form, and headers without a name of their own.
static FORMS: LazyLock<[Regex; 3]> = LazyLock::new(|| {
    [
        r"()\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}(?::[\w/+=]+)?",
        r#"(?i)(\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|negotiate|aws)\s+)[^\s"',;]+"#,
        r"()\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",
    ]
    .map(regex)
});

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| unreachable!("tested: {error}"))
}

/// Whether a setting or a variable of this name holds a secret.
pub fn is_secret(name: &str) -> bool {
    let joined = joined(name);
    let words = words(name);
    let last = words.last().map_or("", String::as_str);
    let is_readable = READABLE.contains(&last) || QUANTITIES.contains(&last) || ADDRESSES.contains(&last);
    WHOLE.contains(&joined.as_str()) || (PARTS.iter().any(|part| joined.contains(part)) && !is_readable)
}

/// Whether this value of a name is a secret. The last word of the name says what a value should be that is none.
fn is_secret_value(name: &str, value: &str) -> bool {
    let words = words(name);
    let last = words.last().map_or("", String::as_str);
    let value = value.trim_matches(['"', '\'', '\\']);
    let is_as_named = match last {
        _ if QUANTITIES.contains(&last) => is_quantity(value),
        _ if ADDRESSES.contains(&last) => {
            is_address(value) && !PASSWORDS.iter().any(|part| joined(name).contains(part))
        }
        _ => return is_secret(name),
    };
    PARTS.iter().any(|part| joined(name).contains(part)) && !is_as_named
}

/// `400`, `30s`, `1.2`, `2026-11-28T15:00:00Z`.
fn is_quantity(value: &str) -> bool {
    let unit = value.trim_start_matches(|c: char| c.is_ascii_digit() || ".:-TZ".contains(c));
    unit.len() < value.len()
        && value.starts_with(|c: char| c.is_ascii_digit())
        && unit.len() <= UNIT_LETTERS_MAX
        && unit.chars().all(|letter| letter.is_ascii_lowercase())
}

fn is_address(value: &str) -> bool {
    let is_of_host = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".:-".contains(&byte);
    value.contains("://") || (value.contains('.') && value.bytes().all(is_of_host))
}

/// In prose and in the names of loggers, only the last word before a colon names the value.
fn is_secret_before_colon(name: &str, value: &str) -> bool {
    let last_segment = name.rsplit('.').next().unwrap_or(name);
    let is_class = name.contains('.') && last_segment.starts_with(|c: char| c.is_ascii_uppercase());
    let joined = joined(name);
    let joined = joined.strip_suffix('s').filter(|_| is_plural(name)).unwrap_or(&joined);
    is_secret_value(name, value) && !is_class && PARTS.iter().chain(&WHOLE).any(|part| joined.ends_with(part))
}

fn is_plural(name: &str) -> bool {
    words(name).last().is_some_and(|last| ["tokens", "credentials"].contains(&last.as_str()))
}

/// Whether the value behind a colon is a part of a sentence: a word follows, and a word or the folder of a file precedes
/// the name, or the name is that of a setting or a variable.
fn is_in_prose(before: &str, name: &str, after: &str) -> bool {
    let is_followed = after.strip_prefix(' ').is_some_and(|after| after.starts_with(char::is_alphabetic));
    let word = before.strip_suffix(' ').and_then(|before| before.rsplit(' ').next()).unwrap_or_default();
    let is_word = word.ends_with(char::is_alphabetic) && word.contains(char::is_lowercase);
    let is_setting = name.contains('.') || !name.contains(char::is_lowercase);
    is_followed && (is_word || is_setting || before.ends_with('/'))
}

fn is_password(name: &str) -> bool {
    PASSWORDS.iter().any(|part| joined(name).ends_with(part))
}

/// Whether a value after a colon is a word of a sentence, as in `failed to load the token: dispatch failure`.
fn is_word(value: &str) -> bool {
    let word = value.trim_end_matches([':', '.', '!', '?']);
    let is_lower = word.chars().skip(1).all(|letter| letter.is_ascii_lowercase());
    is_lower && word.starts_with(|first: char| first.is_ascii_alphabetic()) && word.len() <= WORD_LETTERS_MAX
}

/// The words of a name: `AWS_SESSION_TOKEN`, `fs.s3a.session.token` and `sessionToken`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for character in name.chars() {
        let is_separator = !character.is_alphanumeric();
        if is_separator || (was_lower && character.is_uppercase()) {
            words.push(String::new());
        }
        was_lower = character.is_lowercase();
        if let (false, Some(word)) = (is_separator, words.last_mut()) {
            word.extend(character.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn joined(name: &str) -> String {
    words(name).concat()
}

/// A line for a report: without secrets, and cut if it is long.
pub fn masked(line: &str) -> String {
    let line = without_secrets(line);
    let line = line.trim();
    match line.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// A line that is safe for a terminal, with `***` in place of each secret.
pub fn without_secrets(line: &str) -> String {
    let line = one_line(line);
    let element = |found: &Captures<'_>| {
        let name = found.get(2).or_else(|| found.get(3)).map_or("", |name| name.as_str());
        let value = if is_secret_value(name, &found[4]) { "***" } else { &found[4] };
        format!("{}{value}", &found[1])
    };
    let mut line = without_named(&ELEMENT.replace_all(&line, element));
    for form in &*FORMS {
        line = form.replace_all(&line, "${1}***").into_owned();
    }
    line
}

fn without_named(line: &str) -> String {
    let (mut shown, mut at) = (String::with_capacity(line.len()), 0);
    while let Some(found) = NAMED.captures_at(line, at) {
        let [name, before, sign, after, value] = [1, 2, 3, 4, 5].map(|group| &found[group]);
        let start = found.get(1).map_or(at, |name| name.start());
        let (begin, end) = found.get(5).map_or((at, line.len()), |value| (value.start(), value.end()));
        let is_secret = match sign {
            ":" if before.is_empty() && is_in_prose(&line[..start], name, &line[end..]) => {
                is_secret_before_colon(name, value)
                    && (is_password(name) || !(is_word(value) || is_plural(name)))
            }
            ":" => is_secret_before_colon(name, value),
            _ => is_secret_value(name, value),
        };
        // An object or a list, whose values have names of their own.
        let is_secret = is_secret && !value.chars().all(|c| "{[(".contains(c));
        // The value of another name may contain names itself, such as the query of a URL.
        shown += &line[at..begin - before.len() - sign.len() - after.len()];
        shown += &[before, sign, after].concat();
        let unescaped = value.trim_start_matches('\\');
        let quote = match unescaped.starts_with(['"', '\'']) {
            true => &value[..value.len() - unescaped.len() + 1],
            false => "",
        };
        if is_secret {
            shown += &format!("{quote}***{quote}");
        }
        at = if is_secret { end } else { begin };
        if !is_secret && !quote.is_empty() {
            shown += quote;
            at += quote.len();
        }
    }
    shown + &line[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_secrets_vanish_and_their_names_remain() {
        for (line, expected) in [
            ("fs.s3a.secret.key=wJalr/K7 is set", "fs.s3a.secret.key=*** is set"),
            ("export AWS_SECRET_ACCESS_KEY='wJalr/K7'", "export AWS_SECRET_ACCESS_KEY='***'"),
            ("AWS_SECRET_ACCESS_KEY_OLD=wJalr/K7", "AWS_SECRET_ACCESS_KEY_OLD=***"),
            ("aws_secret_access_key = wJalr/K7", "aws_secret_access_key = ***"),
            ("AWS_ACCESS_KEY_ID=canary", "AWS_ACCESS_KEY_ID=***"),
            ("-cmdenv AWS_SESSION_TOKEN=Fwo+/x== -input /in", "-cmdenv AWS_SESSION_TOKEN=*** -input /in"),
            (r#"{"aws_session_token": "wJalr/K7"}"#, r#"{"aws_session_token": "***"}"#),
            (r#""Token" : "IQoJb3", "Code""#, r#""Token" : "***", "Code""#),
            (r#"password="two words", x=1"#, r#"password="***", x=1"#),
            ("password: wJalr", "password: ***"),
            ("password: hunter is wrong", "password: *** is wrong"),
            ("session token: FwoGZXIvYXdzEBYaDJ", "session token: ***"),
            ("secret: \"hunter\"", "secret: \"***\""),
            ("DEBUG: password: wJalr", "DEBUG: password: ***"),
            ("sasl.jaas.config=x password=\"wJalr", "sasl.jaas.config=x password=\"***\""),
            (
                "AwsSessionCredentials(secretAccessKey=wJalr, x=1)",
                "AwsSessionCredentials(secretAccessKey=***, x=1)",
            ),
            (
                "<name>fs.s3a.secret.key</name><value>wJalr</value>",
                "<name>fs.s3a.secret.key</name><value>***</value>",
            ),
            ("<SessionToken>wJalr</SessionToken>", "<SessionToken>***</SessionToken>"),
            (
                "GET https://h/x?X-Amz-Credential=id/eu&X-Amz-Security-Token=wJalr&X-Amz-Signature=0f3c HTTP/1.1",
                "GET https://h/x?X-Amz-Credential=***&X-Amz-Security-Token=***&X-Amz-Signature=*** HTTP/1.1",
            ),
            ("X-Amz-Signature%3D0f3c done", "X-Amz-Signature%3D*** done"),
            (
                "https://a.blob.core.windows.net/c?sv=1&sig=0f3c%3D",
                "https://a.blob.core.windows.net/c?sv=1&sig=***",
            ),
            (
                "fs.azure.account.key.a.blob.core.windows.net=0f3c",
                "fs.azure.account.key.a.blob.core.windows.net=***",
            ),
            ("X-aws-ec2-metadata-token: AQAEAx==", "X-aws-ec2-metadata-token: ***"),
            ("Authorization: Bearer wJalr", "Authorization: Bearer ***"),
            (
                "Authorization: AWS4-HMAC-SHA256 Credential=id/eu/s3, SignedHeaders=host, Signature=0f3c",
                "Authorization: AWS4-HMAC-SHA256 Credential=***, SignedHeaders=host, Signature=***",
            ),
            ("Authorization: AWS AKIDEXAMPLE:frJIUN8=", "Authorization: AWS ***"),
            ("s3a://AKIAEXAMPLE:wJalr/K7@bucket/x: not found", "s3a://***@bucket/x: not found"),
            ("the key ASIAABCDEFGHIJKL1234 is unknown", "the key *** is unknown"),
            ("got eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxw", "got ***"),
            (
                "AWS_SHARED_CREDENTIALS_FILE=/a:AWS_SESSION_TOKEN=wJalr",
                "AWS_SHARED_CREDENTIALS_FILE=/a:AWS_SESSION_TOKEN=***",
            ),
            (
                "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://h/?token=wJalr",
                "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://h/?token=***",
            ),
            ("credentials=minio:SECRET123", "credentials=***"),
            ("fs.azure.credentials=SECRET123 tokens=SECRET1", "fs.azure.credentials=*** tokens=***"),
            ("credentials: minio:SECRET123", "credentials: ***"),
            (
                r#"{"tokens": ["a", "b"], "credentials": "hunter"}"#,
                r#"{"tokens": ["a", "b"], "credentials": "***"}"#,
            ),
            ("secret: hunter", "secret: ***"),
            ("  token: abcdefgh", "token: ***"),
            ("apikey: correcthorse", "apikey: ***"),
            ("the user has secret: hunter, region: eu", "the user has secret: ***, region: eu"),
            ("token: abcdefgh secret: hunter", "token: *** secret: ***"),
            ("MY_SECRET_VERSION=SECRET1", "MY_SECRET_VERSION=***"),
            ("TOKEN_LIFETIME=1SECRET", "TOKEN_LIFETIME=***"),
            ("db.password.url=SECRET1", "db.password.url=***"),
            ("db.password.url=http://h/SECRET1", "db.password.url=***"),
            ("token.service.host=SECRET1", "token.service.host=***"),
            (r#"password="it's-SECRET", x=1"#, r#"password="***", x=1"#),
            (r#"password='a"SECRET' x=1"#, "password='***' x=1"),
            (r#"password="a\"SECRET" x=1"#, r#"password="***" x=1"#),
            ("password=it's-SECRET x=1", "password=*** x=1"),
            (r#"{\"secretAccessKey\":\"SECRET\",\"x\":1}"#, r#"{\"secretAccessKey\":\"***\",\"x\":1}"#),
            (r#"{\\\"token\\\": \\\"SECRET\\\"}"#, r#"{\\\"token\\\": \\\"***\\\"}"#),
        ] {
            assert_eq!(masked(line), expected);
        }
    }

    #[test]
    fn a_remedy_and_names_of_files_are_shown_as_they_are() {
        for line in [
            "pass -cmdenv AWS_SHARED_CREDENTIALS_FILE=/etc/sentimill/credentials, a file with mode 600",
            "AWS_PROFILE=reviews AWS_REGION=eu-central-1 AWS_CONFIG_FILE=/etc/aws",
            "AWS_WEB_IDENTITY_TOKEN_FILE=/var/run/secrets/token",
            "remove fs.s3a.access.key and fs.s3a.secret.key; set AWS_SECRET_ACCESS_KEY or AWS_PROFILE",
            "fs.s3a.aws.credentials.provider=org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider",
            "hadoop.security.credential.provider.path=jceks://hdfs/user/reviews/s3.jceks",
            "hadoop.security.credstore.java-keystore-provider.password-file=store.password",
            "mapreduce.job.hdfs-servers.token-renewal.exclude=nn2",
            "reducer --max-tokens=400, max_tokens: 400",
            "AWS_CREDENTIAL_EXPIRATION=2026-11-28T15:00:00Z",
            "AWS_SESSION_TOKEN: not set; set it or use a role",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://169.254.170.2/v2",
            "TOKEN_LIFETIME=30min secret.version=2",
            "hdfs://namenode:8020/reviews: no such folder",
            "/etc/sentimill/credentials: no such file",
            "failed to load IMDS session token: dispatch failure: io error: request forbidden",
            "JsonParseException: Unexpected token: Expected a value",
            "INFO org.apache.hadoop.security.token.Token: renewed",
            "INFO o.a.h.yarn.security.NMTokenSecretManagerInNM: Rolling master-key",
            "Executing with tokens: [Kind: mapreduce.job, Service: job_17_0001]",
            "JsonParseException: Unrecognized token 'x': was expecting a value",
            "s3://bucket/secrets/token.json: no object of this name",
            "<name>fs.s3a.aws.credentials.provider</name><value>org.x.Provider</value>",
            "2026-11-23 04:33:06 ERROR Task: attempt_1_0001_m_000000_0 - exited : subprocess failed with code 65",
        ] {
            assert_eq!(masked(line), line);
        }
    }

    #[test]
    fn a_line_is_safe_for_a_terminal_and_a_long_one_is_cut() {
        assert_eq!(masked("a\u{1b}[2Jb\r"), "a [2Jb");
        assert_eq!(masked(&"é".repeat(500)).chars().count(), CHARACTERS_MAX + 1);
    }

    #[test]
    fn settings_with_secrets_are_known_by_their_names() {
        for name in
            ["fs.s3a.secret.key", "fs.s3a.bucket.b.access.key", "AWS_SESSION_TOKEN", "javax.net.ssl.password"]
        {
            assert!(is_secret(name), "{name}");
        }
        for name in
            ["AWS_SHARED_CREDENTIALS_FILE", "AWS_REGION", "hadoop.security.credential.provider.path", "x"]
        {
            assert!(!is_secret(name), "{name}");
        }
    }
}
