//! The name in the first message of TLS (server name indication). It stands in clear text, and is the name for which the
//! server shows its certificate.

use super::destination::HostName;

/// What the first bytes of a connection are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientHello {
    /// More bytes decide.
    Incomplete,
    NotTls,
    /// It begins as TLS does and is not what a client sends first.
    Broken,
    /// A whole message that names no server.
    Unnamed,
    Named(HostName),
}

const HANDSHAKE_RECORD: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;
/// A record may not have more; nor may a whole message here, which has keys of a few kilobytes at most.
const MAX_RECORD: usize = 1 << 14;
const MAX_MESSAGE: usize = 1 << 16;

impl ClientHello {
    /// The size beyond which a message is `Broken`, with the heads of records of one byte each.
    pub const MAX: usize = 6 * MAX_MESSAGE;

    /// Reads the first bytes of a connection. A message may lie in several records.
    pub fn read(bytes: &[u8]) -> ClientHello {
        match bytes {
            [] | [HANDSHAKE_RECORD] => return ClientHello::Incomplete,
            [HANDSHAKE_RECORD, 3, ..] => (),
            _ => return ClientHello::NotTls,
        }
        let (mut rest, mut message) = (bytes, Vec::new());
        loop {
            let [kind, major, _, high, low, after @ ..] = rest else { return ClientHello::Incomplete };
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            if (*kind, *major) != (HANDSHAKE_RECORD, 3) || length == 0 || length > MAX_RECORD {
                return ClientHello::Broken;
            }
            message.extend_from_slice(&after[..length.min(after.len())]);
            match whole_message(&message) {
                Err(()) => return ClientHello::Broken,
                Ok(Some(body)) => return server_name(body).unwrap_or(ClientHello::Broken),
                Ok(None) if after.len() < length => return ClientHello::Incomplete,
                Ok(None) => rest = &after[length..],
            }
        }
    }
}

/// The body of the message, if it is all there.
fn whole_message(message: &[u8]) -> Result<Option<&[u8]>, ()> {
    match message {
        [] => Ok(None),
        [CLIENT_HELLO, a, b, c, body @ ..] => {
            let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            match length <= MAX_MESSAGE {
                true => Ok(body.get(..length)),
                false => Err(()),
            }
        }
        [CLIENT_HELLO, ..] => Ok(None),
        _ => Err(()),
    }
}

/// `None` if the message is broken.
fn server_name(body: &[u8]) -> Option<ClientHello> {
    let mut fields = Fields(body);
    fields.take(2 + 32)?; // version and random
    fields.short_list()?; // session
    fields.long_list()?; // ciphers
    fields.short_list()?; // compression
    if fields.0.is_empty() {
        return Some(ClientHello::Unnamed);
    }
    let mut extensions = Fields(fields.long_list()?);
    if !fields.0.is_empty() {
        return None;
    }
    let mut named = None;
    while !extensions.0.is_empty() {
        let (kind, content) = (extensions.number()?, extensions.long_list()?);
        if kind == SERVER_NAME {
            if named.is_some() {
                return None;
            }
            named = Some(one_name(content)?);
        }
    }
    Some(named.map_or(ClientHello::Unnamed, ClientHello::Named))
}

/// The one name of a list: a list of two would leave the choice to the server.
fn one_name(content: &[u8]) -> Option<HostName> {
    let mut list = Fields(content);
    let mut names = Fields(list.long_list()?);
    let (kind, name) = (names.take(1)?[0], names.long_list()?);
    let alone = list.0.is_empty() && names.0.is_empty() && kind == HOST_NAME;
    core::str::from_utf8(name).ok().filter(|_| alone)?.parse().ok()
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn short_list(&mut self) -> Option<&'a [u8]> {
        let count = self.take(1)?[0];
        self.take(count.into())
    }

    fn long_list(&mut self) -> Option<&'a [u8]> {
        let count = self.number()?;
        self.take(count.into())
    }
}

#[cfg(test)]
pub(crate) mod tests;
