//! PARSE_URL: the parts of a URL, split as Java's `java.net.URL` does; what that does not take is NULL.

use super::args::{Text, build_text};
use super::builtin::{Builtin, Param, bind_with, nullable_string};
use crate::error::Result;
use crate::expr::{Datum, EvalContext};
use crate::types::DataType;

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[Builtin::new(
    "PARSE_URL",
    "PARSE_URL(<STRING>, <STRING> [, <STRING>])",
    |f, args| bind_with(f, args, &[Param::Text; 3], 2, nullable_string),
    parse_url,
)];

fn parse_url(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let (url, part, key) = (Text::of(&args[0]), Text::of(&args[1]), args.get(2).map(Text::of));
    build_text(args, context, |row, out| {
        let (url, part) = (Url::parse(url.get(row)?)?, part.get(row)?);
        let found = match &key {
            Some(key) if part == "QUERY" => parameter(url.query?, key.get(row)?),
            Some(_) => None,
            None => url.part(part),
        };
        out.push_str(&found?);
        Some(())
    })
}

/// Protocols that a Java without more handlers knows.
const PROTOCOLS: [&str; 6] = ["http", "https", "ftp", "file", "jar", "mailto"];

/// A URL, split.
#[derive(Debug, Default)]
struct Url<'a> {
    protocol: &'a str,
    authority: Option<&'a str>,
    path: &'a str,
    query: Option<&'a str>,
    reference: Option<&'a str>,
}

impl<'a> Url<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (protocol, rest) = text.trim().split_once(':')?;
        if !PROTOCOLS.iter().any(|known| known.eq_ignore_ascii_case(protocol)) {
            return None;
        }
        let (rest, reference) = rest.split_once('#').map_or((rest, None), |(rest, reference)| (rest, Some(reference)));
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => {
                let end = rest.find('/').unwrap_or(rest.len());
                (Some(&rest[..end]), &rest[end..])
            }
            None => (None, rest),
        };
        let url = Url { protocol, authority, path, query, reference };
        let (_, port) = url.host_and_port();
        port.is_none_or(|port| port.is_empty() || port.parse::<u32>().is_ok()).then_some(url)
    }

    fn user_info(&self) -> Option<&'a str> {
        self.authority?.rsplit_once('@').map(|(user, _)| user)
    }

    fn host_and_port(&self) -> (&'a str, Option<&'a str>) {
        let authority = self.authority.unwrap_or_default();
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        match host.find(']') {
            Some(end) => (&host[..=end], host[end + 1..].strip_prefix(':')),
            None => host.split_once(':').map_or((host, None), |(host, port)| (host, Some(port))),
        }
    }

    /// A part by its name.
    fn part(&self, name: &str) -> Option<String> {
        let owned = |text: &str| Some(text.to_string());
        match name {
            "HOST" => owned(self.host_and_port().0),
            "PATH" => owned(self.path),
            "QUERY" => self.query.and_then(owned),
            "REF" => self.reference.and_then(owned),
            "PROTOCOL" => owned(&self.protocol.to_ascii_lowercase()),
            "FILE" => match self.query {
                Some(query) => Some(format!("{}?{query}", self.path)),
                None => owned(self.path),
            },
            "AUTHORITY" => self.authority.and_then(owned),
            "USERINFO" => self.user_info().and_then(owned),
            _ => None,
        }
    }
}

/// The value of a parameter of a query.
fn parameter(query: &str, key: &str) -> Option<String> {
    query.split('&').find_map(|pair| pair.split_once('=').filter(|(name, _)| *name == key).map(|(_, value)| value.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_url() {
        let url = Url::parse("https://use%20r:pas%20s@example.com:80/dir%20/pa%20th.HTML?query=x%20y&q2=2#Ref%20two").unwrap();
        let part = |name| url.part(name).unwrap();
        assert_eq!([part("HOST"), part("PATH"), part("REF")], ["example.com", "/dir%20/pa%20th.HTML", "Ref%20two"]);
        assert_eq!(part("FILE"), "/dir%20/pa%20th.HTML?query=x%20y&q2=2");
        assert_eq!([part("USERINFO"), part("AUTHORITY")], ["use%20r:pas%20s", "use%20r:pas%20s@example.com:80"]);
        assert_eq!(parameter(url.query.unwrap(), "q2").as_deref(), Some("2"));
        let bare = Url::parse("http://user:pass@host").unwrap();
        assert_eq!([bare.part("REF"), bare.part("QUERY"), bare.part("PATH")], [None, None, Some(String::new())]);
        assert!(Url::parse("invalid://host").is_none());
    }
}
