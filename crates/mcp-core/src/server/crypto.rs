//! A hash and a seal: the one place that names the crate they are from.

use orion::hazardous::{
    aead::xchacha20poly1305::{Nonce, SecretKey, XChaCha20Poly1305},
    hash::sha2::sha256::Sha256,
    mac::poly1305::POLY1305_OUTSIZE as TAG,
    stream::xchacha20::XCHACHA_NONCESIZE as NONCE,
};

/// SHA-256 of what it is given, piece by piece.
#[derive(Default)]
pub(super) struct Hash(Sha256);

impl Hash {
    pub(super) fn with(mut self, bytes: impl AsRef<[u8]>) -> Self {
        // Only what is finished refuses, and that is consumed.
        if self.0.update(bytes.as_ref()).is_err() {
            unreachable!("a hash that is not finished takes more");
        }
        self
    }

    pub(super) fn finish(mut self) -> [u8; 32] {
        match self.0.finalize().map(|digest| digest.as_ref().try_into()) {
            Ok(Ok(digest)) => digest,
            _ => unreachable!("a hash is finished once, and has 32 bytes"),
        }
    }
}

/// A key of XChaCha20-Poly1305. This copy of it is wiped from memory when it is dropped.
///
/// Specification: *draft-irtf-cfrg-xchacha-03*.
pub(super) struct SealKey(SecretKey);

impl SealKey {
    pub(super) fn new(key: [u8; 32]) -> Self {
        Self(SecretKey::from(key))
    }

    /// Seals `plain` together with `bound_to`, which must be there to open it and is not in what comes out: a random nonce,
    /// the text, and a tag.
    pub(super) fn seal(&self, plain: &[u8], bound_to: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).ok()?;
        self.seal_with(nonce, plain, bound_to)
    }

    fn seal_with(&self, nonce: [u8; NONCE], plain: &[u8], bound_to: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = vec![0; NONCE + plain.len() + TAG];
        let (head, text) = sealed.split_at_mut(NONCE);
        head.copy_from_slice(&nonce);
        XChaCha20Poly1305::seal(&self.0, &Nonce::from(nonce), plain, Some(bound_to), text).ok()?;
        Some(sealed)
    }

    /// Opens what was sealed; `None` whatever is wrong with it.
    pub(super) fn open(&self, sealed: &[u8], bound_to: &[u8]) -> Option<Vec<u8>> {
        let (nonce, text) = sealed.split_first_chunk::<NONCE>()?;
        let mut plain = vec![0; text.len().checked_sub(TAG)?];
        XChaCha20Poly1305::open(&self.0, &Nonce::from(*nonce), text, Some(bound_to), &mut plain).ok()?;
        Some(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let pairs = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
        pairs.collect()
    }

    /// FIPS 180-2, appendix B, and the hash of nothing.
    #[test]
    fn a_hash_is_sha_256_in_however_many_pieces_it_is_given() {
        let two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        for (text, digest) in [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (two_blocks, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"),
        ] {
            assert_eq!(Hash::default().with(text).finish().to_vec(), bytes(digest), "{text:?}");
            for at in 0..text.len() {
                let (head, rest) = text.split_at(at);
                let pieces = Hash::default().with(head).with(rest);
                assert_eq!(pieces.finish().to_vec(), bytes(digest), "{text:?}, cut at {at}");
            }
        }
    }

    /// draft-irtf-cfrg-xchacha-03, appendix A.3.1.
    #[test]
    fn a_seal_is_the_nonce_and_what_the_draft_makes_of_its_example() {
        let plain = "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen \
                     would be it.";
        let bound_to = bytes("50515253c0c1c2c3c4c5c6c7");
        let key = SealKey::new(std::array::from_fn(|at| 0x80 + at as u8));
        let nonce = std::array::from_fn(|at| 0x40 + at as u8);
        let expected = [
            "404142434445464748494a4b4c4d4e4f5051525354555657",
            "bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb",
            "731c7f1b0b4aa6440bf3a82f4eda7e39ae64c6708c54c216cb96b72e1213b452",
            "2f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f76b2383565d3fff9",
            "21f9664c97637da9768812f615c68b13b52e",
            "c0875924c1c7987947deafd8780acf49",
        ];
        let sealed = key.seal_with(nonce, plain.as_bytes(), &bound_to).unwrap();
        assert_eq!(sealed, bytes(&expected.concat()));
        assert_eq!(key.open(&sealed, &bound_to).unwrap(), plain.as_bytes());
    }

    #[test]
    fn nothing_opens_but_what_was_sealed_under_that_key_for_that_purpose() {
        let key = SealKey::new([7; 32]);
        for plain in [b"".as_slice(), b"state"] {
            let sealed = key.seal(plain, b"call").unwrap();
            assert_eq!(key.open(&sealed, b"call").unwrap(), plain);
            assert_ne!(key.seal(plain, b"call").unwrap(), sealed, "a nonce is never used twice");
            assert_eq!(key.open(&sealed, b"other call"), None);
            assert_eq!(SealKey::new([8; 32]).open(&sealed, b"call"), None);
            for at in 0..sealed.len() {
                assert_eq!(key.open(&sealed[..at], b"call"), None, "cut at {at}");
                let mut forged = sealed.clone();
                forged[at] ^= 1;
                assert_eq!(key.open(&forged, b"call"), None, "forged at {at}");
            }
        }
    }
}
