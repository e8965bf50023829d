use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

macro_rules! ids {
    ($($(#[$doc:meta])* $kind:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub struct $kind(u128);

            impl $kind {
                /// A new one.
                ///
                /// # Panics
                /// When the operating system has no random numbers.
                #[must_use]
                pub fn random() -> Self {
                    let mut bytes = [0; 16];
                    if let Err(error) = getrandom::fill(&mut bytes) {
                        panic!("no random numbers for an id: {error}");
                    }
                    Self(u128::from_be_bytes(bytes))
                }

                /// The id that stands there, if it is one.
                #[must_use]
                pub fn parse(text: &str) -> Option<Self> {
                    let is_ours = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
                    is_ours.then(|| u128::from_str_radix(text, 16).ok()).flatten().map(Self)
                }
            }

            impl fmt::Display for $kind {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    write!(f, "{:032x}", self.0)
                }
            }

            /// Only what tells one from another in a log.
            impl fmt::Debug for $kind {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    write!(f, "{}({:06x}…)", stringify!($kind), self.0 >> 104)
                }
            }

            impl Serialize for $kind {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.collect_str(self)
                }
            }

            impl<'de> Deserialize<'de> for $kind {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    let text = String::deserialize(deserializer)?;
                    Self::parse(&text).ok_or_else(|| D::Error::custom("no id"))
                }
            }
        )*
    };
}

ids! {
    /// The id of a legacy session: 128 random bits, on the wire 32 lowercase hexadecimal digits. Whoever has it may be taken
    /// for the client, so it is shown by `Display` alone.
    ///
    /// Specification: *2025-11-25, Transports, Session Management*.
    SessionId;
    /// The id of a task: 128 random bits, on the wire 32 lowercase hexadecimal digits. Whoever has it may be taken for whoever
    /// began it, so it is shown by `Display` alone.
    ///
    /// Specification: *Tasks extension, Security Considerations*.
    TaskId;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back_differ_and_are_not_told_whole() {
        let (one, other) = (SessionId::random(), SessionId::random());
        assert_ne!(one, other);
        let text = one.to_string();
        assert_eq!((text.len(), SessionId::parse(&text)), (32, Some(one)));
        assert!(!format!("{one:?}").contains(&text[8..]));
        let upper = "A".repeat(32);
        for foreign in ["", "1", &text[1..], &format!("{text}0"), &upper, "gone-1", "+1234567890123456789012345678901"]
        {
            assert_eq!(SessionId::parse(foreign), None, "{foreign}");
        }
    }
}
