//! Reading what a peer got wrong where nothing hangs on it.

use base64::{
    Engine as _,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use mcp_jsonrpc::Raw;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};

/// Anything that does not have the shape counts as absent.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: Default + DeserializeOwned>(reader: D) -> Result<T, D::Error> {
    let raw = Option::<Raw>::deserialize(reader)?;
    Ok(raw.and_then(|raw| raw.decode().ok()).unwrap_or_default())
}

/// A member that is `null` counts as absent.
pub(super) fn null_is_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    reader: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(reader)?.unwrap_or_default())
}

/// A list without those of its items that do not have the shape; one of which nothing is left is none.
pub(super) fn items<'de, D: Deserializer<'de>, T: DeserializeOwned>(reader: D) -> Result<Vec<T>, D::Error> {
    let all = Vec::<Raw>::deserialize(reader)?;
    let items: Vec<_> = all.iter().filter_map(|item| item.decode().ok()).collect();
    if items.is_empty() && !all.is_empty() { Err(D::Error::custom("no item has the shape")) } else { Ok(items) }
}

/// The same, but anything that is no list is an empty one.
pub(super) fn items_or_none<'de, D: Deserializer<'de>, T: DeserializeOwned>(reader: D) -> Result<Vec<T>, D::Error> {
    let raw = Option::<Raw>::deserialize(reader)?;
    let items = raw.and_then(|raw| raw.decode::<Vec<Raw>>().ok()).unwrap_or_default();
    Ok(items.iter().filter_map(|item| item.decode().ok()).collect())
}

/// A whole number, in whichever way JSON writes it: `1000`, `1000.0`, `1e3`.
pub(super) fn whole<'de, D: Deserializer<'de>>(reader: D) -> Result<u64, D::Error> {
    let raw = Raw::deserialize(reader)?;
    whole_of(&raw).ok_or_else(|| D::Error::custom("a whole number that is not negative must be here"))
}

/// The same; anything else counts as absent.
pub(super) fn whole_or_none<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<Raw>::deserialize(reader)?.as_ref().and_then(whole_of))
}

fn whole_of(raw: &Raw) -> Option<u64> {
    // All whole numbers up to here are exact.
    const MOST: f64 = (1u64 << 53) as f64;
    raw.decode().ok().or_else(|| {
        let number =
            raw.decode::<f64>().ok().filter(|number| number.fract() == 0.0 && (0.0..=MOST).contains(number))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within the bounds")]
        Some(number as u64)
    })
}

/// The bytes of a Base64 text, in either alphabet, with its padding or without.
pub(super) fn base64(text: &str) -> Result<Vec<u8>, base64::DecodeError> {
    const CONFIG: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const PLAIN: GeneralPurpose = GeneralPurpose::new(&STANDARD, CONFIG);
    const URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, CONFIG);
    PLAIN.decode(text).or_else(|error| URL.decode(text).map_err(|_| error))
}
