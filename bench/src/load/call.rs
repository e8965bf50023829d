//! One call of `add` as bytes. A call with number *n* has the id *n* and adds [`ADDEND`] to *n*, so that an answer to
//! another call is seen to be one. Numbers have nine digits: all calls are equally long, and one is written over another.

/// The number of the first call of a round.
pub(crate) const FIRST: u64 = 100_000_000;

/// What each call adds to its number.
pub(crate) const ADDEND: u64 = 5;

const DIGITS: usize = 9;

/// What says, in every request of the modern era, who asks and in which revision.
const META: &str = concat!(
    r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#
);

/// Whether calls carry `_meta`, or lean on a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Modern,
    Legacy,
}

/// The bytes of a call, with what the wire puts around it.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    /// Where the number stands: as the id, and as the first argument.
    places: [usize; 2],
}

impl Template {
    /// A call on a wire that puts nothing around it.
    pub(crate) fn new(era: Era) -> Self {
        let meta = if era == Era::Modern { META } else { "" };
        let start = r#"{"jsonrpc":"2.0","id":"#;
        let middle = r#","method":"tools/call","params":{"name":"add","arguments":{"a":"#;
        let text = format!(r#"{start}{FIRST}{middle}{FIRST},"b":{ADDEND}}}{meta}}}}}"#);
        Self { bytes: text.into_bytes(), places: [start.len(), start.len() + DIGITS + middle.len()] }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The same call with bytes before and after it.
    pub(crate) fn wrapped(&self, before: &[u8], after: &[u8]) -> Self {
        Self { bytes: [before, &self.bytes, after].concat(), places: self.places.map(|place| place + before.len()) }
    }

    /// The call with this number.
    pub(crate) fn numbered(&mut self, number: u64) -> &[u8] {
        for place in self.places {
            write_digits(&mut self.bytes[place..place + DIGITS], number);
        }
        &self.bytes
    }
}

/// Overwrites `digits` with the last digits of `number`.
pub(super) fn write_digits(digits: &mut [u8], number: u64) {
    let mut rest = number;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_numbered_call_is_json_with_the_number_in_both_places() {
        for era in [Era::Modern, Era::Legacy] {
            let mut template = Template::new(era).wrapped(b" ", b"\n");
            let call: Value = serde_json::from_slice(template.numbered(123_456_789)).unwrap();
            assert_eq!((&call["id"], &call["params"]["arguments"]["a"]), (&123_456_789.into(), &123_456_789.into()));
            assert_eq!(call["params"].get("_meta").is_some(), era == Era::Modern);
        }
    }
}
