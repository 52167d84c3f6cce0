//! The messages of the watch: a tag, a rank and a short text, and a signature after the handshake. Input from
//! unauthenticated connections is untrusted.

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// From the leader, first: its random number.
    Challenge,
    /// To the leader, in response to its random number: rank, random number, code and name.
    Hello,
    /// From the leader, in response to the hello: its code. The rank is accepted.
    Welcome,
    /// A heartbeat.
    Beat,
    /// This rank has finished.
    Left,
    /// From the leader: this rank is watched. The text is its name.
    Joined,
    /// From the leader: this rank's connection closed.
    Ended,
    /// From the leader: this rank was silent for the silence limit.
    Silent,
    /// From the leader: all ranks have left.
    AllLeft,
    /// This unwatched rank is lost.
    Unwatched,
    /// This rank left after an error.
    GaveUp,
}

const TAGS: [Tag; 11] = [
    Tag::Challenge,
    Tag::Hello,
    Tag::Welcome,
    Tag::Beat,
    Tag::Left,
    Tag::Joined,
    Tag::Ended,
    Tag::Silent,
    Tag::AllLeft,
    Tag::Unwatched,
    Tag::GaveUp,
];

impl Tag {
    /// Whether a signature follows. The frames of the handshake have none.
    fn is_signed(self) -> bool {
        !matches!(self, Self::Challenge | Self::Hello | Self::Welcome)
    }
}

/// Tag (1 byte), rank (4, little-endian), length of the text (2, little-endian), text (UTF-8). A signature follows,
/// except in the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub tag: Tag,
    pub rank: usize,
    pub text: String,
}

const HEAD_BYTES: usize = 7;
const SIGNATURE_BYTES: usize = 32;
/// Maximum length of a text. A code and a host name are much shorter.
const TEXT_BYTES_MAX: usize = 1024;

impl Frame {
    pub fn new(tag: Tag, rank: usize, text: &str) -> Self {
        Self { tag, rank, text: text.to_owned() }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let tag = TAGS.iter().position(|&tag| tag == self.tag).expect("every tag is in the table");
        let mut bytes = vec![tag as u8];
        bytes.extend_from_slice(&(self.rank as u32).to_le_bytes());
        bytes.extend_from_slice(&(self.text.len() as u16).to_le_bytes());
        bytes.extend_from_slice(self.text.as_bytes());
        bytes
    }
}

/// A frame, and its signature if it has one, which is not verified yet.
pub(super) type Received = (Frame, Option<[u8; SIGNATURE_BYTES]>);

/// Removes the complete frames from the received bytes. None if they are not valid frames; then the sender is not a
/// rank.
pub(super) fn take_all(received: &mut Vec<u8>) -> Option<Vec<Received>> {
    let mut frames = Vec::new();
    let mut taken = 0;
    while let Some(head) = received[taken..].first_chunk::<HEAD_BYTES>() {
        let tag = *TAGS.get(usize::from(head[0]))?;
        let rank = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let length = usize::from(u16::from_le_bytes([head[5], head[6]]));
        if length > TEXT_BYTES_MAX {
            return None;
        }
        let begin = taken + HEAD_BYTES;
        let Some(text) = received.get(begin..begin + length) else { break };
        let frame = Frame { tag, rank, text: std::str::from_utf8(text).ok()?.to_owned() };
        taken = begin + length;
        let signature = match tag.is_signed() {
            false => None,
            true => {
                let Some(signature) = received[taken..].first_chunk() else {
                    taken -= HEAD_BYTES + length;
                    break;
                };
                taken += SIGNATURE_BYTES;
                Some(*signature)
            }
        };
        frames.push((frame, signature));
    }
    received.drain(..taken);
    Some(frames)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn frames_are_parsed_once_complete() {
        let first = Frame::new(Tag::Joined, 70_000, "worker-ö, process 7");
        let second = Frame::new(Tag::Beat, 0, "");
        let third = Frame::new(Tag::Hello, 1, "without a signature");
        let bytes =
            [first.to_bytes(), vec![1; 32], second.to_bytes(), vec![2; 32], third.to_bytes()].concat();
        let expected = [(first, Some([1; 32])), (second, Some([2; 32])), (third, None)];

        for cut in 0..=bytes.len() {
            let mut received = bytes[..cut].to_vec();
            let mut frames = take_all(&mut received).unwrap();
            received.extend_from_slice(&bytes[cut..]);
            frames.extend(take_all(&mut received).unwrap());

            assert_eq!(frames, expected, "cut after {cut} bytes");
            assert!(received.is_empty());
        }
    }

    #[test]
    fn bytes_that_are_not_a_frame_are_refused() {
        let no_tag = b"GET / HTTP/1.1\r\n".to_vec();
        let too_long = [1, 0, 0, 0, 0, 255, 255].to_vec();
        let no_text = [0, 0, 0, 0, 0, 1, 0, 0xff].to_vec();

        for mut bytes in [no_tag, too_long, no_text] {
            assert_eq!(take_all(&mut bytes), None);
        }
    }
}
