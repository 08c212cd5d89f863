//! Beginnings and ends of streams, whatever the pieces.

use proptest::prelude::*;

use super::{Capture, Captured, OMITTED};

fn captured(budget: usize, pieces: &[&[u8]]) -> Captured {
    let mut capture = Capture::new(budget);
    for piece in pieces {
        capture.push(piece);
    }
    capture.end()
}

#[test]
fn ex_10_1_a_stream_that_is_too_long_is_its_head_and_its_tail() {
    let cut = |head: &str, tail: &str| format!("{head}{OMITTED}{tail}");
    let table: [(usize, &[&str], String); 6] = [
        (8, &["abcdefgh"], "abcdefgh".to_owned()),
        (8, &["abcdefghij"], cut("abcd", "ghij")),
        (7, &["abcdefghijkl"], cut("abc", "ijkl")),
        (8, &["abc", "def", "ghijk"], cut("abcd", "hijk")),
        (8, &[], String::new()),
        (0, &["a"], cut("", "")),
    ];
    for (budget, pieces, expected) in table {
        let bytes: Vec<&[u8]> = pieces.iter().map(|piece| piece.as_bytes()).collect();
        assert_eq!(captured(budget, &bytes).text(), expected, "{budget} of {pieces:?}");
    }
}

#[test]
fn what_is_counted_and_what_is_kept() {
    let cut = captured(8, &[b"abcdefghij"]);
    assert_eq!((cut.total, cut.retained(), cut.is_cut(), cut.whole()), (10, 8, true, None));
    let whole = captured(8, &[b"abcde"]);
    assert_eq!((whole.total, whole.retained(), whole.is_cut()), (5, 5, false));
    assert_eq!(whole.whole().as_deref(), Some(&b"abcde"[..]));
}

#[test]
fn a_character_over_the_middle_is_whole_where_nothing_is_left_out() {
    assert_eq!(captured(8, &["ab☃cd".as_bytes()]).text(), "ab☃cd");
    let cut = captured(8, &["ab☃xxxx☃d".as_bytes()]).text();
    assert_eq!(cut, format!("ab\u{fffd}{OMITTED}☃d"));
}

proptest! {
    /// EX-10.1 for any pieces: the stream as one piece comes to the same.
    #[test]
    fn the_pieces_make_no_difference(
        budget in 0usize..40,
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..12),
    ) {
        let slices: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        let stream = pieces.concat();
        let kept = captured(budget, &slices);
        prop_assert_eq!(&kept, &captured(budget, &[&stream]));
        prop_assert_eq!(kept.total, stream.len() as u64);
        prop_assert_eq!(kept.retained(), stream.len().min(budget));
        prop_assert!(stream.starts_with(&kept.head) && stream.ends_with(&kept.tail));
        if stream.len() <= budget {
            prop_assert_eq!(kept.whole(), Some(stream));
        }
    }
}
